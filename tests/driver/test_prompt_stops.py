"""A stop with a savepoint ends the running epoch at the next batch of its sources, and reads nothing after it."""

from pathlib import Path
from typing import ClassVar

import pytest

from ekorn.common import Configuration, JobStatus
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.driver.loop.pacing import FIRST_RECORDS
from ekorn.driver.submit import submit
from ekorn.engine.protocol import EpochResult
from ekorn.operators.epoch import EpochAck, EpochOrder
from ekorn.operators.sources.source_head import ReadSize
from ekorn.testing import on_local_engine
from ekorn.testing.local_engine import LocalEngine
from ekorn.testing.process_engine import on_process_engine
from tests.live_jobs import until

FIRST_BATCH = ReadSize(1_000_000).next_batch(FIRST_RECORDS, 1 << 40)


class Gate:
    """Waits inside the first batch of an epoch until the test lets it go on; notes every record."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, number: int) -> int:
        if number == 10:
            (self.folder / "arrived").touch()
            until((self.folder / "go on").exists)
        with open(self.folder / "seen", "a") as seen:
            seen.write(f"{number}\n")
        return number


def stopped_in_first_epoch(tmp_path: Path) -> list[int]:
    """Stop a job in the middle of its first epoch, for which there are many records; return those it processed."""
    env = StreamExecutionEnvironment.get_execution_environment(Configuration()).set_parallelism(1)
    env.from_sequence(0, 1_000_000).map(Gate(tmp_path)).print()
    client = env.execute_async("stopped")
    until((tmp_path / "arrived").exists)
    saved = client.stop_with_savepoint(False, str(tmp_path / "savepoints"))  # returns when the slots know
    (tmp_path / "go on").touch()
    assert Path(saved.result(60).removeprefix("file://")).is_dir()
    assert client.get_job_status().result() is JobStatus.FINISHED
    return [int(line) for line in (tmp_path / "seen").read_text().split()]


@pytest.mark.parametrize("engine", [on_local_engine, on_process_engine], ids=["in process", "in slot processes"])
def test_a_stop_ends_the_first_epoch_after_the_batch_that_is_read(engine, tmp_path):
    with engine():
        seen = stopped_in_first_epoch(tmp_path)
    assert FIRST_BATCH < FIRST_RECORDS, "the epoch would read more"
    assert seen == list(range(FIRST_BATCH))


@pytest.mark.spark
def test_a_stop_ends_the_first_epoch_on_spark(tmp_path):
    assert stopped_in_first_epoch(tmp_path) == list(range(FIRST_BATCH))


class NotedOrders(LocalEngine):
    """Notes the orders of epochs."""

    orders: ClassVar[list[EpochOrder]] = []

    def run_epoch(self, order: EpochOrder) -> EpochResult[EpochAck]:
        self.orders.append(order)
        return super().run_epoch(order)


def test_the_epoch_with_the_savepoint_lets_no_source_read(tmp_path):
    env = StreamExecutionEnvironment.get_execution_environment(Configuration()).set_parallelism(1)
    env.from_sequence(0, 1_000_000).map(Gate(tmp_path)).print()
    handle = submit(env.job_graph("stopped"), env.job_settings("stopped"), lambda settings: NotedOrders)
    until((tmp_path / "arrived").exists)
    saved = handle.request_savepoint(str(tmp_path / "savepoints"), then="stop")
    (tmp_path / "go on").touch()
    saved.result(60)
    assert NotedOrders.orders[-1].savepoint is not None
    assert NotedOrders.orders[-1].max_records == 0
