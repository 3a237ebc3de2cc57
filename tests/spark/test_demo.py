"""The program of `make demo`, shortened: a slot is killed, the job is stopped or cancelled, the totals are exact."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.live_jobs import until
from tests.spark.processes import ROOT

DEMO = str(ROOT / "examples" / "live_orders.py")
ALL_RIGHT = "0 orders lost, 0 counted twice, 0 of 500 customers with a wrong total"


def test_the_demo_kills_a_slot_and_counts_every_order_once(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, DEMO, "--seconds", "6", "--rate", "5000", "--folder", str(tmp_path / "demo")],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert "kill -9" in done.stdout and "1 restart(s)" in done.stdout
    assert ALL_RIGHT in done.stdout


class Story:
    """The demo with its output in a file, in a folder of its own."""

    def __init__(self, folder: Path, runtime_dir: Path) -> None:
        self.folder = folder
        self.log = folder / "log"
        self._env = os.environ | {"EKORN_RUNTIME_DIR": str(runtime_dir), "PYTHONPATH": str(ROOT / "src")}
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *command: str) -> subprocess.Popen[bytes]:
        """Start a command with its output in the file."""
        with self.log.open("wb") as log:
            self._process = process = subprocess.Popen(
                [sys.executable, *command],
                cwd=self.folder,
                env=self._env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
            )
        return process

    def wait_for(self, text: str) -> None:
        """Wait until a text is in the file, while the demo runs."""
        assert self._process is not None
        process = self._process
        until(lambda: text in self.log.read_text() or process.poll() is not None, within_s=120)
        assert process.poll() is None, self.log.read_text()

    def command(self, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "ekorn", *arguments],
            cwd=self.folder,
            env=self._env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def ending(self) -> list[str]:
        """Wait for the end of the demo; return the last lines of its file."""
        assert self._process is not None
        code = self._process.wait(120)
        lines = self.log.read_text().splitlines()
        assert code == 0, lines
        assert not [line for line in lines if "Traceback" in line or line.startswith("\tat ") or "\r" in line]
        return lines[-4:]

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


@pytest.mark.soak  # four starts of Spark: CI has half an hour for everything
def test_a_demo_that_is_stopped_cancelled_or_interrupted_continues_with_the_command_that_it_prints(
    tmp_path: Path, runtime_dir: Path
) -> None:
    story = Story(tmp_path, runtime_dir)
    try:
        story.start(DEMO, "--seconds", "60", "--rate", "1500", "--folder", "demo")
        story.wait_for(" restarts 1 ")
        savepoint = story.command("stop", "-p", "savepoints", "live orders").split()[-1]
        _, right, how, command = story.ending()
        assert right.strip() == ALL_RIGHT and "Stopped with a savepoint; " in how
        assert shlex.split(command)[:4] == ["ekorn", "run", "-s", savepoint]

        for end in ("cancel", "interrupt"):
            process = story.start("-m", "ekorn", *shlex.split(command)[1:])
            story.wait_for("   checkpoint ")
            if end == "cancel":
                story.command("cancel", "live orders")
            else:
                process.send_signal(signal.SIGINT)
            _, right, how, command = story.ending()
            assert right.strip() == ALL_RIGHT and "Cancelled; " in how

        story.start("-m", "ekorn", *shlex.split(command)[1:], "--seconds", "9", "--rate", "10000")  # as many orders
        *_, lines, right = story.ending()
        assert lines.startswith("  90,000 lines on disk, ") and right.strip() == ALL_RIGHT
    finally:
        story.kill()
