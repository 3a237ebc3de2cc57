"""The base of engines that run jobs continuously: which flows end by themselves, and which are broken off."""

from __future__ import annotations

from collections.abc import Callable

from tamias.engine.slots.continuous_engine import ContinuousSlotEngine
from tamias.engine.slots.event_queue import EventQueue
from tamias.engine.slots.slot_handle import SlotHandle
from tamias.errors import DeploymentError
from tamias.slot.deployment import Deployment
from tamias.slot.slot_events import SlotActivity
from tests.slot.small_job import deployment, graph, summing


class NoSlots:
    """A pool whose slots do not start."""

    def __init__(self) -> None:
        self.secret = b""
        self.slots: list[SlotHandle] = []
        self.events = EventQueue()
        self.shares_disk = True
        self.on_lost: Callable[[int], None] = lambda number: None
        self.on_activity: Callable[[int, SlotActivity], None] = lambda number, activity: None

    def ensure(self) -> list[int]:
        raise DeploymentError("no slot starts")

    def shutdown(self) -> None:
        """Do nothing: there are no slots."""


class Engine(ContinuousSlotEngine):
    """Notes how flows end."""

    def __init__(self) -> None:
        super().__init__(graph(summing), NoSlots(), 1.0)
        self.ended_in_order: list[bool] = []

    def _start_flow(self, deployment: Deployment) -> None:
        raise AssertionError("no attempt starts")

    def _end_flow(self, *, in_order: bool) -> None:
        self.ended_in_order.append(in_order)

    def _cancel_levels(self) -> None:
        """Do nothing: no epoch runs."""

    def _slot_lost(self, number: int) -> None:
        """Do nothing: there are no slots."""

    def _epoch_stalled(self) -> None:
        """Do nothing: no epoch runs."""


def test_the_flow_of_an_attempt_that_the_driver_gave_up_is_broken_off() -> None:
    engine = Engine()
    failure = engine.deploy(deployment(graph(summing)))  # after a checkpoint that failed, say: no subtask has
    assert failure is not None and "no slot starts" in str(failure.error)
    engine.shutdown()
    assert engine.ended_in_order == [False, False]


def test_the_flow_of_subtasks_that_are_closed_ends_by_itself() -> None:
    engine = Engine()
    assert engine.close_subtasks() is None
    assert engine.ended_in_order == [True]
