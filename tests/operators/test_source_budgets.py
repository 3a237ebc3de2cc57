"""What a source reads within the budget of an epoch: some of every split, and something in every epoch."""

from __future__ import annotations

import pytest

from ekorn.clock import ManualClock
from ekorn.common import WatermarkStrategy
from ekorn.functions.source_contract import Batch, Boundedness, Source, Split, SplitReader
from ekorn.operators.epoch import EpochOrder
from tests.operators.windows.local_run import Run, environment, graph_of

CLOCKS: list[ManualClock] = []  # the clock of the job, for sources to move; subtasks have copies of the source
READ: list[str] = []  # the splits in the order in which they were read


class Endless(SplitReader):
    finished = False

    def __init__(self, name):
        self._name = name

    def read(self, max_records):
        READ.append(self._name)
        return Batch([self._name] * max_records)

    def position(self):
        return 0


class Splits(Source):
    """Three splits without an end. A discovery takes as long as it is told to."""

    boundedness = Boundedness.CONTINUOUS_UNBOUNDED
    discovery_interval_ms = 100

    def __init__(self, discovery_ms=0):
        self._discovery_ms = discovery_ms

    def discover_splits(self, parallelism):
        CLOCKS[0].advance(self._discovery_ms)
        return [Split("a"), Split("b"), Split("c")]

    def create_reader(self, split, position):
        return Endless(split.id)


@pytest.fixture
def started():
    runs = []

    def start(source):
        run = Run(graph_of(environment().from_source(source, WatermarkStrategy.no_watermarks(), "splits")))
        runs.append(run)
        CLOCKS[:] = [run.clock]
        READ.clear()
        run.deploy()
        return run

    yield start
    for run in runs:
        run.engine.shutdown()


def epoch(run: Run, **order):
    result = run.engine.run_epoch(EpochOrder(run.epoch, **order))
    run.epoch += 1
    assert result.failure is None
    return result.acks[0]


def test_a_split_with_a_backlog_does_not_take_the_budgets_of_the_others(started):
    run = started(Splits())
    for _ in range(6):
        assert epoch(run, max_records=10).records_in == 10
    assert READ == ["a", "b", "c", "a", "b", "c"]


def test_a_discovery_that_takes_longer_than_an_epoch_leaves_time_for_records(started):
    run = started(Splits(discovery_ms=500))
    for _ in range(3):
        run.clock.advance(100)
        assert epoch(run, max_records=10, max_source_ms=200).records_in == 10


class Pausing(SplitReader):
    """Gives some records, then none, although it knows of more."""

    finished = False

    def __init__(self, records, behind):
        self._left = records
        self._behind = behind

    def read(self, max_records):
        given, self._left = self._left, 0
        return Batch(["record"] * given)

    def position(self):
        return 0

    @property
    def behind(self):
        return self._behind


class Pauses(Source):
    boundedness = Boundedness.CONTINUOUS_UNBOUNDED

    def __init__(self, records, behind):
        self._made = (records, behind)

    def discover_splits(self, parallelism):
        return [Split("a")]

    def create_reader(self, split, position):
        return Pausing(*self._made)


@pytest.mark.parametrize(
    ("records", "behind", "backlog"),
    [(5, True, True), (5, False, False), (0, True, False)],
    ids=["a pause in a backlog", "the end of a backlog", "an outage"],
)
def test_a_pause_of_a_source_that_is_behind_is_no_end_of_its_backlog(started, records, behind, backlog):
    ack = epoch(started(Pauses(records, behind)), max_records=10)
    assert (ack.records_in, ack.backlog) == (records, backlog)
