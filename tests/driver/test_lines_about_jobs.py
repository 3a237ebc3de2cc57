"""Lines about a job, apart from any job: their text, on a terminal and in a notebook."""

from __future__ import annotations

import io
import os
import pty
import struct
import termios
from fcntl import ioctl
from typing import Any

import pytest

from ekorn.common import JobStatus
from ekorn.driver.display.job_lines import end_line, progress_line
from ekorn.driver.display.job_progress import JobProgress
from ekorn.driver.display.progress_display import NotebookOutput
from ekorn.driver.display.terminal_lines import TerminalLines

NOON = 1_800_000_000_000
DAY_MS = 86_400_000


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.04, "0.0 s"),
        (99.94, "99.9 s"),
        (100, "1 min 40 s"),
        (119.6, "2 min 0 s"),
        (3599, "59 min 59 s"),
        (3600, "1 h 0 min"),
        (90_061, "25 h 1 min"),
    ],
)
def test_a_length_of_time_is_told_as_people_tell_it(seconds, text):
    assert end_line("a", JobProgress(JobStatus.FINISHED), seconds) == f"job 'a' finished after {text}: 0 records read"


@pytest.mark.parametrize(
    ("watermark", "lag"),
    [
        (NOON, "0.0 s"),
        (NOON + 1, None),
        (NOON - 1_500, "1.5 s"),
        (DAY_MS, "499976 h 0 min"),
        (DAY_MS - 1, None),
    ],
)
def test_the_lag_of_a_watermark_is_told_if_it_is_a_time_of_day(watermark, lag):
    line = progress_line(JobProgress(watermark=watermark), 0, NOON)
    assert line == "created, 0 records, 0/s" + ("" if lag is None else f", watermark {lag} behind")


@pytest.mark.parametrize(("restarts", "said"), [(0, ""), (1, ", 1 restart"), (2, ", 2 restarts")])
def test_restarts_are_counted(restarts, said):
    progress = JobProgress(JobStatus.FAILED, restarts=restarts)
    assert end_line("a", progress, 1) == f"job 'a' failed after 1.0 s: 0 records read{said}"
    assert progress_line(progress, 0, NOON) == f"failed, 0 records, 0/s{said}"


def test_the_ends_of_jobs_have_words_of_their_own():
    ends = (JobStatus.FINISHED, JobStatus.CANCELED, JobStatus.FAILED, JobStatus.SUSPENDED, JobStatus.RUNNING)
    words = [end_line("a", JobProgress(status), 1).split("'a' ")[1].split(" after")[0] for status in ends]
    assert words == ["finished", "was cancelled", "failed", "was suspended", "ended"]


def test_a_shorter_line_covers_the_longer_one_before_it():
    stream = io.StringIO()
    lines = TerminalLines(stream)
    lines.begin("begins")
    lines.update("long line")
    lines.update("short")
    lines.end("ended")
    assert stream.getvalue() == "begins\n\r\x1b[Klong line\r\x1b[Kshort\r\x1b[Kended\n"


def test_without_a_last_line_the_line_of_progress_is_only_removed():
    stream = io.StringIO()
    lines = TerminalLines(stream)
    lines.end(None)
    assert stream.getvalue() == ""
    lines.update("line")
    lines.end(None)
    assert stream.getvalue() == "\r\x1b[Kline\r\x1b[K"


@pytest.mark.parametrize(("columns", "longest"), [(40, 39), (2, 1), (1, 160), (0, 160)])
def test_a_line_is_cut_to_the_width_of_the_terminal(columns, longest):
    keeper, terminal = pty.openpty()
    ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with os.fdopen(terminal, "w") as stream:
        TerminalLines(stream).update("x" * 200)
        assert os.read(keeper, 1000) == b"\r\x1b[K" + b"x" * longest
    os.close(keeper)


class Cell:
    """A notebook's cell: the contents that were displayed."""

    def __init__(self) -> None:
        self.shown: list[Any] = []

    def display(self, content: Any, *, raw: bool, display_id: bool) -> Cell:
        assert raw and display_id
        self.shown.append(content["text/plain"])
        return self

    def update(self, content: Any, *, raw: bool) -> None:
        assert raw
        self.shown.append(content["text/plain"])


def test_a_notebook_shows_the_first_line_and_the_latest():
    cell = Cell()
    lines = NotebookOutput(cell.display)
    lines.begin("begins")
    lines.update("runs")
    lines.end("ended")
    assert cell.shown == ["begins", "begins\nruns", "begins\nended"]
    lines.end(None)
    assert cell.shown[-1] == "begins"
