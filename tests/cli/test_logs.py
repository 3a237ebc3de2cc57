"""`ekorn logs` and `ekorn list -a`: jobs of programs that run, have ended, failed or were killed."""

from __future__ import annotations

import datetime
import logging
import subprocess
import sys
from pathlib import Path

import pytest

from ekorn.cli.log_command import logs
from ekorn.cli.main import main
from ekorn.common import Configuration, JobID
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.driver.job_log import JobLog, open_job_log
from ekorn.testing.local_run import on_local_engine

LOGGER = logging.getLogger("ekorn.test")


@pytest.fixture(autouse=True)
def folder(runtime_dir: Path) -> Path:
    return runtime_dir


def ended(name: str, line: str, started_ms: int = 1, status: str = "FINISHED", job_id: str | None = None) -> str:
    """Leave the log of a job that has ended; return the id of the job."""
    job_id = job_id or str(JobID.generate())
    log = open_job_log(job_id, name, started_ms)
    log.info(LOGGER, "%s", line)
    log.end(status, None)
    return job_id


def test_the_log_of_an_ended_job_is_found_by_its_name_its_id_and_the_beginning_of_its_id(capsys):
    job_id = ended("daily orders", "of orders", job_id="ab" * 16)
    ended("other", "of another", job_id="cd" * 16)
    for wanted in ("daily orders", job_id, job_id[:5]):
        assert main(["logs", wanted]) == 0
        assert capsys.readouterr().out.endswith(" INFO of orders\n"), wanted


def test_of_ended_jobs_of_one_name_the_latest_is_shown(capsys):
    for started_ms in (1, 3, 2):
        ended("nightly", f"run {started_ms}", started_ms)
    assert main(["logs", "nightly"]) == 0
    assert capsys.readouterr().out.endswith(" run 3\n")


def test_what_is_not_found_and_what_is_not_clear_is_said(capsys):
    assert main(["logs", "nightly"]) == 1
    assert "none of your jobs has a log on this machine" in capsys.readouterr().err
    first, second = ended("a", "", job_id="ab" * 16), ended("b", "", job_id="ac" * 16)
    assert main(["logs", "nightly"]) == 1
    said = capsys.readouterr().err
    assert "no job is called 'nightly'" in said and f"{first} (a)" in said and f"{second} (b)" in said
    assert main(["logs", "a"]) == 0, "a name goes before the beginning of an id"


def test_several_ids_that_begin_alike_are_listed(capsys):
    first, second = ended("x", "", job_id="ab" * 16), ended("y", "", job_id="ac" * 16)
    assert main(["logs", "a"]) == 1
    said = capsys.readouterr().err
    assert "2 ids of jobs begin with 'a': name one of them by its id" in said and first in said and second in said


def test_the_log_of_a_job_is_found_while_it_runs_and_when_it_has_failed(capsys, tmp_path):
    configuration = Configuration()
    configuration.set_string("ekorn.control.enabled", "true")
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(1)
    go = tmp_path / "go"

    def wait(number: int) -> float:
        while not go.exists():
            pass
        return 1 / number

    env.from_collection([0]).map(wait).name("invert")
    with on_local_engine():
        client = env.execute_async("wrong")
        assert main(["logs", "wrong"]) == 0
        assert "starts on this process" in capsys.readouterr().out
        assert main(["list"]) == 0
        assert "wrong" in capsys.readouterr().out
        go.touch()
        with pytest.raises(Exception, match="division"):
            client.get_job_execution_result().result()
    assert main(["logs", str(client.get_job_id())[:8]]) == 0
    printed = capsys.readouterr().out
    assert "job 'wrong' failed after" in printed and "ZeroDivisionError" in printed and "'invert'" in printed
    assert main(["list"]) == 1, "it has ended"
    capsys.readouterr()
    assert main(["list", "-a"]) == 0
    *shown, day, _ = capsys.readouterr().out.splitlines()[1].split()
    assert shown == [str(client.get_job_id()), "wrong", "FAILED"]
    assert datetime.date.fromisoformat(day) >= datetime.date.today() - datetime.timedelta(days=1)


def test_a_log_is_followed_from_file_to_file_until_the_job_has_ended(capsys):
    job_id = str(JobID.generate())
    log: JobLog = open_job_log(job_id, "long", 1, most_bytes=400)
    written = 0

    def pause(seconds: float) -> None:
        nonlocal written
        for _ in range(5):
            log.info(LOGGER, "line %d", written)
            written += 1
        if written == 50:
            log.end("FINISHED", None)

    assert logs(None, "long", follow=True, pause=pause) == 0
    assert [line.split()[-1] for line in capsys.readouterr().out.splitlines()] == [str(n) for n in range(50)]


def test_a_job_whose_driver_was_killed_is_listed_as_killed_and_has_its_log(capsys, folder):
    program = (
        "import os, logging\nfrom ekorn.driver.job_log import open_job_log\n"
        "log = open_job_log('ef' * 16, 'lost', 1)\nlog.info(logging.getLogger('ekorn'), 'last words')\n"
        "os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=False)
    assert main(["list", "-a"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[:3] == ["ef" * 16, "lost", "KILLED"]
    assert main(["logs", "lost"]) == 0
    assert capsys.readouterr().out.endswith(" last words\n")
