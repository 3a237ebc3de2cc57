"""When an epoch counts as stalled."""

from __future__ import annotations

from ekorn.engine.slots.slot_engine import EpochWatch
from ekorn.graph.addresses import SubtaskId
from ekorn.slot_protocol.slot_events import SlotActivity


def activity(messages: int, *, in_user_code: bool = False, epoch: int = 1, answered: tuple[SubtaskId, ...] = ()):
    return SlotActivity(epoch, frozenset(answered), messages, in_user_code)


def watch_with_reports() -> EpochWatch:
    """Return a watch with a timeout of 10 s, of an epoch that began at 0 and whose two slots last moved at 1."""
    watch = EpochWatch(10.0)
    watch.begin(1, range(2), 0.0)
    watch.observe(0, activity(5), 1.0)
    watch.observe(1, activity(5), 1.0)
    return watch


def test_an_epoch_in_which_no_slot_moves_stalls_once() -> None:
    watch = watch_with_reports()
    assert not watch.observe(0, activity(5), 10.0)
    assert not watch.observe(1, activity(5), 10.0)
    assert not watch.observe(0, activity(5), 11.0), "slot 1 has not confirmed the silence"
    assert watch.observe(1, activity(5), 11.0)
    assert not watch.observe(0, activity(5), 12.0)
    assert watch.end()


def test_one_slot_that_moves_keeps_the_epoch_alive() -> None:
    watch = watch_with_reports()
    for now in range(2, 40):
        assert not watch.observe(0, activity(5), now)
        assert not watch.observe(1, activity(5 + now), now)
    assert not watch.end()


def test_one_slot_inside_user_code_keeps_the_epoch_alive() -> None:
    watch = watch_with_reports()
    for now in range(2, 40):
        assert not watch.observe(0, activity(5), now)
        assert not watch.observe(1, activity(5, in_user_code=True), now)


def test_a_silent_slot_is_left_to_the_heartbeat() -> None:
    watch = watch_with_reports()
    assert not any(watch.observe(0, activity(5), now) for now in range(2, 40))


def test_time_between_epochs_does_not_count() -> None:
    watch = watch_with_reports()
    watch.end()
    assert not any(watch.observe(slot, activity(5), now) for now in range(2, 40) for slot in (0, 1))
    watch.begin(2, range(2), 40.0)
    assert not any(watch.observe(slot, activity(5), 49.0) for slot in (0, 1))
    assert not watch.observe(0, activity(5), 50.0)
    assert watch.observe(1, activity(5), 50.0)


def test_an_excused_epoch_gets_the_full_time_again() -> None:
    watch = watch_with_reports()
    watch.observe(0, activity(5), 11.0)
    assert watch.observe(1, activity(5), 11.0)
    watch.excuse(11.0)
    assert not any(watch.observe(slot, activity(5), 20.0) for slot in (0, 1))
    assert not watch.observe(0, activity(5), 21.0)
    assert watch.observe(1, activity(5), 21.0)


def test_subtasks_that_have_not_answered_are_named() -> None:
    watch = watch_with_reports()
    ran, waits = SubtaskId(0, 0), SubtaskId(1, 0)
    watch.observe(0, activity(6, answered=(ran,)), 2.0)
    watch.observe(1, activity(6, epoch=0, answered=(waits,)), 2.0)
    assert watch.unanswered(1, [ran, waits]) == [waits]
