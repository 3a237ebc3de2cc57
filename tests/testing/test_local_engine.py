"""The engine in one process: epochs, budgets, cancellation and events."""

import pytest

from ekorn.datastream.functions import MapFunction
from ekorn.operators.epoch import EpochOrder
from ekorn.testing.local_engine import LocalEngine
from tests.slot.small_job import deployment, graph, summing


@pytest.fixture
def engine():
    made = []

    def make(of):
        made.append(LocalEngine(of))
        return made[-1]

    yield make
    for each in made:
        each.shutdown()


def test_every_subtask_acknowledges_an_epoch(engine):
    of = graph(summing, parallelism=2)
    local = engine(of)
    assert local.deploy(deployment(of)) is None
    result = local.run_epoch(EpochOrder(0))
    assert result.failure is None
    assert [(ack.vertex, ack.subtask) for ack in result.acks] == [(0, 0), (1, 0), (1, 1)]
    assert all(ack.finished for ack in result.acks)
    assert sorted(line.split("> ")[1] for ack in result.acks for line in ack.lines) == ["1", "2", "4"]
    assert sum(ack.records_in for ack in result.acks) == 6
    assert result.acks[0].bytes_out > 0


def test_an_epoch_reads_no_more_than_its_budget(engine):
    of = graph(summing)
    local = engine(of)
    local.deploy(deployment(of))
    first = local.run_epoch(EpochOrder(0, max_records=2)).acks[0]
    assert (first.records_in, first.backlog, first.finished) == (2, True, False)
    second = local.run_epoch(EpochOrder(1, max_records=2)).acks[0]
    assert (second.records_in, second.finished) == (1, True)


@pytest.mark.parametrize("size", [10_000, 100_000])
def test_an_epoch_reads_no_more_bytes_than_its_budget_and_one_batch(engine, size):
    of = graph(lambda env: env.from_collection([b"x" * size] * 3_000).key_by(len).map(len).print())
    local = engine(of)
    local.deploy(deployment(of))
    reads = [local.run_epoch(EpochOrder(n, max_source_bytes=1_000_000)).acks[0] for n in range(3)]
    assert all(ack.backlog for ack in reads)
    assert reads[0].records_in <= 256  # the first batch is small, as its records are unknown
    assert [ack.records_in * size for ack in reads[1:]] == [1_000_000, 1_000_000]


def test_subtasks_run_copies_of_the_functions_of_the_program(engine):
    class Counts(MapFunction):
        seen = 0

        def map(self, value):
            self.seen += 1
            return value

    mine = Counts()
    of = graph(lambda env: env.from_collection([1, 2]).map(mine).print())
    local = engine(of)
    local.deploy(deployment(of))
    local.run_epoch(EpochOrder(0))
    assert mine.seen == 0


def test_a_cancelled_epoch_ends_before_the_next_subtask(engine):
    of = graph(summing)
    local = engine(of)
    local.deploy(deployment(of))
    local.cancel_epoch()
    assert local.run_epoch(EpochOrder(0)).failure is not None


def test_a_wake_ends_a_wait_and_events_are_kept(engine):
    of = graph(summing, checkpoints=True)
    local = engine(of)
    local.deploy(deployment(of))
    local.wake()
    local.wait(30)
    local.run_epoch(EpochOrder(0, checkpoint_id=1))
    found = []
    while len(found) < 2:
        local.wait(30)
        found += local.events()
    assert {event.snapshot.vertex for event in found} == {0, 1}
