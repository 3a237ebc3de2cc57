"""What a person sees of a running job: a line at its start, one that is written over, and one at its end."""

from __future__ import annotations

import fcntl
import io
import logging
import os
import struct
import termios

import pytest

from ekorn.clock import ManualClock
from ekorn.common import Configuration, JobID
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.driver.display.job_lines import JobFacts, end_line, progress_line, start_line
from ekorn.driver.display.job_progress import JobProgress
from ekorn.driver.display.progress_display import ProgressDisplay, is_told_by_log
from ekorn.driver.display.terminal_lines import TerminalLines
from ekorn.driver.job_view import JobView
from ekorn.functions.results.job_status import JobStatus
from ekorn.testing.local_run import on_local_engine

FACTS = JobFacts("orders", "0ab1", "embedded Spark local[2]", 2)
NOON = 1_800_000_000_000


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(stream, *, prints: bool = False, in_foreground: bool = True) -> str:
    """Return what is written about a job that reads 1,000 records in each of two seconds."""
    clock = ManualClock(NOON)
    view = JobView(JobID.generate(), "orders")
    view.is_in_foreground = in_foreground
    reads = iter([1000, 2000])

    def has_ended(timeout_s: float) -> bool:
        clock.advance(1000)
        read = next(reads, None)
        if read is None:
            view.update(JobProgress(JobStatus.FINISHED, records_read=2000, checkpoints_completed=1))
            return True
        view.update(JobProgress(JobStatus.RUNNING, records_read=read, last_checkpoint_id=1))
        return False

    display = ProgressDisplay(view, FACTS, clock, stream=stream, prints=prints)
    display.run(has_ended)
    return stream.getvalue()


FIRST = "job 'orders' (0ab1) starts on embedded Spark local[2], parallelism 2\n"
LAST = "job 'orders' finished after 3.0 s: 2,000 records read, 1 checkpoint\n"


def test_on_a_terminal_one_line_is_written_over():
    assert shown(Terminal()).split("\r\x1b[K") == [
        FIRST,
        "running, 1,000 records, 1,000/s, checkpoint 1",
        "running, 2,000 records, 1,000/s, checkpoint 1",
        LAST,
    ]


def test_a_terminal_that_cannot_erase_shows_the_first_and_the_last_line(monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    assert shown(Terminal()) == FIRST + LAST


def test_elsewhere_and_beside_printed_records_no_line_is_written_over():
    assert shown(io.StringIO()) == FIRST + LAST
    assert shown(Terminal(), prints=True) == FIRST + LAST


def test_a_terminal_that_is_gone_does_not_matter():
    gone = Terminal()
    gone.close()
    clock = ManualClock(NOON)
    ProgressDisplay(JobView(JobID.generate(), "orders"), FACTS, clock, stream=gone).run(lambda timeout_s: True)


def test_lines_that_the_log_writes_to_the_same_stream_are_not_written_twice():
    stream, logger = io.StringIO(), logging.getLogger("ekorn")
    handler = logging.StreamHandler(stream)
    before = logger.level
    logger.addHandler(handler)
    try:
        assert not is_told_by_log(stream), "warnings alone are logged"
        logger.setLevel(logging.INFO)
        assert is_told_by_log(stream) and not is_told_by_log(io.StringIO())
        handler.setLevel(logging.WARNING)
        assert not is_told_by_log(stream)
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)


def test_the_start_says_where_the_parallelism_and_the_state_come_from():
    facts = JobFacts("a", "0", "Spark at spark://h:7077", 1, is_default_parallelism=True, restored_from="chk-7")
    assert start_line(facts) == (
        "job 'a' (0) starts on Spark at spark://h:7077, parallelism 1 (default: parallelism.default is not set), from "
        "chk-7"
    )


def test_progress_shows_lag_failures_and_restarts():
    progress = JobProgress(
        JobStatus.RESTARTING, records_read=5, watermark=NOON - 90_000, checkpoints_failed=2, restarts=1
    )
    assert progress_line(progress, 0, NOON) == (
        "restarting, 5 records, 0/s, watermark 90.0 s behind, 2 checkpoints failed, 1 restart"
    )


def test_a_watermark_that_is_no_time_of_day_has_no_lag():
    for watermark in (None, 0, 5_000, 2**63 - 1, -(2**63)):
        assert "watermark" not in progress_line(JobProgress(watermark=watermark), 0, NOON)


def test_the_end_says_how():
    progress = JobProgress(JobStatus.CANCELED, records_read=7, restarts=2)
    assert end_line("a", progress, 3723) == "job 'a' was cancelled after 1 h 2 min: 7 records read, 2 restarts"
    assert "after 2 min 5 s" in end_line("a", progress, 125)


def test_the_log_tells_of_the_start_and_the_end(caplog):
    env = StreamExecutionEnvironment.get_execution_environment(Configuration())
    env.from_collection([1, 2]).map(lambda value: value)
    with on_local_engine(), caplog.at_level(logging.INFO, "ekorn"):
        env.execute("story")
    lines = [each.getMessage() for each in caplog.records if "'story'" in each.getMessage()]
    assert "starts on this process, without Spark, parallelism 1 (default: parallelism.default is not set)" in lines[0]
    assert "job 'story' finished after" in lines[-1] and "2 records read" in lines[-1]


def test_the_start_names_the_engine_s_log():
    facts = JobFacts("a", "0", "embedded Spark local[2]", 2, log_path="/tmp/ekorn-spark-1/spark.log")
    assert start_line(facts).endswith(", parallelism 2, log /tmp/ekorn-spark-1/spark.log")


def test_beside_a_program_that_does_not_wait_no_line_is_written_over():
    assert shown(Terminal(), in_foreground=False) == FIRST + LAST


# --------------------------------------------------------------------------------------------------- the numbers


def followed(reads, **settings) -> list[str]:
    """Return the lines of progress and the last one, of a job that has read so many records after each second."""
    clock, stream = ManualClock(NOON), Terminal()
    view = JobView(JobID.generate(), "orders")
    view.is_in_foreground = True
    rest = iter(reads)

    def has_ended(timeout_s: float) -> bool:
        assert timeout_s == settings.get("interval_s", 0.5)
        clock.advance(1000)
        read = next(rest, None)
        status = JobStatus.RUNNING if read is not None else settings.get("ends", JobStatus.FINISHED)
        view.update(JobProgress(status, records_read=reads[-1] if read is None else read))
        return read is None

    options = {key: value for key, value in settings.items() if key != "ends"}
    ProgressDisplay(view, FACTS, clock, stream=stream, **options).run(has_ended)
    return [line.strip() for line in stream.getvalue().removeprefix(FIRST).split("\r\x1b[K") if line.strip()]


def test_the_rate_is_that_of_the_last_six_looks():
    lines = followed([100, 200, 300, 400, 500, 600, 1_300, 1_300])
    rates = [line.split(", ")[-1] for line in lines[:-1]]
    assert rates == ["100/s"] * 6 + ["200/s", "183/s"]  # (1,300 - 100) / 6, and (1,300 - 200) / 6


def test_the_time_between_two_lines_and_the_beginning_are_those_that_were_given():
    assert followed([1], interval_s=7.0, began=-60.0)[-1] == "job 'orders' finished after 62.0 s: 1 record read"


def test_a_suspended_job_ends_without_a_line_on_a_terminal():
    assert followed([5], ends=JobStatus.SUSPENDED) == ["running, 5 records, 5/s"]


@pytest.mark.parametrize(
    ("watermark", "lag"),
    [(NOON, "0.0 s"), (NOON - 99_900, "99.9 s"), (NOON - 100_000, "1 min 40 s"), (86_400_000, "476000 h 0 min")],
)
def test_event_time_from_the_second_day_of_1970_to_now_has_a_lag(watermark, lag):
    now_ms = NOON if watermark != 86_400_000 else 86_400_000 + 476_000 * 3_600_000
    assert f", watermark {lag} behind" in progress_line(JobProgress(watermark=watermark), 0, now_ms)


@pytest.mark.parametrize("watermark", [86_399_999, NOON + 1])
def test_event_time_of_the_first_day_or_of_the_future_has_none(watermark):
    assert "watermark" not in progress_line(JobProgress(watermark=watermark), 0, NOON)


@pytest.mark.parametrize(
    ("seconds", "text"), [(3_599.4, "59 min 59 s"), (3_599.6, "1 h 0 min"), (3_660, "1 h 1 min"), (99.94, "99.9 s")]
)
def test_a_duration_is_given_in_two_units(seconds, text):
    assert f" after {text}: " in end_line("a", JobProgress(JobStatus.FINISHED), seconds)


def test_one_restart_and_several_are_counted():
    for restarts, text in ((1, ", 1 restart"), (2, ", 2 restarts")):
        progress = JobProgress(JobStatus.RUNNING, restarts=restarts)
        assert progress_line(progress, 0, NOON).endswith(text)
        assert end_line("a", progress, 1).endswith(text)


# --------------------------------------------------------------------------------------------------- the terminal


def test_a_shorter_line_covers_the_longer_one_before_it_and_the_end_erases_it():
    stream = io.StringIO()
    lines = TerminalLines(stream)
    lines.end(None)
    assert stream.getvalue() == "", "nothing was shown"
    lines.begin("first")
    lines.update("long line")
    lines.update("short")
    lines.end("last")
    lines.end(None)
    assert stream.getvalue() == "first\n\r\x1b[Klong line\r\x1b[Kshort\r\x1b[Klast\n"


@pytest.mark.parametrize(("columns", "longest"), [(20, 19), (2, 1), (1, 160), (0, 160)])
def test_a_line_is_cut_to_what_does_not_wrap(columns, longest):
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 10, columns, 0, 0))
    with open(theirs, "w") as stream:
        TerminalLines(stream).update("x" * 200)
        shown = os.read(ours, 1_000).decode()
    os.close(ours)
    assert shown == "\r\x1b[K" + "x" * longest


def test_a_stream_without_a_terminal_has_a_width_too():
    stream = io.StringIO()
    TerminalLines(stream).update("x" * 200)
    assert stream.getvalue() == "\r\x1b[K" + "x" * 160
