"""The log that a driver keeps of its job: what it tells, how much of it is kept, and what a failure costs."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from ekorn.common import Configuration
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.driver.job_log import JobLog, kept_logs, open_job_log
from ekorn.testing.local_run import on_local_engine

LOGGER = logging.getLogger("ekorn.test")


@pytest.fixture(autouse=True)
def folder(runtime_dir: Path) -> Path:
    return runtime_dir


def text_of(job_id: str) -> str:
    (found,) = (each for each in kept_logs() if each.job_id == job_id)
    return "".join(path.read_text() for path in found.files())


def environment() -> StreamExecutionEnvironment:
    configuration = Configuration()
    configuration.set_string("ekorn.control.enabled", "true")
    return StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(1)


def test_the_log_of_a_job_tells_its_start_its_plan_and_its_end() -> None:
    env = environment()
    env.from_collection([1, 2]).map(lambda n: n).name("first").key_by(lambda n: n).reduce(max).name("largest")
    with on_local_engine():
        result = env.execute("story")
    lines = [line.split(" ", 3)[3] for line in text_of(str(result.get_job_id())).splitlines()]
    assert lines[0].startswith("job 'story' (") and "starts on this process" in lines[0]
    assert [line for line in lines if line.startswith("vertex ")] == [
        "vertex 0: Source: Collection Source -> first, parallelism 1",
        "vertex 1: largest, parallelism 1, reads from 0",
    ]
    assert lines[-1].startswith("job 'story' finished after ")


def test_the_log_of_a_failed_job_ends_with_the_reason() -> None:
    env = environment()
    env.from_collection([0]).map(lambda n: 1 // n).name("invert")
    with on_local_engine(), pytest.raises(Exception, match="division") as raised:
        env.execute("wrong")
    (kept,) = kept_logs()
    assert (kept.name, kept.status) == ("wrong", "FAILED")
    assert text_of(kept.job_id).endswith(f"{raised.value}\n")
    assert "ZeroDivisionError" in text_of(kept.job_id) and "'invert'" in text_of(kept.job_id)


def test_a_job_that_does_not_start_has_said_why(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    env = environment()
    env.enable_checkpointing(1000).get_checkpoint_config().set_checkpoint_storage_dir(str(tmp_path / "taken"))
    env.from_collection([1]).map(lambda n: n)
    with on_local_engine(), pytest.raises(Exception, match="taken"):
        env.execute("nowhere")
    (kept,) = kept_logs()
    assert kept.status == "FAILED" and "job 'nowhere' did not start: " in text_of(kept.job_id)


def test_lines_go_to_python_s_logging_at_their_level_too(caplog: pytest.LogCaptureFixture) -> None:
    log = open_job_log("a1", "a", 1)
    with caplog.at_level(logging.WARNING, "ekorn.test"):
        log.info(LOGGER, "quiet %d", 1)
        log.warning(LOGGER, "loud %s", "%d")
    log.end("FINISHED", None)
    assert [record.getMessage() for record in caplog.records] == ["loud %d"]
    assert [line.split(" ", 2)[2] for line in text_of("a1").splitlines()] == ["INFO quiet 1", "WARNING loud %d"]


def test_a_job_that_continues_under_its_id_continues_its_log() -> None:
    for number in (1, 2):
        log = open_job_log("a1", f"run {number}", number)
        log.info(LOGGER, "run %d", number)
        log.end("SUSPENDED", None)
    (kept,) = kept_logs()
    assert (kept.name, kept.started_ms, kept.status) == ("run 2", 2, "SUSPENDED")
    assert "run 1" in text_of("a1") and "run 2" in text_of("a1")


def test_the_newest_lines_of_a_long_log_are_kept() -> None:
    log = open_job_log("a1", "a", 1, most_bytes=1000)
    for number in range(1000):
        log.info(LOGGER, "line %d", number)
    log.end("FINISHED", None)
    assert 1000 < len(text_of("a1")) < 3000 and text_of("a1").endswith(" INFO line 999\n")


def test_the_oldest_logs_of_ended_jobs_are_dropped() -> None:
    running = open_job_log("a0", "still running", 0)
    for number in range(1, 6):
        open_job_log(f"a{number}", "a", number, most_logs=3).end("FINISHED", None)
    assert [each.job_id for each in kept_logs()] == ["a5", "a4", "a3", "a0"]
    running.end("FINISHED", None)


def test_the_oldest_logs_are_dropped_together() -> None:
    for number in range(11):
        open_job_log(f"a{number}", "a", number, most_logs=10).end("FINISHED", None)
    open_job_log("b0", "b", 11, most_logs=10).end("FINISHED", None)
    assert len(kept_logs()) == 12
    open_job_log("b1", "b", 12, most_logs=10).end("FINISHED", None)
    assert [each.job_id for each in kept_logs()] == ["b1", "b0", "a10", "a9", "a8", "a7", "a6", "a5", "a4", "a3"]


def test_a_job_without_a_place_for_its_log_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("EKORN_RUNTIME_DIR", str(tmp_path / "file"))
    log = open_job_log("a1", "lonely", 1)
    log.info(LOGGER, "goes on")
    log.end("FINISHED", None)
    assert log.path is None and "job lonely keeps no log for `ekorn logs`: " in caplog.text


def test_a_job_of_a_test_keeps_no_log() -> None:
    env = StreamExecutionEnvironment.get_execution_environment(Configuration())
    env.from_collection([1]).map(lambda n: n)
    with on_local_engine():
        env.execute("quiet")
    assert kept_logs() == [] and JobLog().path is None
