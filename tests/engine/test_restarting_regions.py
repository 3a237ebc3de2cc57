"""One region of a continuous job restarts: what its engine waits for, and what it says about the other regions."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.functions import MapFunction
from ekorn.engine.protocol import EpochResult
from ekorn.engine.slots.continuous_engine import ContinuousSlotEngine
from ekorn.errors import DeploymentError, SlotLostError, UserFunctionError
from ekorn.graph.addresses import SubtaskId
from ekorn.graph.job_graph import JobGraph
from ekorn.graph.regions import regions
from ekorn.operators.epoch import SavepointOrder
from ekorn.operators.mark import MarkAck, MarkOrder
from ekorn.slot_protocol.messages import BeginSavepoint, Discard, OrderEpoch
from ekorn.slot_protocol.slot_events import UnreadableEvent
from ekorn.testing.continuous_process_engine import continuous_process_engine
from ekorn.testing.local_slots import InProcessSlots
from tests.live_jobs import until
from tests.slot.small_job import deployment, graph

RECORDS = list(range(10))


class Gate(MapFunction):
    """Waits until a file exists, if it is told to."""

    def __init__(self, folder: Path, *, waits: bool) -> None:
        self.entered, self.opened, self._waits = folder / "entered", folder / "opened", waits

    def map(self, value: Any) -> Any:
        if self._waits:
            self.entered.touch()
            until(self.opened.exists)
        return value


class OpensOnce(MapFunction):
    """Cannot be opened in later attempts."""

    def open(self, runtime_context: Any) -> None:
        if runtime_context.get_attempt_number() > 0:
            raise ValueError("once is enough")

    def map(self, value: Any) -> Any:
        return value


class TwoRegions:
    """An engine with two pipelines, each in a slot of its own: slot 0 has the first one, slot 1 the second."""

    def __init__(self, first: MapFunction, second: MapFunction) -> None:
        def draw(env: StreamExecutionEnvironment) -> None:
            for name, function in (("first", first), ("second", second)):
                numbers = env.from_collection(RECORDS).slot_sharing_group(name)
                numbers.map(function).key_by(lambda n: n % 3).map(lambda n: n).print(name)

        self.job: JobGraph = graph(draw)
        self.engine = continuous_process_engine(self.job, pool=InProcessSlots(2))
        self.regions = [frozenset(of for of in regions(self.job) if self._slot_of(of) == slot) for slot in (0, 1)]
        assert self.engine.deploy(deployment(self.job)) is None

    def _slot_of(self, subtask: SubtaskId) -> int:
        return self.job.slot_of(self.job.vertices[subtask.vertex], subtask.subtask)

    def restart(self, region: int, attempt: int = 1) -> Any:
        return self.engine.deploy(deployment(self.job, attempt, only=self.regions[region]))


Draw = Callable[[MapFunction, MapFunction], TwoRegions]


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Draw]:
    made: list[TwoRegions] = []

    def make(first: MapFunction, second: MapFunction) -> TwoRegions:
        made.append(TwoRegions(first, second))
        return made[0]

    yield make
    (tmp_path / "opened").touch()
    made[0].engine.shutdown()


def run_aside(engine: ContinuousSlotEngine, order: MarkOrder) -> list[EpochResult]:
    results: list[EpochResult] = []
    running = threading.Thread(target=lambda: results.append(engine.run_epoch(order)), daemon=True)
    running.start()
    running.join(60)
    assert results, "the epoch must end"
    return results


def test_the_marks_of_the_others_are_waited_for_no_longer_than_the_delay_of_the_restart(
    two: Draw, tmp_path: Path
) -> None:
    """What the others acknowledge of that epoch comes with the next one: none of their output is lost."""
    gate = Gate(tmp_path, waits=True)
    job = two(Gate(tmp_path, waits=False), gate)
    until(gate.entered.exists)
    job.engine.set_aside(job.regions[0])
    found: list[EpochResult | None] = []
    waiting = threading.Thread(target=lambda: found.append(job.engine.run_others(MarkOrder(0), 0.05)), daemon=True)
    waiting.start()
    waiting.join(30)
    assert found == [None], "the second region is behind its gate"
    gate.opened.touch()
    assert job.restart(0) is None
    acks: list[MarkAck] = []
    for number in range(1, 1000):
        (result,) = run_aside(job.engine, MarkOrder(number))
        assert result.failure is None
        acks += result.acks
        if all(ack.finished for ack in result.acks):
            break
    lines = sorted(line for ack in acks for line in ack.lines)
    assert lines == sorted(f"{name}> {n}" for name in ("first", "second") for n in RECORDS)


def test_an_unreadable_report_of_a_region_that_goes_on_restarts_the_whole_job(two: Draw, tmp_path: Path) -> None:
    job = two(Gate(tmp_path, waits=False), Gate(tmp_path, waits=False))
    job.engine.pool.events.put(UnreadableEvent(1, "its class is gone"))
    job.engine.events()
    failure = job.restart(0)
    assert failure is not None and "its class is gone" in str(failure.error)
    assert failure.subtasks == frozenset(), "output of the second region may be lost"
    assert job.engine.deploy(deployment(job.job, 2)) is None
    assert job.engine.lost() is None, "the report was one of the attempts before"


def test_an_unreadable_report_of_the_region_that_restarts_is_forgotten(two: Draw, tmp_path: Path) -> None:
    job = two(Gate(tmp_path, waits=False), Gate(tmp_path, waits=False))
    job.engine.pool.events.put(UnreadableEvent(0, "its class is gone"))
    job.engine.events()
    assert job.restart(0) is None
    assert job.engine.lost() is None


def test_the_error_of_one_slot_does_not_hide_that_of_another_in_the_deployment_of_a_region(
    two: Draw, tmp_path: Path
) -> None:
    job = two(OpensOnce(), Gate(tmp_path, waits=False))
    other = job.engine.pool.slots[1]
    other.tell(Discard())
    assert other.answer() is None
    failure = job.restart(0)
    assert failure is not None and isinstance(failure.error, UserFunctionError)
    assert [(each.slot, type(each.error)) for each in failure.others] == [(1, SlotLostError)]
    assert "has lost the state" in str(failure.others[0].error)
    assert failure.subtasks == frozenset(), "the second region does not go on"


def test_a_region_that_cannot_be_opened_again_says_nothing_about_the_others(two: Draw, tmp_path: Path) -> None:
    job = two(OpensOnce(), Gate(tmp_path, waits=False))
    failure = job.restart(0)
    assert failure is not None and isinstance(failure.error, UserFunctionError)
    assert failure.subtasks == job.regions[0] and failure.others == ()


def test_a_late_mark_of_an_aborted_savepoint_passes_through_the_region_that_goes_on(two: Draw, tmp_path: Path) -> None:
    gate = Gate(tmp_path, waits=False)
    job = two(gate, gate)
    place = SavepointOrder(str(tmp_path / "savepoint"))
    going_on = job.engine.pool.slots[1]
    going_on.tell(BeginSavepoint(1, place))
    assert going_on.answer() is None
    job.engine.set_aside(job.regions[0])
    assert job.engine.notify_aborted(1, job.regions[0]) is None
    assert job.restart(0) is None
    late = MarkOrder(0, checkpoint_id=1, checkpoint_ms=0, savepoint=place).without_address()
    going_on.tell(OrderEpoch(1, late))  # its marks were on their way when the first region failed
    assert going_on.answer() is None
    (result,) = run_aside(job.engine, MarkOrder(1))
    assert result.failure is None
    assert {SubtaskId(ack.vertex, ack.subtask) for ack in result.acks} == job.regions[0] | job.regions[1]
    assert job.engine.events() == [], "nobody has taken a snapshot"


def test_all_errors_of_a_request_come_back_the_most_telling_first(two: Draw, tmp_path: Path) -> None:
    job = two(OpensOnce(), OpensOnce())
    failure = job.engine.deploy(deployment(job.job, 1))
    assert failure is not None
    assert [each.slot for each in (failure, *failure.others)] == [0, 1]
    assert all("once is enough" in str(each.error) for each in (failure, *failure.others))
    assert not any(isinstance(each.error, DeploymentError) for each in failure.others)
