"""What the driver asks of slots and hears from them: nothing that user code does keeps the driver waiting for ever."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ekorn.common import WatermarkStrategy
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.connectors.datagen import DataGeneratorSource
from ekorn.datastream.functions import MapFunction
from ekorn.engine.protocol import EpochResult, Failure
from ekorn.errors import DeploymentError
from ekorn.graph.addresses import SubtaskId
from ekorn.operators.mark import MarkOrder
from ekorn.slot_protocol.messages import Deploy, Discard
from ekorn.slot_protocol.slot_events import OperatorHint, SubtaskFailed
from ekorn.testing.continuous_process_engine import continuous_process_engine
from ekorn.testing.local_slots import InProcessSlots
from ekorn.types.by_value import dumps
from tests.live_jobs import Tracks, comes_to_rest, until
from tests.slot.small_job import deployment, graph


class Gate(MapFunction):
    """Waits in one subtask until a file exists."""

    def __init__(self, folder: Path, subtask: int = 0) -> None:
        self.entered, self.opened = str(folder / "entered"), str(folder / "opened")
        self._subtask = subtask

    def open(self, runtime_context: Any) -> None:
        self._waits = runtime_context.get_index_of_this_subtask() == self._subtask

    def map(self, value: Any) -> Any:
        if self._waits:
            Path(self.entered).touch()
            while not Path(self.opened).exists():
                time.sleep(0.01)
        return value


class Hanging:
    """An engine whose slot is inside user code, until the gate is opened."""

    def __init__(self, folder: Path) -> None:
        self.gate = Gate(folder)
        job = graph(lambda env: env.from_collection([1, 2, 3]).map(self.gate).print())
        self.engine = continuous_process_engine(job, pool=InProcessSlots(1))
        assert self.engine.deploy(deployment(job)) is None
        until(Path(self.gate.entered).exists)

    def end(self) -> None:
        Path(self.gate.opened).touch()
        self.engine.shutdown()


@pytest.fixture
def hanging(tmp_path: Path) -> Iterator[Hanging]:
    made = Hanging(tmp_path)
    yield made
    made.end()


def test_a_cancelled_job_does_not_wait_for_user_code_that_keeps_a_notification(hanging: Hanging) -> None:
    found: list[Failure | None] = []
    asking = threading.Thread(target=lambda: found.append(hanging.engine.notify_completed(1)), daemon=True)
    asking.start()
    hanging.engine.cancel_epoch()
    asking.join(30)
    assert found and found[0] is not None and "slot 0 was no longer waited for" in str(found[0].error)


def test_an_answer_that_was_given_up_is_not_taken_for_that_of_the_next_request(hanging: Hanging) -> None:
    slot, given_up = hanging.engine.pool.slots[0], threading.Event()
    given_up.set()
    slot.tell(Deploy(b"no deployment", []))
    assert isinstance(slot.answer(given_up=given_up), DeploymentError)
    Path(hanging.gate.opened).touch()
    slot.tell(Discard())
    assert slot.answer(30) is None, "the error is the answer to what was asked before"


def test_a_hint_is_there_after_the_shutdown_even_if_its_event_was_too_late() -> None:
    def in_seconds(env: StreamExecutionEnvironment) -> None:
        seconds = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: 1_700_000_000)
        env.from_collection([1]).assign_timestamps_and_watermarks(seconds).print()

    job = graph(in_seconds)
    engine = continuous_process_engine(job, pool=InProcessSlots(1))
    assert engine.deploy(deployment(job)) is None
    events: list[Any] = []
    until(lambda: events.extend(engine.events()) or any(isinstance(event, OperatorHint) for event in events))
    engine.shutdown()
    assert [event.about for event in engine.events() if isinstance(event, OperatorHint)] == ["unit"]


def test_output_that_waits_for_the_end_of_an_epoch_stops_the_sources(tmp_path: Path) -> None:
    gate, read = Gate(tmp_path, subtask=1), Tracks(tmp_path / "read")

    def printing(env: StreamExecutionEnvironment) -> None:
        source = DataGeneratorSource(lambda number: read("x" * 200_000), 6_000)
        env.from_source(source, WatermarkStrategy.no_watermarks(), "lines").map(gate).print()

    job = graph(printing, parallelism=2)
    engine = continuous_process_engine(job, pool=InProcessSlots(2))
    assert engine.deploy(deployment(job)) is None
    results: list[EpochResult] = []
    running = threading.Thread(target=lambda: results.append(engine.run_epoch(MarkOrder(0))), daemon=True)
    running.start()
    try:
        until(lambda: read.count > 0)
        until(lambda: comes_to_rest(read))
        assert read.count * 200_000 < 200 << 20, "the driver holds 64 MiB, and each queue some more"
        Path(gate.opened).touch()
        running.join(60)
        assert results and results[0].failure is None
        before = read.count
        assert engine.run_epoch(MarkOrder(1)).failure is None
        until(lambda: read.count > before)  # the sources read again behind the next mark
    finally:
        Path(gate.opened).touch()
        engine.shutdown()


class Unreadable:
    """Cannot be unpickled where it was pickled."""

    def __reduce__(self) -> Any:
        return (_fail, ())


def _fail() -> None:
    raise RuntimeError("this class is not for the driver")


class Accumulates(MapFunction):
    """Has an accumulator that the driver cannot read, or that cannot be pickled in the slot."""

    def __init__(self, value: Any) -> None:
        self._make = value

    def open(self, runtime_context: Any) -> None:
        runtime_context.add_accumulator("strange", _Strange(self._make()))

    def map(self, value: Any) -> Any:
        return value


class _Strange:
    def __init__(self, value: Any) -> None:
        self.value = value

    def add(self, value: Any) -> None:
        pass

    def get_local_value(self) -> Any:
        return None

    def reset_local(self) -> None:
        pass

    def merge(self, other: Any) -> None:
        pass

    def clone(self) -> _Strange:
        return self


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (Unreadable, "slot 0 sent a report that cannot be read in the driver: RuntimeError: this class is not"),
        (threading.Lock, "cannot be pickled"),
    ],
    ids=["unreadable", "unpicklable"],
)
def test_an_event_that_cannot_be_read_fails_the_attempt(make: Any, said: str) -> None:
    job = graph(lambda env: env.from_collection([1, 2, 3]).map(Accumulates(make)).print())
    engine = continuous_process_engine(job, pool=InProcessSlots(1))
    try:
        assert engine.deploy(deployment(job)) is None
        results: list[EpochResult] = []
        running = threading.Thread(target=lambda: results.append(engine.run_epoch(MarkOrder(0))), daemon=True)
        running.start()
        running.join(30)
        assert results, "the driver must not wait for an acknowledgement that it could not read"
        assert results[0].failure is not None and said in str(results[0].failure.error)
        assert engine.deploy(deployment(job, 1)) is None
        assert engine.lost() is None, "the failure was that of the attempt before"
    finally:
        engine.shutdown()


def test_an_error_that_cannot_be_read_fails_the_attempt_all_the_same() -> None:
    job = graph(lambda env: env.from_collection([1, 2, 3]).print())
    engine = continuous_process_engine(job, pool=InProcessSlots(1))
    try:
        assert engine.deploy(deployment(job)) is None
        engine.pool.events.put(SubtaskFailed(0, SubtaskId(0, 0), dumps(Unreadable())))
        failure = engine.run_epoch(MarkOrder(0)).failure
        assert failure is not None and "its error cannot be read in the driver" in str(failure.error)
    finally:
        engine.shutdown()
