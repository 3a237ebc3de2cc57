"""The base of engines that run jobs continuously: which flows end by themselves, and which are broken off."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from ekorn.engine.slots.continuous_engine import ContinuousSlotEngine
from ekorn.engine.slots.slot_calls import SlotCalls
from ekorn.engine.slots.slot_handle import Heartbeat, SlotHandle
from ekorn.engine.slots.slot_pool import SlotPool
from ekorn.errors import DeploymentError
from ekorn.graph.addresses import SubtaskId
from ekorn.links.link import Link
from ekorn.operators.mark import MarkOrder
from ekorn.testing import continuous_process_engine
from ekorn.testing.continuous_process_engine import ProcessFlows
from ekorn.testing.local_slots import InProcessSlots
from ekorn.testing.slot_processes import ThisMachine
from tests.slot.small_job import deployment, graph, summing


class NoSlots(SlotPool):
    """A pool whose slots do not start."""

    shares_disk = True

    def __init__(self) -> None:
        super().__init__(0, Heartbeat())
        self.sizes: list[int] = []
        self.began: list[str] = []

    def begin_replacing(self) -> None:
        self.began.append("slots")

    def _start(self, numbers: list[int], started: dict[int, SlotHandle]) -> None:
        raise DeploymentError("no slot starts")

    def resize(self, count: int) -> None:
        self.sizes.append(count)

    def _release(self) -> None:
        """Do nothing: there are no slots."""


class NotedFlows(ProcessFlows):
    """Notes how flows end."""

    def __init__(self, pool: NoSlots) -> None:
        super().__init__(pool)
        self._began = pool.began
        self.ended_in_order: list[bool] = []

    def start(self, region: int, attempt: int) -> None:
        raise AssertionError("no attempt starts")

    def end(self, ended: Collection[int], *, in_order: bool) -> None:
        assert ended == {0}
        self.ended_in_order.append(in_order)
        self._began.append("the end of flows")


class Engine(ContinuousSlotEngine):
    """Has no slots, and notes how flows end."""

    def __init__(self) -> None:
        self.graph, self.no_slots = graph(summing), NoSlots()
        self.noted = NotedFlows(self.no_slots)
        super().__init__(self.graph, SlotCalls(self.no_slots), ThisMachine(), self.noted, 1.0)


def test_the_flow_of_an_attempt_that_the_driver_gave_up_is_broken_off() -> None:
    engine = Engine()
    failure = engine.deploy(deployment(graph(summing)))  # after a checkpoint that failed, say: no subtask has
    assert failure is not None and "no slot starts" in str(failure.error)
    engine.shutdown()
    assert engine.noted.ended_in_order == [False, False]


def test_the_flow_of_subtasks_that_are_closed_ends_by_itself() -> None:
    engine = Engine()
    assert engine.close_subtasks() is None
    assert engine.noted.ended_in_order == [True]


def test_slots_start_while_the_flows_of_the_attempt_before_end() -> None:
    engine = Engine()
    engine.deploy(deployment(engine.graph))
    assert engine.no_slots.began == ["slots", "the end of flows"]
    engine.no_slots.began.clear()
    engine.set_aside(frozenset({SubtaskId(0, 0), SubtaskId(1, 0)}))
    assert engine.no_slots.began == ["slots", "the end of flows"]


def test_every_deployment_ends_the_slots_that_its_graph_does_not_need() -> None:
    """The attempt at another parallelism may have failed before its deployment: the graph is that of before then."""
    engine = Engine()
    engine.deploy(deployment(engine.graph))
    assert engine.no_slots.sizes == [engine.graph.slot_count]


def test_a_slot_that_is_gone_when_its_flow_begins_fails_the_epoch_and_not_the_driver(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(address: object, secret: bytes) -> Link:
        raise ConnectionRefusedError

    job = graph(summing)
    engine = continuous_process_engine.continuous_process_engine(job, pool=InProcessSlots(job.slot_count))
    monkeypatch.setattr(continuous_process_engine, "connect", refuse)
    assert engine.deploy(deployment(job)) is None
    failure = engine.run_epoch(MarkOrder(0)).failure
    assert failure is not None and "cannot be reached" in str(failure.error)
    engine.shutdown()
