"""Programs on a terminal, in processes of their own: on Spark, or on the local engine and shown as if on Spark."""

from __future__ import annotations

import fcntl
import os
import re
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"

PRELUDE = """
import os, sys, time
from functools import partial
from ekorn.common import *
from ekorn.datastream import *
from ekorn.datastream.functions import SinkFunction
from ekorn.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from ekorn.driver.submit import jobs_submitted_by, submit
from ekorn.testing.local_engine import LocalEngine

on_terminal = jobs_submitted_by(partial(submit, engine_for=lambda settings: LocalEngine, may_be_shown=True))
if "--spark" not in sys.argv:
    on_terminal.__enter__()
env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)

class Nowhere(SinkFunction):
    def invoke(self, value, context):
        pass

def numbers(count, per_second=1000):
    source = DataGeneratorSource(lambda number: number, count, RateLimiterStrategy.per_second(per_second))
    return env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
"""


def written_to_terminal(
    program: str, *, columns: int = 200, interrupt_at: str | None = None, spark: bool = False
) -> str:
    """Run a program on a terminal; return all that it writes.

    Args:
        program: What follows the prelude.
        columns: The width of the terminal.
        interrupt_at: Press Ctrl-C once the program has written this.
        spark: Run its jobs on Spark.
    """
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-c", PRELUDE + program, *["--spark"] * spark],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        preexec_fn=_take_terminal,  # noqa: PLW1509 - two system calls, without a lock
        env=os.environ | {"PYTHONPATH": str(SOURCE)},
    )
    os.close(slave)
    written = b""
    try:
        while data := _read(master):
            written += data
            if interrupt_at is not None and interrupt_at.encode() in written:
                os.write(master, b"\x03")
                interrupt_at = None
    finally:
        process.kill()
        process.wait()
        os.close(master)
    return written.decode()


def _take_terminal() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a test run in the background ignores it, and so would its children
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _read(master: int) -> bytes:
    try:
        return os.read(master, 65_536)
    except OSError:  # the last process that had the terminal has ended
        return b""


def screen(written: str) -> list[str]:
    """Return the lines that a terminal shows in the end."""
    lines: list[str] = []
    for line in written.replace("\r\n", "\n").split("\n"):
        shown, at = "", 0
        for part in re.split(r"(\r|\x1b\[K)", line):
            if part == "\r":
                at = 0
            elif part == "\x1b[K":
                shown = shown[:at]
            else:
                shown, at = shown[:at] + part + shown[at + len(part) :], at + len(part)
        lines.append(shown.rstrip())
    return lines[:-1] if lines[-1] == "" else lines
