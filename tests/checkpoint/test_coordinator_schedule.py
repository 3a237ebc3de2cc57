"""When the coordinator takes checkpoints; its other rules are in `test_coordinator.py`."""

import pytest

from ekorn.checkpoint.events import (
    CheckpointRequested,
    EpochStarting,
    JobFailed,
    JobStarted,
    StartCheckpoint,
)
from ekorn.checkpoint.schedule import CoordinatorSettings
from ekorn.errors import ConfigurationError
from tests.checkpoint.driven_coordinator import A, B, Driven, kinds


def test_triggers_follow_the_interval_and_not_the_epochs():
    job = Driven()
    assert job.started(1050) == 1
    job.complete(1, 1060)
    assert job.started(1999) is None
    assert job.started(2000) == 2


def test_triggers_missed_while_nothing_ran_are_not_made_up_for():
    job = Driven()
    assert job.started(5500) == 1
    job.complete(1, 5500)
    assert job.started(5999) is None
    assert job.started(6000) == 2


def test_a_trigger_that_finds_no_room_is_postponed_until_there_is():
    job = Driven()
    assert job.started(1000) == 1
    assert job.started(2000) is None
    assert job.started(2500) is None
    job.complete(1, 2600)
    assert job.started(2601) == 2
    job.complete(2, 2602)
    assert job.started(2999) is None
    assert job.started(3000) == 3


def test_it_is_known_when_only_the_one_under_way_holds_the_next_one_back():
    job = Driven()
    assert not job.coordinator.is_held_back(1000), "the next epoch carries it"
    assert job.started(1000) == 1
    assert not job.coordinator.is_held_back(1999)
    assert job.coordinator.is_held_back(2000)
    job.complete(1, 2001)
    assert not job.coordinator.is_held_back(2001)


def test_a_pause_holds_back_by_itself():
    job = Driven(min_pause_ms=500)
    assert job.started(1000) == 1
    assert job.coordinator.is_held_back(2000)
    job.complete(1, 2001)
    assert not job.coordinator.is_held_back(2002)


def test_so_many_may_be_under_way_at_once():
    job = Driven(max_concurrent=2)
    assert job.started(1000) == 1
    assert job.started(2000) == 2
    assert job.started(3000) is None
    assert job.coordinator.pending_ids == {1, 2}


def test_the_pause_counts_from_the_end_of_the_last_successful_checkpoint():
    job = Driven(min_pause_ms=500)
    assert job.started(1000) == 1
    job.complete(1, 1800)
    assert job.started(2000) is None
    assert job.started(2299) is None
    assert job.started(2300) == 2


def test_a_failed_checkpoint_starts_no_pause():
    job = Driven(min_pause_ms=500, tolerable_failures=9)
    assert job.started(1000) == 1
    job.fail(1, 1900)
    assert job.started(2000) == 2


def test_an_interval_shorter_than_the_pause_becomes_the_pause():
    job = Driven(interval_ms=100, min_pause_ms=700)
    assert job.started(699) is None
    assert job.started(700) == 1


def test_with_a_pause_there_is_one_at_a_time():
    job = Driven(min_pause_ms=1, max_concurrent=5)
    assert job.started(1000) == 1
    assert job.started(2000) is None


def test_a_pause_is_never_longer_than_a_year():
    assert CoordinatorSettings(interval_ms=10, min_pause_ms=10**15).pause_ms == 365 * 24 * 3600 * 1000


def test_after_a_restart_the_schedule_starts_anew():
    job = Driven()
    assert job.started(1000) == 1
    job.coordinator.handle(JobFailed(1500))
    job.coordinator.handle(JobStarted(1700))
    assert job.started(2699) is None
    assert job.started(2700) == 2


def test_the_loop_is_told_when_to_look_in_again():
    job = Driven(timeout_ms=700, min_pause_ms=100, tolerable_failures=9)
    due = job.coordinator.next_due_ms
    assert due(0) == 1000
    assert due(3000) == 3000
    job.epoch(1000)
    assert due(1001) == 1700  # the timeout; no trigger while it is in flight
    job.complete(1, 1950)
    assert due(1950) == 2050  # the pause ends after the interval
    job.coordinator.handle(CheckpointRequested(1960))
    assert due(1960) == 1960
    job.epoch(1960)
    for subtask in (A, B):
        job.answer(2, subtask)
    assert due(1970) is None  # its metadata is being written


# ---------------------------------------------------------------------------------------------------- a backlog


def test_with_a_backlog_triggers_come_at_their_own_interval():
    job = Driven(backlog_interval_ms=3000)
    coordinator = job.coordinator
    assert coordinator.handle(EpochStarting(1000, backlog=True)) == []
    assert coordinator.handle(EpochStarting(2999, backlog=True)) == []
    assert kinds(coordinator.handle(EpochStarting(3000, backlog=True))) == [StartCheckpoint]
    job.complete(1, 3000)
    assert coordinator.handle(EpochStarting(5999, backlog=True)) == []
    assert kinds(coordinator.handle(EpochStarting(5999, backlog=False))) == [StartCheckpoint]  # the backlog is gone


def test_with_a_backlog_there_may_be_no_triggers_but_requests_count():
    job = Driven(backlog_interval_ms=0)
    assert job.coordinator.handle(EpochStarting(10**6, backlog=True)) == []
    assert job.coordinator.next_due_ms(10**6) is None
    job.coordinator.handle(CheckpointRequested(10**6, "savepoint"))
    assert kinds(job.coordinator.handle(EpochStarting(10**6, backlog=True))) == [StartCheckpoint]


def test_an_interval_during_backlog_is_not_below_the_usual_one():
    CoordinatorSettings(interval_ms=1000, backlog_interval_ms=1000)
    with pytest.raises(ConfigurationError, match="interval during backlog"):
        CoordinatorSettings(interval_ms=1000, backlog_interval_ms=999)
