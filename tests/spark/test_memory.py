"""Memory of slots and of Spark's Python workers while one epoch carries far more than they may hold."""

from __future__ import annotations

import json
from typing import NamedTuple

import pytest

from ekorn.common import Configuration
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.errors import JobExecutionError
from tests.spark.processes import run_driver

MEGABYTE = 1 << 20


class Measured(NamedTuple):
    """The result of a job, and the peak resident memory of its processes."""

    result: list[int]
    slot_bytes: int
    worker_bytes: int


def measured(job: str) -> Measured:
    """Run a job of `memory_jobs` in a driver of its own, so that its processes have run nothing else."""
    driver = run_driver("from tests.spark.memory_jobs import main; main()", job)
    output, _ = driver.communicate(timeout=300)
    assert driver.returncode == 0, output
    return Measured(**json.loads(output.splitlines()[-1]))


def test_a_fan_out_of_8000_in_one_epoch_is_held_neither_by_slots_nor_by_workers() -> None:
    """An epoch of 512 MB. When slots and workers held it, they took 677 MB and 450 MB."""
    run = measured("fan_out")
    assert run.result == [64 * 8_000, 64 * 8_000 * 1_000]
    assert run.slot_bytes < 300 * MEGABYTE
    assert run.worker_bytes < 200 * MEGABYTE


def test_2500_records_of_a_megabyte_pass_through_a_keyed_exchange() -> None:
    """The first epoch has 2 GB, more than Spark's Python serializer takes at once. Workers that held it took 546 MB."""
    run = measured("large_records")
    assert run.result == [2_500, 2_500 * MEGABYTE]
    assert run.slot_bytes < 450 * MEGABYTE
    assert run.worker_bytes < 250 * MEGABYTE


def test_a_window_that_fires_a_million_keys_streams_out() -> None:
    """300 MB of results. When the receiving slot and its worker held them, they grew by 228 MB and to 388 MB."""
    run = measured("window")
    count, size, memory_before = run.result
    assert (count, size) == (1_000_000, 300_000_000)
    assert run.slot_bytes - memory_before < 100 * MEGABYTE
    assert run.worker_bytes < 200 * MEGABYTE


def test_a_record_above_the_bound_is_refused_with_its_size_key_and_operator() -> None:
    configuration = Configuration()
    configuration.set_string("ekorn.exchange.max-record-size", "1 mb")
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(2)
    large = env.from_collection([("a", 1)]).map(lambda v: (v[0], bytes(2 * MEGABYTE))).name("blow up")
    large.key_by(lambda v: v[0]).map(len).print()
    with pytest.raises(JobExecutionError) as failure:
        env.execute("too large")
    assert failure.value.operator_name == "blow up"
    assert "a record of key 'a' has 20971" in str(failure.value)
    assert "ekorn.exchange.max-record-size" in str(failure.value)
