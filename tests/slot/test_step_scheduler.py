"""Which subtask of a slot gets the next step, and what it does then: the schedulers alone, without threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ekorn.clock import ManualClock
from ekorn.graph.addresses import SubtaskId
from ekorn.slot.continuous.step_scheduler import (
    EmitWatermarks,
    FireTimers,
    Flush,
    Poll,
    RunStep,
    StepScheduler,
    SubtaskScheduler,
    TakeInput,
    Wait,
    Yield,
)

NEVER = float("inf")
NAMES = {SubtaskId(number, 0): name for number, name in enumerate("abc")}


class Worker:
    """A subtask with a number of steps to make, 10 ms each."""

    def __init__(self, steps: int) -> None:
        self.due_at = NEVER
        self.then: Callable[[], None] = lambda: None  # called in a step
        self.left = steps


class Slot:
    """The subtasks `a`, `b` and `c` of a slot, and the steps that they have made."""

    def __init__(self, a: int, b: int, c: int) -> None:
        self.clock, self.made = ManualClock(1_000), list[str]()
        self.scheduler = StepScheduler()
        self.scheduler.set_subtasks(NAMES)
        self.pauses = 0  # for readers of state
        self.orders_given, self.request_waits = 0, False
        self.ended: Yield | Wait | None = None  # what the last round ended with
        self.workers = {"a": Worker(a), "b": Worker(b), "c": Worker(c)}

    def run(self) -> str:
        """Make a round; return the steps."""
        self.made.clear()
        while isinstance(action := self.next(), RunStep):
            self.pauses += action.continues
            self.step(NAMES[action.subtask])
        self.ended = action
        return "".join(self.made)

    def next(self) -> RunStep | Yield | Wait:
        return self.scheduler.next(
            self.clock.monotonic(), orders_given=self.orders_given, request_waits=self.request_waits
        )

    def step(self, name: str) -> None:
        worker = self.workers[name]
        if not worker.left:
            self.scheduler.stepped(0.5, worker.due_at)
            return
        worker.left -= 1
        self.made.append(name)
        self.clock.advance(10)
        worker.then()
        self.scheduler.stepped(0.0, worker.due_at)


@pytest.fixture
def slot() -> Slot:
    return Slot(a=20, b=20, c=1)


def test_a_subtask_with_work_keeps_the_thread_for_some_steps_and_leaves_it_to_the_next(slot: Slot) -> None:
    assert slot.run() == "aaabbbc"
    assert slot.run() == "aaabbb", "a subtask without work is passed over"
    assert slot.pauses == 2 * 4 + 1, "readers of state get one between two steps, also before an empty one"


def test_the_time_slice_ends_after_25_ms(slot: Slot) -> None:
    slot.workers["a"].then = lambda: slot.clock.advance(3) if len(slot.made) == 2 else None
    assert slot.run()[:3] == "aaa", "after 23 ms there is time for one more step"
    slot.workers["a"].then = lambda: slot.clock.advance(6) if len(slot.made) == 2 else None
    assert slot.run()[:3] == "aab", "26 ms are over"


def test_the_thread_does_not_sleep_after_a_round_in_which_a_subtask_worked(slot: Slot) -> None:
    slot.run()
    assert slot.ended == Yield(), "the last subtask has nothing left, but the first ones were asked before it"
    slot.run()
    assert slot.ended == Yield()


def test_the_thread_sleeps_for_the_shortest_wait_of_a_round_without_work() -> None:
    slot = Slot(a=0, b=0, c=0)
    waits = {"a": 0.3, "b": 0.125, "c": 0.25}
    for name, wait_s in waits.items():
        assert slot.next() == RunStep(next(of for of in NAMES if NAMES[of] == name), continues=False)
        slot.scheduler.stepped(wait_s, NEVER)
    assert slot.next() == Wait(0.125)
    assert isinstance(slot.next(), RunStep), "then all are asked again"


def test_the_wait_of_one_round_is_not_that_of_the_next() -> None:
    slot = Slot(a=0, b=0, c=0)
    for wait_s in (0.001, 0.25):
        for _ in NAMES:
            slot.next()
            slot.scheduler.stepped(wait_s, NEVER)
        assert slot.next() == Wait(wait_s)


def test_the_thread_sleeps_no_longer_than_half_a_second() -> None:
    slot = Slot(a=0, b=0, c=0)
    for _ in NAMES:
        slot.next()
        slot.scheduler.stepped(3600.0, NEVER)
    assert slot.next() == Wait(0.5)


def test_all_subtasks_are_asked_again_after_work_even_if_it_was_that_of_the_last() -> None:
    slot = Slot(a=0, b=0, c=1)
    assert (slot.run(), slot.ended) == ("c", Yield()), "its work may have given the others something to do"
    assert (slot.run(), slot.ended) == ("", Wait(0.5))


def test_a_slot_without_subtasks_waits() -> None:
    scheduler = StepScheduler()
    for _ in range(2):
        assert scheduler.next(1.0, orders_given=0, request_waits=False) == Wait(0.5)


def test_an_order_is_seen_by_every_subtask_after_one_step_of_the_others(slot: Slot) -> None:
    slot.workers["a"].then = lambda: setattr(slot, "orders_given", int(len(slot.made) >= 2))
    assert slot.run() == "aabc", "the order comes in the second step"
    slot.workers["a"].then = lambda: None
    assert slot.run() == "ab", "those that were passed before it came"
    assert slot.run() == "aaabbb"


def test_an_order_between_two_rounds_gives_every_subtask_one_step(slot: Slot) -> None:
    slot.run()
    slot.orders_given += 1
    assert slot.run() == "ab"
    assert slot.run() == "aaabbb"


def test_a_request_of_the_driver_waits_for_one_step(slot: Slot) -> None:
    slot.workers["a"].then = lambda: setattr(slot, "request_waits", True)
    assert slot.run() == "abc"
    slot.workers["a"].then = lambda: None
    slot.request_waits = False
    assert slot.run() == "aaabbb"


def test_the_clock_of_another_subtask_ends_the_time_slice(slot: Slot) -> None:
    steps = {name: worker.left for name, worker in slot.workers.items()}
    for worker in slot.workers.values():
        worker.left = 0
    slot.workers["c"].due_at = slot.clock.monotonic() + 0.015
    assert slot.run() == ""
    for name, worker in slot.workers.items():
        worker.left = steps[name]
    assert slot.run() == "aabc"


def test_a_clock_that_is_due_gives_every_subtask_one_step_until_it_was_followed(slot: Slot) -> None:
    slot.workers["c"].due_at = 0.0
    assert slot.run() == "aaabbbc", "it is told in the step of the last subtask"
    assert slot.run() == "ab"
    slot.workers["c"].due_at = NEVER
    assert slot.run() == "ab"
    assert slot.run() == "aaabbb"


def test_readers_are_answered_before_a_further_step_and_not_before_the_first(slot: Slot) -> None:
    first = SubtaskId(0, 0)
    assert slot.next() == RunStep(first, continues=False)
    slot.step("a")
    assert slot.next() == RunStep(first, continues=True)


def test_subtasks_that_end_in_a_round_are_not_asked_any_more(slot: Slot) -> None:
    assert slot.next() == RunStep(SubtaskId(0, 0), continues=False)
    slot.scheduler.set_subtasks([SubtaskId(1, 0), SubtaskId(2, 0)])  # the first one has failed in its step
    assert slot.next() == RunStep(SubtaskId(1, 0), continues=False), "a new round begins"


def test_subtasks_that_go_on_keep_their_clocks(slot: Slot) -> None:
    for due_at in (NEVER, slot.clock.monotonic(), NEVER):
        slot.next()
        slot.scheduler.stepped(0.5, due_at)
    slot.scheduler.set_subtasks([SubtaskId(0, 0), SubtaskId(1, 0)])
    slot.next()
    slot.scheduler.stepped(0.0, NEVER)
    assert slot.next() == RunStep(SubtaskId(1, 0), continues=False), "its clock is due"


# ------------------------------------------------------------------------------------------------ a step of a subtask

IDLE: dict[str, Any] = {
    "output_is_full": False,
    "may_take": False,
    "may_read": False,
    "timer_in_s": NEVER,
    "overtakes_in_s": NEVER,
}


def scheduler_of(*, watermark_interval_s: float = 0.0, buffer_timeout_s: float | None = 0.125) -> SubtaskScheduler:
    scheduler = SubtaskScheduler(watermark_interval_s, buffer_timeout_s)
    scheduler.start(0.0)
    return scheduler


def action_of(scheduler: SubtaskScheduler, now: float, **flags: Any) -> object:
    return scheduler.next(now, **(IDLE | flags))


def take(scheduler: SubtaskScheduler, now: float, *, more_waits: bool) -> TakeInput:
    action = action_of(scheduler, now, may_take=True)
    assert isinstance(action, TakeInput)
    scheduler.took(now, action, more_waits=more_waits)
    return action


def poll(scheduler: SubtaskScheduler, now: float, *, has_backlog: bool = False, has_finished: bool = False) -> Poll:
    action = action_of(scheduler, now, may_read=True)
    assert isinstance(action, Poll)
    scheduler.polled(now, action, has_backlog=has_backlog, has_finished=has_finished)
    return action


def test_a_subtask_without_anything_to_do_waits() -> None:
    scheduler = scheduler_of()
    assert action_of(scheduler, 1.0) == Wait(0.5)
    assert scheduler.due_at == 1.5


def test_a_full_output_stops_everything_but_marks_that_overtake() -> None:
    scheduler = scheduler_of(watermark_interval_s=0.25)
    flags = {"output_is_full": True, "may_take": True, "may_read": True, "timer_in_s": 0.0}
    assert action_of(scheduler, 10.0, **flags) == Wait(0.5)
    assert scheduler.due_at == NEVER, "no clock of it ends the time slice of another subtask"
    assert action_of(scheduler, 10.0, **flags, overtakes_in_s=0.125) == Wait(0.125)
    assert scheduler.due_at == 10.125
    assert action_of(scheduler, 10.0, **flags, overtakes_in_s=2.0) == Wait(0.5)


def test_the_clock_comes_before_input_and_watermarks_before_timers() -> None:
    scheduler = scheduler_of(watermark_interval_s=0.25)
    flags = {"may_take": True, "may_read": True, "timer_in_s": 0.0}
    actions = [action_of(scheduler, 0.25, **flags) for _ in range(3)]
    assert actions == [EmitWatermarks(), FireTimers(), TakeInput(gathers=False, flushes=True)]


def test_watermarks_are_emitted_at_their_interval() -> None:
    scheduler = scheduler_of(watermark_interval_s=0.25)
    assert action_of(scheduler, 0.125) == Wait(0.125)
    assert action_of(scheduler, 0.25) == EmitWatermarks()
    assert action_of(scheduler, 0.25) == Wait(0.25)
    assert scheduler.due_at == 0.5
    assert action_of(scheduler, 0.75) == EmitWatermarks(), "a late one is not made up for"
    assert action_of(scheduler, 0.75) == Wait(0.25)


def test_the_first_watermark_comes_an_interval_after_the_start() -> None:
    scheduler = SubtaskScheduler(0.25, None)
    scheduler.start(8.0)
    assert action_of(scheduler, 8.0) == Wait(0.25)


def test_no_watermark_is_emitted_without_an_interval() -> None:
    assert action_of(scheduler_of(), 1e9) == Wait(0.5)


def test_a_timer_fires_when_it_is_due() -> None:
    scheduler = scheduler_of()
    assert action_of(scheduler, 1.0, timer_in_s=0.25) == Wait(0.25)
    assert scheduler.due_at == 1.25
    assert action_of(scheduler, 1.25, timer_in_s=0.0) == FireTimers()
    assert action_of(scheduler, 1.25) == Wait(0.5), "there is no other"


def test_timers_that_are_always_due_leave_time_for_records() -> None:
    scheduler = scheduler_of()
    flags = {"may_take": True, "timer_in_s": -0.5}
    assert action_of(scheduler, 1.0, **flags) == FireTimers()
    assert isinstance(action_of(scheduler, 1.0, **flags), TakeInput)
    assert isinstance(action_of(scheduler, 1.0005, **flags), TakeInput), "timers are looked at once a millisecond"
    assert action_of(scheduler, 1.001, **flags) == FireTimers()


def test_the_thread_does_not_wake_more_than_once_a_millisecond_for_timers() -> None:
    scheduler = scheduler_of()
    assert action_of(scheduler, 1.0, timer_in_s=0.0001) == Wait(0.001)
    assert action_of(scheduler, 1.0, timer_in_s=0.0) == FireTimers()
    waits = action_of(scheduler, 1.0005, timer_in_s=0.0)
    assert isinstance(waits, Wait) and waits.seconds == pytest.approx(0.0005)


def test_a_mark_that_is_to_overtake_is_due_like_a_timer() -> None:
    scheduler = scheduler_of()
    assert action_of(scheduler, 1.0, overtakes_in_s=0.125) == Wait(0.125)
    assert scheduler.due_at == 1.125


def test_input_comes_before_a_poll() -> None:
    assert isinstance(action_of(scheduler_of(), 1.0, may_take=True, may_read=True), TakeInput)


def test_the_first_output_leaves_at_once_and_that_of_the_next_millisecond_together() -> None:
    scheduler = scheduler_of()
    assert not take(scheduler, 1.0, more_waits=False).gathers
    assert take(scheduler, 1.0003, more_waits=False).gathers
    assert take(scheduler, 1.0006, more_waits=False).gathers
    waits = action_of(scheduler, 1.0006)
    assert isinstance(waits, Wait) and waits.seconds == pytest.approx(0.0004)
    assert action_of(scheduler, 1.0011) == Flush()
    assert action_of(scheduler, 1.0011) == Wait(0.5), "nothing waits any more"
    assert take(scheduler, 1.0015, more_waits=False).gathers, "output has left less than a millisecond ago"
    assert not take(scheduler, 1.0025, more_waits=False).gathers


def test_gathered_output_does_not_count_as_the_clock_of_the_subtask() -> None:
    scheduler = scheduler_of()
    take(scheduler, 1.0, more_waits=False)
    take(scheduler, 1.0003, more_waits=False)
    action_of(scheduler, 1.0006)
    assert scheduler.due_at == pytest.approx(1.5006)


def test_output_is_gathered_no_longer_than_the_buffer_timeout() -> None:
    scheduler = scheduler_of(buffer_timeout_s=0.0)
    take(scheduler, 1.0, more_waits=False)
    assert take(scheduler, 1.0003, more_waits=False) == TakeInput(gathers=False, flushes=True)


def test_output_that_waits_for_more_input_leaves_after_the_buffer_timeout() -> None:
    scheduler = scheduler_of()
    times = (0.0625, 0.125, 0.1875, 0.25, 0.3125)
    assert [take(scheduler, now, more_waits=True).flushes for now in times] == [False, True, False, True, False]


def test_the_buffer_timeout_begins_when_everything_has_left() -> None:
    scheduler = scheduler_of()
    take(scheduler, 0.0625, more_waits=False)
    assert not take(scheduler, 0.125, more_waits=True).flushes
    assert take(scheduler, 0.1875, more_waits=True).flushes


def test_without_a_buffer_timeout_output_waits_until_blobs_are_full() -> None:
    scheduler = scheduler_of(buffer_timeout_s=None)
    assert not any(take(scheduler, now, more_waits=True).flushes for now in (1.0, 100.0))
    assert not any(poll(scheduler_of(buffer_timeout_s=None), now, has_backlog=True).flushes for now in (1.0, 100.0))


def test_output_of_input_that_operators_do_not_accept_leaves_when_it_was_gathered() -> None:
    scheduler = scheduler_of()
    take(scheduler, 1.0, more_waits=True)
    assert action_of(scheduler, 1.5) == Flush(), "more waits, but may not be taken"


def test_a_source_without_a_backlog_is_polled_every_four_milliseconds() -> None:
    scheduler = scheduler_of()
    poll(scheduler, 1.0)
    waits = action_of(scheduler, 1.001, may_read=True)
    assert isinstance(waits, Wait) and waits.seconds == pytest.approx(0.003)
    poll(scheduler, 1.004)


@pytest.mark.parametrize("outcome", ["has_backlog", "has_finished"])
def test_a_source_with_a_backlog_or_at_its_end_is_asked_at_once(outcome: str) -> None:
    scheduler = scheduler_of()
    poll(scheduler, 1.0, **{outcome: True})
    poll(scheduler, 1.0)


def test_output_of_a_source_with_a_backlog_leaves_after_the_buffer_timeout() -> None:
    scheduler = scheduler_of()
    poll(scheduler, 1.0)  # all output has left
    times = (1.0625, 1.125, 1.1875, 1.25)
    assert [poll(scheduler, now, has_backlog=True).flushes for now in times] == [False, True, False, True]


def test_the_buffer_timeout_begins_with_the_last_poll_of_a_source_without_a_backlog() -> None:
    scheduler = scheduler_of()
    poll(scheduler, 1.0)
    poll(scheduler, 1.0625)
    assert not poll(scheduler, 1.15, has_backlog=True).flushes


def test_gathered_output_leaves_before_the_source_is_polled() -> None:
    scheduler = scheduler_of()
    take(scheduler, 1.0, more_waits=True)
    assert action_of(scheduler, 1.5, may_read=True) == Flush()
    assert action_of(scheduler, 1.5, may_read=True) == Poll(flushes=False), "it has just left"


def test_the_shortest_wait_counts() -> None:
    scheduler = scheduler_of(watermark_interval_s=0.25)
    poll(scheduler, 0.0)
    waits = [
        action_of(scheduler, 0.0, may_read=True, timer_in_s=0.125),
        action_of(scheduler, 0.0, timer_in_s=0.125),
        action_of(scheduler, 0.0, timer_in_s=0.125, overtakes_in_s=0.0625),
        action_of(scheduler, 0.0),
    ]
    assert waits == [Wait(0.004), Wait(0.125), Wait(0.0625), Wait(0.25)]
