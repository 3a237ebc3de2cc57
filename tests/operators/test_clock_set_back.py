"""Time limits of operators on a clock that is set back by an hour: they follow the monotonic clock."""

from __future__ import annotations

import itertools

import pytest

from ekorn.clock import ManualClock
from ekorn.common import Time, WatermarkStrategy
from ekorn.datastream import AsyncDataStream, SourceFunction
from ekorn.functions.source_contract import Batch, Boundedness, Source, Split, SplitReader
from ekorn.operators.epoch import EpochOrder
from tests.live_jobs import until
from tests.operators.async_io.services import AskMany, Service
from tests.operators.windows.local_run import Run, environment, graph_of

HOUR_MS = 3_600_000
CLOCKS: list[ManualClock] = []  # the clock of the job, for sources to move; subtasks have copies of the functions
DISCOVERIES: list[str] = []
SET_BACK_AT = [-1]  # the record at which the clock is set back
COLLECTED = [0]  # how many records the source function has collected
ROOM = 50_000  # for records that a source function has collected and the job has not read


@pytest.fixture
def started():
    runs = []

    def start(stream):
        run = Run(graph_of(stream))
        runs.append(run)
        CLOCKS[:] = [run.clock]
        DISCOVERIES.clear()
        run.deploy()
        return run

    yield start
    for run in runs:
        run.engine.shutdown()


def set_back() -> None:
    CLOCKS[0].set_ms(CLOCKS[0].now_ms() - HOUR_MS)


class SlowReader(SplitReader):
    """Reads one record in 125 ms; the clock is set back before the third."""

    finished = False
    at = 0

    def read(self, max_records):
        self.at += 1
        if self.at == 3:
            set_back()
        CLOCKS[0].advance(125)
        return Batch([self.at])

    def position(self):
        return self.at


class Slow(Source):
    boundedness = Boundedness.CONTINUOUS_UNBOUNDED
    discovery_interval_ms = 5_000

    def discover_splits(self, parallelism):
        DISCOVERIES.append("discovered")
        return [Split("one")]

    def create_reader(self, split, position):
        return SlowReader()


class Endless(SourceFunction):
    """Collects as many records as there is room for."""

    def run(self, ctx):
        for number in itertools.count():
            ctx.collect(number)
            COLLECTED[:] = [number + 1]

    def cancel(self):
        pass


def take_a_millisecond(number):
    if number == SET_BACK_AT[0]:
        set_back()
    CLOCKS[0].advance(1)
    return number


def source_ack(run: Run, **order):
    result = run.engine.run_epoch(EpochOrder(run.epoch, **order))
    run.epoch += 1
    assert result.failure is None
    return result.acks[0]


def test_a_source_ends_its_epoch_in_time(started):
    run = started(environment().from_source(Slow(), WatermarkStrategy.no_watermarks(), "slow"))
    ack = source_ack(run, max_source_ms=1_000, max_records=5_000)
    assert (ack.records_in, ack.backlog) == (8, True)


def test_a_source_function_ends_its_epoch_in_time(started):
    run = started(environment().add_source(Endless()).map(take_a_millisecond))
    first = source_ack(run, max_records=1)
    until(lambda: COLLECTED[0] >= first.records_in + ROOM)
    SET_BACK_AT[0] = first.records_in + 100
    second = source_ack(run, max_source_ms=1_000)
    assert second.records_in >= ROOM
    assert second.backlog


def test_splits_are_discovered_in_time(started):
    run = started(environment().from_source(Slow(), WatermarkStrategy.no_watermarks(), "slow"))
    assert len(DISCOVERIES) == 1
    set_back()
    run.clock.advance(4_999)
    source_ack(run, max_records=1)
    assert len(DISCOVERIES) == 1
    run.clock.advance(1)
    source_ack(run, max_records=1)
    assert len(DISCOVERIES) == 2


def test_a_batch_of_requests_is_sent_in_time(started):
    service = Service(answer=lambda values: [value * 2 for value in values])
    numbers = environment().from_collection([1, 2, 3])
    run = started(AsyncDataStream.ordered_wait_batch(numbers, AskMany(service), Time.seconds(60), 10, Time.seconds(5)))
    run.step(2)
    set_back()
    run.clock.advance(4_000)
    run.step(0)
    assert service.asked == []
    assert [a.next_timer_ms for a in run.acks if a.next_timer_ms is not None] == [run.clock.now_ms() + 1_000]
    run.clock.advance(1_000)
    run.step(0)
    until(lambda: service.asked == [(1, 2)])  # the request is made on the thread of the event loop


def test_a_loop_ends_in_time(started):
    loop = environment().from_collection([1, 2, 3]).iterate(max_wait_time_millis=1_000)
    body = loop.map(lambda n: n - 1)
    loop.close_with(body.filter(lambda n: n > 0))
    run = started(body)

    def open_loops() -> frozenset[int]:
        result = run.engine.run_epoch(EpochOrder(run.epoch))
        run.epoch += 1
        assert result.failure is None
        return frozenset(number for ack in result.acks for number in ack.open_loops)

    for _ in range(5):  # the input ends, and no record is left in the loop
        assert open_loops()
    set_back()
    run.clock.advance(999)
    assert open_loops()
    run.clock.advance(1)
    assert not open_loops()
