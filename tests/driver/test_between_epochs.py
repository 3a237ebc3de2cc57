"""What the loop does between two epochs: requests, and how long it waits for what."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

from ekorn.clock import ManualClock, SteadyClock
from ekorn.common import RuntimeExecutionMode
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.driver.checkpoints.savepoint_requests import SavepointRequest
from ekorn.driver.job_handle import JobHandle
from ekorn.driver.loop.between_epochs import BetweenEpochs
from ekorn.driver.loop.continuous_mode import MarkWaits
from ekorn.driver.loop.epochs_mode import EpochWaits
from ekorn.driver.loop.interrupts import AttemptFailed, Cancelled
from ekorn.driver.loop.job import Job
from ekorn.driver.rescaling.job_rescaling import Rescaling
from ekorn.engine.protocol import Failure
from ekorn.operators.epoch import Ack
from ekorn.operators.sinks.collected_run import CollectedRun
from ekorn.testing.drawn_job import drawn_job

PENDING = 7


@dataclass
class WaitingEngine:
    """An engine whose waits advance the clock, by their whole time or until the next report of a slot."""

    clock: ManualClock
    reports_ms: list[int] = field(default_factory=list)  # how long each wait lasts until a slot reports
    on_wait: Callable[[], object] = lambda: None
    failure: Failure | None = None
    waits_ms: list[float] = field(default_factory=list)

    def wait(self, timeout_s: float) -> None:
        self.waits_ms.append(round(timeout_s * 1000, 6))
        waits_ms = min(self.waits_ms[-1], self.reports_ms.pop(0) if self.reports_ms else self.waits_ms[-1])
        self.clock.advance(round(waits_ms))
        self.on_wait()

    def lost(self) -> Failure | None:
        return self.failure


@dataclass
class Checkpoints:
    """What `BetweenEpochs` asks of the checkpoints of a job."""

    patience: float = 0.0
    pending_ids: set[int] = field(default_factory=lambda: {PENDING})
    due_ms: int | None = None
    is_requested: bool = False
    admits: bool = True
    attended: int = 0
    requested: list[SavepointRequest] = field(default_factory=list)

    def attend(self) -> None:
        self.attended += 1

    def patience_ms(self) -> float:
        return self.patience

    def next_due_ms(self, now_ms: int) -> int | None:
        return self.due_ms

    def admit(self, request: SavepointRequest) -> bool:
        return self.admits

    def request_savepoint(self, request: SavepointRequest) -> None:
        self.requested.append(request)


class World:
    """A job of three subtasks between two epochs."""

    def __init__(self, *, batch: bool = False, buffer_timeout_ms: int = -1, **checkpoints: Any) -> None:
        self.clock = ManualClock()
        self.clock.advance(1_000)
        env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(3)
        if batch:
            env.set_runtime_mode(RuntimeExecutionMode.BATCH)
        env.from_sequence(1, 9).print()
        graph, settings = drawn_job(env)
        settings = replace(settings, buffer_timeout_ms=buffer_timeout_ms, collect_buffer_bytes=100)
        self.handle = JobHandle(settings.job_id, "job")
        job = Job.of(graph, settings, self.handle, self.clock, SteadyClock(self.clock))
        assert len(job.subtasks) == 3
        self.engine = WaitingEngine(self.clock)
        self.checkpoints = Checkpoints(**checkpoints)
        rescaling = Rescaling(job, self.engine, self.checkpoints, None)  # type: ignore[arg-type]
        engine, fake = cast(Any, self.engine), cast(Any, self.checkpoints)
        self.between = BetweenEpochs(job, engine, fake, rescaling)
        self.epoch_waits = EpochWaits(job, engine, fake, self.between)
        self.mark_waits = MarkWaits(job, engine, fake, self.between)


# --------------------------------------------------------------------------------- the checkpoint of the last epoch


def test_a_checkpoint_is_waited_for_as_long_as_patience_lasts():
    world = World(patience=100.0)
    world.engine.reports_ms = [30, 30]
    world.epoch_waits.for_checkpoint(PENDING)
    assert world.engine.waits_ms == [100, 70, 40]
    assert world.clock.now_ms() == 1_100


def test_the_wait_for_a_checkpoint_ends_with_the_checkpoint():
    world = World(patience=100.0)
    world.engine.reports_ms = [30]
    world.engine.on_wait = world.checkpoints.pending_ids.clear
    world.epoch_waits.for_checkpoint(PENDING)
    assert world.engine.waits_ms == [100]
    assert world.checkpoints.attended == 2


def test_another_checkpoint_in_flight_is_not_waited_for():
    world = World(patience=100.0)
    world.epoch_waits.for_checkpoint(PENDING + 1)
    assert world.engine.waits_ms == []


def test_without_patience_a_checkpoint_is_not_waited_for():
    world = World(patience=0.0)
    world.epoch_waits.for_checkpoint(PENDING)
    assert world.engine.waits_ms == []
    assert world.checkpoints.attended == 1


def test_more_reports_than_subtasks_end_the_wait_for_a_checkpoint():
    world = World(patience=100.0)
    world.engine.reports_ms = [1] * 99
    world.epoch_waits.for_checkpoint(PENDING)
    assert world.engine.waits_ms == [100, 99, 98, 97]


# ------------------------------------------------------------------------------------------------------------- idling


@pytest.mark.parametrize(
    ("buffer_timeout_ms", "wait_ms", "waited_ms"),
    [(-1, 50, [50]), (20, 50, [20]), (80, 50, [50]), (0, 50, [1]), (-1, 0, []), (20, 0, []), (1, 1, [1])],
)
def test_an_idle_job_waits_no_longer_than_the_buffer_timeout(buffer_timeout_ms, wait_ms, waited_ms):
    world = World(buffer_timeout_ms=buffer_timeout_ms)
    world.between.idle(wait_ms, [])
    assert world.engine.waits_ms == waited_ms


@pytest.mark.parametrize(("due_ms", "waited_ms"), [(1_030, 30), (1_000, 0), (900, 0), (2_000, 50)])
def test_an_idle_job_waits_no_longer_than_to_the_next_checkpoint(due_ms, waited_ms):
    world = World(due_ms=due_ms)
    world.between.idle(50, [])
    assert world.engine.waits_ms == [waited_ms]


@pytest.mark.parametrize(
    ("timers_ms", "waited_ms"), [([1_030, 1_020], 20), ([None], 50), ([None, 1_049], 49), ([5], 0)]
)
def test_an_idle_job_waits_no_longer_than_to_the_next_timer(timers_ms, waited_ms):
    world = World()
    world.between.idle(50, [Ack(0, n, 1, next_timer_ms=timer_ms) for n, timer_ms in enumerate(timers_ms)])
    assert world.engine.waits_ms == [waited_ms]


def test_timers_follow_the_time_of_day_and_checkpoints_do_not():
    world = World(due_ms=1_040)
    world.clock.set_ms(500_000)  # the administrator sets the clock
    world.between.idle(50, [Ack(0, 0, 1, next_timer_ms=500_045)])
    assert world.engine.waits_ms == [40]
    world.checkpoints.due_ms = None
    world.between.idle(50, [Ack(0, 0, 1, next_timer_ms=500_085)])
    assert world.engine.waits_ms == [40, 45]


# ------------------------------------------------------------------------------------------------------------ waiting


def test_a_wait_attends_to_the_job_until_its_time_is_over():
    world = World()
    world.between.wait_ms(120)
    assert world.engine.waits_ms == [50, 50, 50]
    assert world.checkpoints.attended == 3
    world.between.wait_ms(100)
    assert len(world.engine.waits_ms) == 5


def test_a_wait_whose_condition_holds_is_over_at_once():
    world = World()
    world.engine.failure = Failure(RuntimeError("lost"))
    world.between.wait_until(lambda: True)
    assert world.checkpoints.attended == 0
    world.between.wait_until(lambda: world.checkpoints.attended > 0)  # what had been reported before the loss counts
    assert world.engine.waits_ms == []


def test_a_slot_that_is_lost_ends_a_wait():
    world = World()
    world.engine.failure = Failure(RuntimeError("lost"))
    with pytest.raises(AttemptFailed) as caught:
        world.between.wait_until(lambda: False)
    assert caught.value.failure is world.engine.failure


def unread_bytes(world: World, size_bytes: int) -> None:
    world.handle.results.collected.clear()
    world.handle.results.collected.put(CollectedRun(b"x" * size_bytes, 1))


@pytest.mark.parametrize(("size_bytes", "waits"), [(99, 0), (100, 1)])
def test_the_next_epoch_waits_until_enough_of_the_collected_records_is_read(size_bytes, waits):
    world = World()
    unread_bytes(world, size_bytes)
    world.engine.on_wait = world.handle.results.collected.clear
    world.epoch_waits.for_reader()
    assert len(world.engine.waits_ms) == waits


def test_a_requested_checkpoint_does_not_wait_for_the_reader():
    world = World(is_requested=True)
    unread_bytes(world, 100)
    world.epoch_waits.for_reader()
    assert world.engine.waits_ms == []


def test_a_savepoint_that_the_job_ends_with_does_not_wait_for_the_reader():
    world = World()
    unread_bytes(world, 100)
    world.engine.on_wait = lambda: ask(world, "stop")
    world.epoch_waits.for_reader()
    assert len(world.engine.waits_ms) == 1


def test_a_cancelled_job_waits_no_longer():
    world = World()
    world.engine.on_wait = world.handle.cancel
    with pytest.raises(Cancelled):
        world.between.wait_until(lambda: False)
    assert len(world.engine.waits_ms) == 1


@pytest.mark.parametrize(("size_bytes", "is_behind"), [(0, False), (49, False), (50, True), (100, True)])
def test_a_reader_is_behind_when_half_of_the_buffer_waits_for_it(size_bytes, is_behind):
    world = World()
    unread_bytes(world, size_bytes)
    assert world.between.reader_is_behind is is_behind


# ----------------------------------------------------------------------------------------------------- the next mark


@pytest.mark.parametrize(
    ("interval_ms", "due_ms", "waits_ms"),
    [
        (120, None, [50, 50, 20]),
        (50, None, [50]),
        (0, None, []),
        (120, 1_070, [50, 20]),
        (120, 2_000, [50, 50, 20]),
        (120, 1_000, []),
        (120, 900, []),
    ],
)
def test_the_next_mark_waits_for_its_interval_but_not_past_a_checkpoint_that_is_due(interval_ms, due_ms, waits_ms):
    world = World(due_ms=due_ms)
    world.mark_waits.for_mark(interval_ms)
    assert world.engine.waits_ms == waits_ms
    assert world.checkpoints.attended == len(waits_ms) + 1


def test_a_report_of_a_slot_does_not_end_the_wait_for_a_mark():
    world = World()
    world.engine.reports_ms = [10, 10]
    world.mark_waits.for_mark(60)
    assert world.engine.waits_ms == [50, 50, 40]


def test_a_savepoint_that_the_job_ends_with_does_not_wait_for_the_next_mark():
    world = World()
    world.engine.on_wait = lambda: ask(world, "stop")
    world.mark_waits.for_mark(10_000)
    assert len(world.engine.waits_ms) == 1


def test_a_slot_that_is_lost_ends_the_wait_for_a_mark():
    world = World()
    world.engine.failure = Failure(RuntimeError("lost"))
    with pytest.raises(AttemptFailed) as caught:
        world.mark_waits.for_mark(100)
    assert caught.value.failure is world.engine.failure
    world.mark_waits.for_mark(0)


# ------------------------------------------------------------------------------------------------ requested savepoints


def ask(world: World, then: Any = "go on") -> Any:
    return world.handle.request_savepoint("/savepoints", then=then)


def test_requested_savepoints_are_admitted_and_passed_on():
    world = World()
    ask(world)
    world.between.attend()
    assert [request.then for request in world.checkpoints.requested] == ["go on"]
    assert world.between.stop is None


@pytest.mark.parametrize("then", ["stop", "drain"])
def test_a_savepoint_that_the_job_ends_with_is_kept_for_the_end_and_the_next_is_refused(then):
    world = World()
    ask(world, then)
    second = ask(world)
    world.between.attend()
    assert world.between.stop is not None and world.between.stop.then == then
    assert world.checkpoints.requested == []
    with pytest.raises(Exception, match="already being stopped with a savepoint"):
        second.result(0)


def test_a_savepoint_that_is_not_admitted_is_neither_taken_nor_waited_for():
    world = World(admits=False)
    ask(world)
    ask(world, "stop")
    world.between.attend()
    assert (world.checkpoints.requested, world.between.stop) == ([], None)


def test_a_job_in_batch_mode_refuses_savepoints():
    world = World(batch=True)
    answer = ask(world)
    world.between.attend()
    with pytest.raises(Exception, match="BATCH mode cannot take savepoints"):
        answer.result(0)
