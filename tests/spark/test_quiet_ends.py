"""Jobs that read streams of Spark end without a stack trace, although the user's session logs on standard error."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.program.endless import heed_interrupts

PROGRAM = """
import sys

from pyspark.sql import SparkSession

from ekorn.common import Configuration
from ekorn.datastream import StreamExecutionEnvironment

folder, kind, end = sys.argv[1:]
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
spark = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
options = {"execution.checkpointing.interval": "500 ms", "execution.checkpointing.dir": f"file://{folder}/checkpoints"}
env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(options), spark=spark)
frame = spark.readStream.format("rate").option("rowsPerSecond", 100).load()
if kind == "source":
    rows = env.from_spark_source(frame)
else:
    rows = env.from_streaming_data_frame(frame, f"file://{folder}/query")
rows.map(lambda row: row.value).print()
if end == "Ctrl-C":
    env.execute("numbers")
else:
    job = env.execute_async("numbers")
    sys.stdin.readline()
    job.cancel().result()
"""
TRACE = re.compile(r"^\s+at |^\s+File |^Traceback|^Caused by|Exception|StackOverflowError", re.MULTILINE)


@pytest.mark.parametrize(("kind", "end"), [("source", "Ctrl-C"), ("stream", "Ctrl-C"), ("stream", "cancel")])
def test_a_job_on_a_stream_of_spark_ends_without_a_stack_trace(tmp_path: Path, kind: str, end: str) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    command = [sys.executable, str(script), str(tmp_path), kind, end]
    process = subprocess.Popen(command, text=True, preexec_fn=heed_interrupts, **pipes)  # type: ignore[call-overload]  # noqa: PLW1509 - one system call, which takes no lock
    assert process.stdout.readline().strip().isdigit()  # batches are being written
    if end == "Ctrl-C":
        process.send_signal(signal.SIGINT)
    _, said = process.communicate("\n", timeout=180)
    assert process.returncode == (130 if end == "Ctrl-C" else 0), said
    assert TRACE.findall(said) == []
    assert len(said.splitlines()) < 30, said
