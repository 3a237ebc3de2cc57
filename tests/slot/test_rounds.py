"""Which subtask of a slot gets the next step, where jobs run continuously: driven round by round on a manual clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest

from tamias.clock import ManualClock
from tamias.graph.addresses import SubtaskId
from tamias.operators.epoch import EpochOrder
from tamias.slot.event_reports import Reports
from tamias.slot.host import SlotHost
from tamias.slot.mailbox import Mailbox
from tamias.slot.turn import Turn

NEVER = float("inf")


class Turns(Turn):
    """The turn, which others want when the test says so, and which counts the pauses for readers."""

    def __init__(self) -> None:
        super().__init__()
        self.wanted = False
        self.pauses = 0

    @property
    def is_wanted(self) -> bool:
        return self.wanted

    def give_way(self) -> bool:
        self.pauses += 1
        return False


class Worker:
    """A subtask with a number of steps to make, 10 ms each."""

    def __init__(self, name: str, steps: int, made: list[str], clock: ManualClock) -> None:
        self.due_at = NEVER
        self.orders = 0
        self.then: Callable[[], None] = lambda: None  # called in a step
        self._name = name
        self._left = steps
        self._made = made
        self._clock = clock

    def step(self, now: float) -> float:
        assert now == self._clock.monotonic(), "a step begins at the time that it is told"
        if not self._left:
            return 0.5
        self._left -= 1
        self._made.append(self._name)
        self._clock.advance(10)
        self.then()
        return 0.0

    def give_order(self, order: EpochOrder) -> None:
        self.orders += 1


class Rounds:
    """A mailbox, its subtasks `a`, `b` and `c`, and the steps that they have made."""

    def __init__(self, a: int, b: int, c: int) -> None:
        self.clock, self.turn, self.made = ManualClock(1_000), Turns(), list[str]()
        self.host = SlotHost(0, self.clock, lambda event: None)
        self.mailbox = Mailbox(self.host, self.turn, self.clock, Reports())
        steps = {"a": a, "b": b, "c": c}
        self.workers = {name: Worker(name, count, self.made, self.clock) for name, count in steps.items()}
        of_slot = {SubtaskId(number, 0): worker for number, worker in enumerate(self.workers.values())}
        self.mailbox._desks = cast(Any, of_slot)

    def run(self) -> str:
        """Make a round; return the steps."""
        self.made.clear()
        self.mailbox._round()
        return "".join(self.made)


@pytest.fixture
def rounds() -> Iterator[Rounds]:
    made = Rounds(a=20, b=20, c=1)
    yield made
    made.host.shutdown()


def test_a_subtask_with_work_keeps_the_turn_for_some_steps_and_leaves_it_to_the_next(rounds: Rounds) -> None:
    assert rounds.run() == "aaabbbc"
    assert rounds.run() == "aaabbb", "who has nothing to do is passed over"
    assert rounds.turn.pauses == 2 * 4 + 1, "readers of state get one between two steps, also before an empty one"


def test_an_order_is_seen_by_every_subtask_after_one_step_of_the_others(rounds: Rounds) -> None:
    rounds.workers["a"].then = lambda: rounds.mailbox.order(EpochOrder(0)) if len(rounds.made) == 2 else None
    assert rounds.run() == "aabc", "the order comes in the second step"
    rounds.workers["a"].then = lambda: None
    assert [worker.orders for worker in rounds.workers.values()] == [1, 1, 1]
    assert rounds.run() == "ab", "those that were passed before it came"
    assert rounds.run() == "aaabbb"


def test_a_request_of_the_driver_waits_for_one_step(rounds: Rounds) -> None:
    rounds.workers["a"].then = lambda: setattr(rounds.turn, "wanted", True)
    assert rounds.run() == "abc"
    rounds.workers["a"].then = lambda: None
    rounds.turn.wanted = False
    assert rounds.run() == "aaabbb"


def test_the_clock_of_another_subtask_ends_the_stay(rounds: Rounds) -> None:
    rounds.workers["c"].due_at = rounds.clock.monotonic() + 0.015
    assert rounds.run() == "aabc"
