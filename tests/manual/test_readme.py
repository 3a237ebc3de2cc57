"""The commands of the README against a job that runs in a process of its own, without a JVM."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live_jobs import until
from tests.manual.blocks import ROOT, blocks_run_by
from tests.manual.page_run import HERE, commands_of

pytestmark = pytest.mark.long  # it mostly waits for processes

PROGRAM = """
from ekorn.common import Configuration, WatermarkStrategy
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy

control = Configuration.from_dict({"ekorn.control.enabled": "true"})  # as jobs on Spark are
env = StreamExecutionEnvironment.get_execution_environment(control)
env.enable_checkpointing(100)
env.get_checkpoint_config().set_checkpoint_storage_dir("checkpoints")
orders = DataGeneratorSource(lambda number: number, None, RateLimiterStrategy.per_second(500))
stream = env.from_source(orders, WatermarkStrategy.no_watermarks(), "orders").uid("orders")
stream.key_by(lambda order: order % 7).reduce(max).uid("largest")
env.execute("live orders")
"""


@pytest.fixture
def variables(runtime_dir: Path) -> dict[str, str]:
    """A shell in which the environment of the tests is active."""
    folders = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return os.environ | {"PATH": folders, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(HERE / "in_process")])}


@pytest.fixture
def heeded_ctrl_c() -> Iterator[None]:
    """Undo what a shell does to processes that it starts in the background: they, and their children, ignore Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heeded_ctrl_c")
def test_the_commands_list_save_stop_and_resume_a_job(tmp_path, variables):
    (tmp_path / "program.py").write_text(PROGRAM)
    (block,) = blocks_run_by(__file__, ROOT / "README.md")

    def told_by(*command: str) -> str:
        done = subprocess.run(["ekorn", *command], env=variables, capture_output=True, text=True, check=False)
        return done.stdout

    def start(command: str) -> subprocess.Popen[bytes]:
        """Start a job, and wait until it has completed a checkpoint of its own."""
        before = set(tmp_path.glob("checkpoints/*/chk-*/_metadata"))
        job = subprocess.Popen(f"exec {command}", shell=True, cwd=tmp_path, env=variables)
        until(lambda: "live orders" in told_by("list") and set(tmp_path.glob("checkpoints/*/chk-*/_metadata")) - before)
        return job

    job = start("ekorn run program.py")
    try:
        for command, _ in commands_of(block.text):
            if command.startswith("ekorn run"):
                if job.poll() is None:
                    job.send_signal(signal.SIGINT)  # Ctrl-C
                job.wait(60)
                job = start(command)
                if "-p 4" in command:
                    assert "parallelism 4, from savepoint" in told_by("logs", "live orders")
                continue
            done = subprocess.run(
                command, shell=True, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, (command, done.stdout, done.stderr)
            assert "live orders" in done.stdout or "savepoints/savepoint-" in done.stdout
    finally:
        job.kill()
        job.wait()
    assert len(list(tmp_path.glob("savepoints/savepoint-*/_metadata"))) == 1
