"""Watermark alignment groups where jobs run continuously: a source too far ahead waits until others have caught up.

The slots are threads of this process, so that tests see what the sources read.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from ekorn.common import Duration, WatermarkStrategy
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.driver.loop.epoch_tracker import least_by_group
from ekorn.engine.slots.continuous_engine import ContinuousSlotEngine
from ekorn.functions.source_contract import Batch, Boundedness, Source, Split, SplitReader
from ekorn.operators.mark import MarkAck, MarkOrder
from ekorn.testing.continuous_process_engine import continuous_process_engine
from ekorn.testing.local_slots import InProcessSlots
from tests.slot.small_job import deployment, graph

DRIFT_MS = 1_000
LIMITS: dict[str, int] = {}  # the greatest number that a source has now
READ: dict[str, int] = {}  # the greatest that was read


class Numbers(Source):
    """Has the numbers 0, 10, 20, ... up to a limit that rises while the job runs."""

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.CONTINUOUS_UNBOUNDED

    def discover_splits(self, parallelism: int) -> Sequence[Split]:
        return [Split("only", None)]

    def create_reader(self, split: Split, position: Any | None) -> SplitReader:
        return _NumberReader(self.name)


class _NumberReader(SplitReader):
    def __init__(self, name: str) -> None:
        self._name = name
        self._next = 0

    def read(self, max_records: int) -> Batch:
        if self._next > LIMITS[self._name]:
            return Batch([])
        READ[self._name] = self._next
        self._next += 10
        return Batch([READ[self._name]])

    def position(self) -> Any:
        return self._next

    @property
    def finished(self) -> bool:
        return False


def draw(env: StreamExecutionEnvironment) -> None:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value)
    strategy = strategy.with_watermark_alignment("group", Duration.of_millis(DRIFT_MS))
    for name in ("fast", "slow"):
        env.from_source(Numbers(name), strategy, name).map(lambda n: n).disable_chaining().filter(
            lambda n: False
        ).print()


@pytest.fixture
def engine() -> Iterator[ContinuousSlotEngine]:
    LIMITS.update(fast=1 << 60, slow=500)
    READ.update(fast=0, slow=0)
    job = graph(draw)
    made = continuous_process_engine(job, pool=InProcessSlots(job.slot_count))
    assert made.deploy(deployment(job)) is None
    yield made
    made.shutdown()


def test_a_source_too_far_ahead_pauses_and_reads_on_when_the_others_have_caught_up(
    engine: ContinuousSlotEngine,
) -> None:
    acks: list[MarkAck] = []
    numbers = itertools.count()

    def epoch() -> int | None:
        result = engine.run_epoch(MarkOrder(next(numbers), group_watermarks=least_by_group(acks)))
        assert result.failure is None
        acks[:] = result.acks
        return least_by_group(acks).get("group")

    while epoch() != 499 or READ["fast"] <= 499 + DRIFT_MS:
        pass
    for _ in range(2):
        epoch()  # from here on the sources know how far the slowest one is
    paused_at = READ["fast"]
    for _ in range(5):
        epoch()
    assert READ["fast"] == paused_at, "it waits"
    LIMITS["slow"] = paused_at
    while READ["fast"] == paused_at:
        epoch()
