"""A program that runs until it is interrupted, in a process of its own, on the local engine or on Spark."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"

PROGRAM = """
import sys
from contextlib import nullcontext
from ekorn.common import Types, WatermarkStrategy
from ekorn.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from ekorn.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from ekorn.datastream.state import ValueStateDescriptor
from ekorn.testing.local_run import on_local_engine

class Count(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):
        if self.count.value() is None:
            print("the state is empty", flush=True)
        elif value == 0 or getattr(self, "first", True):
            print("the state holds", self.count.value() > 0, flush=True)
        self.first = False
        self.count.update((self.count.value() or 0) + 1)

env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
env.enable_checkpointing(20).get_checkpoint_config().set_checkpoint_storage_dir(sys.argv[1])
numbers = DataGeneratorSource(lambda n: n, 10**9, RateLimiterStrategy.per_second(1000))
stream = env.from_source(numbers, WatermarkStrategy.no_watermarks(), "numbers")
stream.key_by(lambda n: 0).process(Count()).uid("count").print()
with nullcontext() if "--spark" in sys.argv else on_local_engine():
    env.execute("endless")
"""


def started(tmp_path: Path, *options: str, spark: bool = False, program: str = PROGRAM) -> subprocess.Popen[str]:
    script = tmp_path / "program.py"
    script.write_text(program)
    arguments = [str(tmp_path / "checkpoints"), *["--spark"] * spark]
    return subprocess.Popen(
        [sys.executable, "-m", "ekorn", "run", *options, str(script), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(SOURCE)},
        preexec_fn=heed_interrupts,  # noqa: PLW1509 - one system call, which takes no lock
    )


def heed_interrupts() -> None:
    """Undo what a shell does to background jobs: it lets them, and their children, ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def wait_for_checkpoint(directory: Path, process: subprocess.Popen[str], more_than: set[Path]) -> set[Path]:
    while not (found := set(directory.glob("*/chk-*/_metadata")) - more_than):
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    return found
