"""An operator's hour without a terminal: output in a file, standard input closed, as under nohup, cron or systemd."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.journeys.users import environment, run, user_python
from tests.live_jobs import until

TOTALS = """
import sys
from ekorn.common import WatermarkStrategy
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy

env = StreamExecutionEnvironment.get_execution_environment()
env.enable_checkpointing(500).get_checkpoint_config().set_checkpoint_storage_dir("checkpoints")
numbers = DataGeneratorSource(lambda n: n, int(sys.argv[1]), RateLimiterStrategy.per_second(int(sys.argv[2])))
stream = env.from_source(numbers, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")
stream.key_by(lambda n: n % 3).reduce(lambda a, b: a + b).uid("totals").print()
env.execute("totals")
"""
FAILS = """
from ekorn.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.from_collection(["1", "two"]).map(int).print()
env.execute("fails")
"""


class Shell:
    """A shell whose jobs no other test reaches, and whose commands have no terminal."""

    def __init__(self, python: str, folder: Path) -> None:
        self._python = python
        self.folder = folder
        self._env = environment(EKORN_RUNTIME_DIR=str(folder / "run"))
        del self._env["PYTHONUNBUFFERED"]
        self._env.pop("TERM", None)
        self._running: list[subprocess.Popen[bytes]] = []

    def ekorn(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return run([self._python, "-m", "ekorn", *arguments], self.folder, self._env)

    def in_background(self, command: str, log: str) -> subprocess.Popen[bytes]:
        """Start `nohup ekorn COMMAND > log 2>&1 <&- &`."""
        line = f"exec nohup {self._python} -m ekorn {command} > {log} 2>&1 <&-"
        process = subprocess.Popen(["sh", "-c", line], cwd=self.folder, env=self._env, start_new_session=True)
        self._running.append(process)
        return process

    def log(self, name: str) -> str:
        """Return what a job in the background has written so far."""
        path = self.folder / name
        return path.read_text() if path.exists() else ""

    def kill_all(self) -> None:
        """Kill what still runs."""
        for process in self._running:
            process.kill()
            process.wait()


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    started = Shell(user_python(tmp_path / "venv"), tmp_path)
    yield started
    started.kill_all()


def test_a_job_in_the_background_is_found_read_stopped_and_continued_by_its_name(shell: Shell) -> None:
    (shell.folder / "totals.py").write_text(TOTALS)
    first = shell.in_background("run totals.py 6000 300", "first.log")
    until(lambda: shell.log("first.log").count("\n") > 10 or first.poll() is not None, within_s=90)
    assert first.poll() is None, shell.log("first.log")
    assert re.match(r"job 'totals' \([0-9a-f]{32}\) starts on embedded Spark .*\n", shell.log("first.log"))

    assert [line.split()[1] for line in shell.ekorn("list").stdout.splitlines()[1:]] == ["totals"]
    assert "starts on embedded Spark" in shell.ekorn("logs", "totals").stdout
    stopped = shell.ekorn("stop", "-p", "savepoints", "totals")
    assert stopped.returncode == 0, stopped.stderr
    (savepoint,) = (shell.folder / "savepoints").iterdir()
    assert first.wait(90) == 0, shell.log("first.log")
    assert f"-s {savepoint}" in shell.log("first.log"), "the last line says how to go on"

    last = shell.in_background(f"run -s {savepoint} totals.py 6000 100000", "last.log")
    assert last.wait(120) == 0, shell.log("last.log")
    said = shell.log("last.log")
    assert str(savepoint) in said and "job 'totals' finished after" in said.splitlines()[-1]
    totals = {int(line) for line in said.splitlines() if line.isdecimal()}
    assert {sum(range(k, 6000, 3)) for k in range(3)} <= totals, "no number is lost or counted twice"
    assert not [character for character in said if character < " " and character != "\n"], "no bars in a file"
    assert "finished" in shell.ekorn("logs", "totals").stdout, "an ended job is found by its name"


def test_why_a_job_in_the_background_failed_is_in_its_log(shell: Shell) -> None:
    (shell.folder / "fails.py").write_text(FAILS)
    failed = shell.in_background("run fails.py", "fails.log")
    assert failed.wait(120) == 1
    for said in (shell.log("fails.log"), shell.ekorn("logs", "fails").stdout):
        assert "invalid literal for int() with base 10: 'two'" in said, said
