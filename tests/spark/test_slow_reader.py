"""`execute_and_collect` on Spark with a program that sleeps: the driver's memory stays bounded, and the job goes on."""

from __future__ import annotations

import pytest

from tests.spark.processes import run_driver

SLOW_READER = """
import sys, time
from pathlib import Path
from ekorn.common import Configuration, WatermarkStrategy
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.connectors.number_seq import NumberSequenceSource

def peak_mb():
    return int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) // 1024

configuration = Configuration().set_string("ekorn.collect.buffer-size", "16 mb")
configuration.set_string("ekorn.epoch.target-ms", "500")
env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(1)
if sys.argv[1] != "none":
    env.enable_checkpointing(500)
    env.get_checkpoint_config().set_checkpoint_storage_dir(sys.argv[1])
    env.get_checkpoint_config().set_checkpoint_timeout(3000)
numbers = env.from_source(NumberSequenceSource(0, 1 << 60), WatermarkStrategy.no_watermarks(), "numbers")
with numbers.map(lambda n: (n, "x" * 400)).execute_and_collect("endless") as records:
    first = [next(records)[0] for _ in range(1000)]
    before = peak_mb()
    time.sleep(25)  # the slow reader
    grown = peak_mb() - before
    more = [next(records)[0] for _ in range(150_000)]
    assert first + more == list(range(151_000))
print("grown by", grown, "mb")
"""


@pytest.mark.soak  # a minute: CI has half an hour for everything
@pytest.mark.parametrize("checkpoints", [False, True])
def test_an_endless_job_with_a_reader_that_sleeps_does_not_fill_the_driver(tmp_path, checkpoints: bool) -> None:
    driver = run_driver(SLOW_READER, str(tmp_path) if checkpoints else "none")
    output, _ = driver.communicate(timeout=180)
    assert driver.returncode == 0, output
    grown_mb = int(output.rpartition("grown by ")[2].split()[0])
    assert grown_mb < 120, output
    assert "failed" not in output
