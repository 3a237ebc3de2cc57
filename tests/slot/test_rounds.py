"""Which subtask of a slot gets the next step, where jobs run continuously: driven round by round on a manual clock."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ekorn.clock import ManualClock
from ekorn.slot.continuous.rounds import Rounds
from ekorn.slot.user_code_lock import UserCodeLock

NEVER = float("inf")


class Turns(UserCodeLock):
    """The turn, which others want when the test says so, and which counts the pauses for readers."""

    def __init__(self) -> None:
        super().__init__()
        self.wanted = False
        self.pauses = 0

    @property
    def has_waiting_requests(self) -> bool:
        return self.wanted

    def give_way(self) -> bool:
        self.pauses += 1
        return False


class Worker:
    """A subtask with a number of steps to make, 10 ms each."""

    def __init__(self, name: str, steps: int, made: list[str], clock: ManualClock) -> None:
        self.due_at = NEVER
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


class Slot:
    """The subtasks `a`, `b` and `c` of a slot, and the steps that they have made."""

    def __init__(self, a: int, b: int, c: int) -> None:
        self.clock, self.turn, self.made = ManualClock(1_000), Turns(), list[str]()
        self.rounds = Rounds(self.turn, self.clock)
        self.pauses_s: list[float] = []  # of the last round
        steps = {"a": a, "b": b, "c": c}
        self.workers = {name: Worker(name, count, self.made, self.clock) for name, count in steps.items()}

    def run(self) -> str:
        """Make a round; return the steps."""
        self.made.clear()
        self.rounds.begin()
        subtasks = self.workers.values()
        self.pauses_s = [self.rounds.give_steps(worker, subtasks) for worker in subtasks]
        return "".join(self.made)


@pytest.fixture
def slot() -> Slot:
    return Slot(a=20, b=20, c=1)


def test_a_subtask_with_work_keeps_the_turn_for_some_steps_and_leaves_it_to_the_next(slot: Slot) -> None:
    assert slot.run() == "aaabbbc"
    assert slot.run() == "aaabbb", "who has nothing to do is passed over"
    assert slot.turn.pauses == 2 * 4 + 1, "readers of state get one between two steps, also before an empty one"


def test_nobody_sleeps_after_a_round_in_which_something_was_done(slot: Slot) -> None:
    slot.run()
    assert slot.pauses_s == [0.0, 0.0, 0.0], "the last one has nothing left, but the first ones were asked before it"
    slot.run()
    assert slot.pauses_s == [0.0, 0.0, 0.5]


def test_an_order_is_seen_by_every_subtask_after_one_step_of_the_others(slot: Slot) -> None:
    slot.workers["a"].then = lambda: slot.rounds.order_given() if len(slot.made) == 2 else None
    assert slot.run() == "aabc", "the order comes in the second step"
    slot.workers["a"].then = lambda: None
    assert slot.run() == "ab", "those that were passed before it came"
    assert slot.run() == "aaabbb"


def test_a_request_of_the_driver_waits_for_one_step(slot: Slot) -> None:
    slot.workers["a"].then = lambda: setattr(slot.turn, "wanted", True)
    assert slot.run() == "abc"
    slot.workers["a"].then = lambda: None
    slot.turn.wanted = False
    assert slot.run() == "aaabbb"


def test_the_clock_of_another_subtask_ends_the_stay(slot: Slot) -> None:
    slot.workers["c"].due_at = slot.clock.monotonic() + 0.015
    assert slot.run() == "aabc"
