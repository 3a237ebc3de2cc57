"""The rules of checkpointing, one by one.

`test_coordinator_model.py` runs any sequence of events, `test_coordinator_schedule.py` tests the schedule.
"""

import pytest

from ekorn.checkpoint.coordinator import CheckpointCoordinator
from ekorn.checkpoint.events import (
    BarrierPassed,
    CheckpointRequested,
    DiscardFiles,
    EpochStarting,
    FailJob,
    JobFailed,
    JobStarted,
    MetadataFailed,
    NotifyAborted,
    NotifyComplete,
    RefuseRequest,
    SnapshotDone,
    StartCheckpoint,
    WriteMetadata,
)
from ekorn.checkpoint.schedule import CoordinatorSettings
from ekorn.errors import ConfigurationError
from ekorn.graph.addresses import SubtaskId
from tests.checkpoint.driven_coordinator import A, B, Driven, kinds, snapshot

# ------------------------------------------------------------------------------------------ the cycle


def test_a_checkpoint_completes_when_the_last_subtask_has_answered():
    job = Driven()
    assert job.epoch(999) == []
    assert job.epoch(1000) == [StartCheckpoint(1, frozenset({A, B}))]
    assert job.coordinator.handle(BarrierPassed(1, 1100)) == []
    assert job.answer(1, A, 1200) == []
    (write,) = job.answer(1, B, 1300)
    assert isinstance(write, WriteMetadata)
    assert (write.checkpoint_id, write.triggered_ms, write.finished) == (1, 1000, frozenset())
    assert [(s.vertex, s.subtask) for s in write.snapshots] == [A, B]
    assert job.written(1, 1400) == [NotifyComplete(1)]
    assert job.coordinator.last_completed_id == 1
    (stats,) = job.coordinator.history
    assert (stats.completed, stats.triggered_ms, stats.barrier_ms, stats.ended_ms) == (True, 1000, 1100, 1400)
    assert stats.bytes_written == 20
    job.epoch(2000)
    job.coordinator.handle(JobFailed(2100))
    stats = job.coordinator.history[-1]
    assert (stats.completed, stats.barrier_ms, stats.ended_ms, stats.why) == (False, None, 2100, "the job failed")
    assert (stats.bytes_written, stats.longest_sync_ms, stats.longest_async_ms) == (0, 0, 0)


def test_the_last_hundred_checkpoints_are_kept_for_display():
    job = Driven(tolerable_failures=None, timeout_ms=999)
    for number in range(1, 121):
        job.epoch(1000 * number)
        job.tick(1000 * number + 999)  # each expires before the next is due
    assert [stats.checkpoint_id for stats in job.coordinator.history] == list(range(21, 121))


def test_nothing_happens_before_the_job_started_and_without_an_interval():
    idle = CheckpointCoordinator({A}, CoordinatorSettings(interval_ms=10))
    assert idle.handle(EpochStarting(10**9)) == []
    assert idle.next_due_ms(0) is None
    off = Driven(interval_ms=None)
    assert off.epoch(10**9) == []
    assert off.coordinator.next_due_ms(0) is None


def test_ids_count_up_from_the_first_and_past_a_restored_one():
    job = Driven(first_id=41)
    assert job.started(1000) == 41
    job.coordinator.handle(JobFailed(1100))
    job.coordinator.handle(JobStarted(2000, restored_id=50))
    assert job.started(3000) == 51
    job.coordinator.handle(JobFailed(3100))
    job.coordinator.handle(JobStarted(4000, restored_id=7))
    assert job.started(5000) == 52


@pytest.mark.parametrize(
    "wrong",
    [{"interval_ms": 9}, {"timeout_ms": 9}, {"min_pause_ms": -1}, {"max_concurrent": 0}, {"tolerable_failures": -1}],
)
def test_settings_out_of_range_are_refused(wrong):
    with pytest.raises(ConfigurationError, match="at least"):
        CoordinatorSettings(**{"interval_ms": 1000, **wrong})


# ------------------------------------------------------------------------------------------ requests


def test_a_request_waits_for_neither_interval_nor_pause():
    job = Driven(min_pause_ms=1000)
    assert job.started(1000) == 1
    job.complete(1, 1001)
    assert job.coordinator.handle(CheckpointRequested(1002, request_id="last")) == []
    (start,) = job.epoch(1003)
    assert (start.checkpoint_id, start.request_id) == (2, "last")
    job.complete(2, 1004)
    assert job.started(1005) is None, "a request starts one checkpoint"


def test_a_request_waits_for_room_unless_forced():
    job = Driven()
    job.epoch(1000)
    job.coordinator.handle(CheckpointRequested(1001))
    assert job.started(1002) is None
    job.coordinator.handle(CheckpointRequested(1003, forced=True, request_id="forced"))
    (start,) = job.epoch(1004)
    assert start.request_id == "forced"


def test_nothing_is_begun_behind_the_savepoint_that_a_job_is_to_be_cancelled_with():
    job = Driven(max_concurrent=3)
    job.coordinator.handle(CheckpointRequested(1, kind="savepoint", forced=True, last=True))
    job.coordinator.handle(CheckpointRequested(1, kind="savepoint", forced=True, request_id="another"))
    assert [job.started(2), job.started(1003), job.started(2003)] == [1, None, None]
    assert job.coordinator.next_due_ms(2003) == 600_002  # the timeout of the one in flight
    job.fail(1, 2004)
    assert [job.started(2005), job.started(2006)] == [2, 3]  # the job keeps running, and so do its checkpoints


def test_savepoints_come_first_then_forced_then_older():
    job = Driven(max_concurrent=9, interval_ms=None)
    for number, (kind, forced) in enumerate(
        [("checkpoint", False), ("checkpoint", True), ("savepoint", False), ("savepoint", True), ("savepoint", False)]
    ):
        job.coordinator.handle(CheckpointRequested(0, kind=kind, forced=forced, request_id=str(number)))  # type: ignore[arg-type]
    order = [job.epoch(now_ms)[0].request_id for now_ms in range(5)]
    assert order == ["3", "2", "4", "1", "0"]


def test_a_savepoint_is_not_subsumed_starts_no_pause_and_its_failure_does_not_count():
    job = Driven(max_concurrent=2)
    job.coordinator.handle(CheckpointRequested(0, kind="savepoint"))
    assert job.started(10) == 1
    assert job.started(1000) == 2
    assert job.complete(2, 1100) == [NotifyComplete(2)]
    assert job.coordinator.pending_ids == {1}
    assert kinds(job.fail(1)) == [NotifyAborted, DiscardFiles]
    assert job.coordinator.last_completed_id == 2


# ------------------------------------------------------------------------------------------ failures


def test_a_checkpoint_that_is_too_slow_expires_and_says_who_is_missing():
    job = Driven(timeout_ms=500, tolerable_failures=1)
    job.epoch(1000)
    job.answer(1, A, 1100)
    assert job.tick(1499) == []
    aborted, discard = job.tick(1500)
    assert isinstance(aborted, NotifyAborted)
    assert "500 ms" in aborted.why
    assert "subtask 1 of vertex 0" in aborted.why
    assert discard == DiscardFiles(1, ("shared/1-0",), directory=True)


def test_a_late_answer_is_ignored_and_its_files_are_discarded():
    job = Driven(timeout_ms=500, tolerable_failures=1)
    job.epoch(1000)
    job.tick(1500)
    (late,) = job.answer(1, B, 1600)
    assert late == DiscardFiles(1, ("shared/1-1",), directory=False), "the checkpoint was deleted when it was aborted"
    assert job.answer(1, A, 1700) == [DiscardFiles(1, ("shared/1-0",))]


def test_files_of_older_checkpoints_are_never_discarded_with_a_late_answer():
    job = Driven(timeout_ms=500, tolerable_failures=1, first_id=5)
    job.epoch(1000)
    job.tick(1500)
    late = snapshot(A, "shared/3-x", "chk-5/y", "shared/5-z", "taskowned/5-w")
    assert job.coordinator.handle(SnapshotDone(5, late, 1600)) == [DiscardFiles(5, ("chk-5/y", "shared/5-z"))]


def test_a_repeated_answer_of_a_completed_checkpoint_deletes_nothing():
    job = Driven()
    job.epoch(1000)
    job.complete(1, 1100)
    assert job.answer(1, A, 1200) == []
    assert job.answer(77, A, 1200) == []


def test_of_two_answers_of_one_subtask_the_first_counts():
    job = Driven()
    job.epoch(1000)
    first, second = snapshot(A, "shared/1-first"), snapshot(A, "shared/1-second")
    job.coordinator.handle(SnapshotDone(1, first, 1100))
    assert job.coordinator.handle(SnapshotDone(1, first, 1100)) == []
    assert job.coordinator.handle(SnapshotDone(1, second, 1100)) == [DiscardFiles(1, ("shared/1-second",))]
    (write,) = job.answer(1, B)
    assert write.snapshots[0] == first


def test_an_answer_of_someone_who_was_not_asked_does_not_count():
    job = Driven()
    job.epoch(1000)
    assert job.answer(1, SubtaskId(9, 9)) == [DiscardFiles(1, ("shared/1-9",))]
    assert job.answer(1, A) == []


def test_a_failed_snapshot_aborts_the_checkpoint_with_the_cause():
    job = Driven(tolerable_failures=1)
    job.epoch(1000)
    aborted, _ = job.fail(1)
    assert "subtask 1 of vertex 0" in aborted.why
    assert "disk full" in aborted.why
    assert job.fail(1) == []
    assert not job.coordinator.history[-1].completed


def test_a_complaint_after_all_answers_came_changes_nothing():
    job = Driven()
    job.epoch(1000)
    job.answer(1, A)
    job.answer(1, B)
    assert job.fail(1) == []
    assert job.written(1) == [NotifyComplete(1)]


def test_a_checkpoint_does_not_expire_while_its_metadata_is_written():
    job = Driven(timeout_ms=500)
    job.epoch(1000)
    job.answer(1, A)
    job.answer(1, B)
    assert job.tick(10**6) == []
    assert job.written(1, 10**6) == [NotifyComplete(1)]


def test_metadata_that_cannot_be_written_is_a_failure():
    job = Driven()
    job.epoch(1000)
    job.answer(1, A)
    job.answer(1, B)
    actions = job.coordinator.handle(MetadataFailed(1, "quota exceeded", 1100))
    assert kinds(actions) == [NotifyAborted, DiscardFiles, FailJob]
    assert actions[1] == DiscardFiles(1, ("shared/1-0", "shared/1-1"), directory=True)
    assert isinstance(actions[2], FailJob)
    assert "quota exceeded" in actions[2].why


def test_by_default_the_first_failure_fails_the_job_with_threshold_and_cause():
    job = Driven()
    job.epoch(1000)
    *_, failed = job.fail(1)
    assert isinstance(failed, FailJob)
    assert "tolerable checkpoint failures: 0" in failed.why
    assert "disk full" in failed.why


def test_failures_are_counted_in_a_row():
    job = Driven(tolerable_failures=2)
    outcomes = []
    for number, outcome in enumerate("FFSFFF", start=1):
        assert job.started(number * 1000) == number
        actions = job.fail(number) if outcome == "F" else job.complete(number, number * 1000)
        outcomes.append(FailJob in kinds(actions))
    assert outcomes == [False, False, False, False, False, True]


def test_the_count_starts_over_once_it_failed_the_job():
    job = Driven(tolerable_failures=1)
    outcomes = []
    for number in range(1, 5):
        job.epoch(number * 1000)
        outcomes.append(FailJob in kinds(job.fail(number)))
    assert outcomes == [False, True, False, True]


def test_any_number_of_failures_may_be_tolerated():
    job = Driven(tolerable_failures=None)
    for number in range(1, 50):
        job.epoch(number * 1000)
        assert kinds(job.fail(number)) == [NotifyAborted, DiscardFiles]


def test_a_failure_of_the_job_itself_does_not_count():
    job = Driven(tolerable_failures=0)
    for number in range(1, 5):
        assert job.started(number * 10_000) == number
        assert kinds(job.coordinator.handle(JobFailed(number * 10_000 + 1))) == [NotifyAborted, DiscardFiles]
        job.coordinator.handle(JobStarted(number * 10_000 + 2))


def test_two_checkpoints_that_expire_together_count_twice_and_a_job_that_fails_starts_none():
    job = Driven(tolerable_failures=1, max_concurrent=3, timeout_ms=5000)
    job.epoch(1000)
    job.epoch(2000)
    actions = job.epoch(9000)
    assert kinds(actions) == [NotifyAborted, DiscardFiles, NotifyAborted, DiscardFiles, FailJob]


def test_of_checkpoints_that_expire_together_the_first_that_fails_the_job_is_the_last_that_is_handled():
    job = Driven(max_concurrent=3, timeout_ms=2_500, tolerable_failures=0)
    first, second = job.started(1_000), job.started(2_000)
    assert (first, second) == (1, 2)
    actions = job.tick(10_000)
    assert isinstance(actions[-1], FailJob)
    assert sum(isinstance(action, FailJob) for action in actions) == 1
    assert [action.checkpoint_id for action in actions if isinstance(action, NotifyAborted)] == [1]


def test_an_epoch_in_which_one_expires_can_start_the_next():
    job = Driven(tolerable_failures=1, timeout_ms=500)
    job.epoch(1000)
    assert kinds(job.epoch(2000)) == [NotifyAborted, DiscardFiles, StartCheckpoint]


# ------------------------------------------------------------------------------------------ several at once


def test_a_completed_checkpoint_subsumes_older_ones_which_does_not_count():
    job = Driven(max_concurrent=3)
    for now_ms in (1000, 2000, 3000):
        job.epoch(now_ms)
    complete, aborted, discard = job.complete(2)
    assert complete == NotifyComplete(2)
    assert aborted == NotifyAborted(1, "subsumed by checkpoint 2")
    assert discard.checkpoint_id == 1
    assert job.coordinator.pending_ids == {3}
    assert FailJob not in kinds(job.answer(1, A))


def test_metadata_is_written_one_at_a_time_so_that_checkpoints_complete_in_order():
    job = Driven(max_concurrent=2)
    job.epoch(1000)
    job.epoch(2000)
    for subtask in (A, B):
        job.answer(1, subtask)
    for subtask in (A, B):
        assert job.answer(2, subtask) == []
    complete, write = job.written(1)
    assert complete == NotifyComplete(1)
    assert write.checkpoint_id == 2


def test_an_older_one_with_all_answers_is_subsumed_by_the_newer_one_being_written():
    job = Driven(max_concurrent=2)
    job.epoch(1000)
    job.epoch(2000)
    for checkpoint_id in (2, 1):
        for subtask in (A, B):
            job.answer(checkpoint_id, subtask)
    assert kinds(job.written(2)) == [NotifyComplete, NotifyAborted, DiscardFiles]


def test_an_older_one_with_all_answers_is_written_when_the_newer_one_fails():
    job = Driven(max_concurrent=2, tolerable_failures=1)
    job.epoch(1000)
    job.epoch(2000)
    for checkpoint_id in (2, 1):
        for subtask in (A, B):
            job.answer(checkpoint_id, subtask)
    actions = job.coordinator.handle(MetadataFailed(2, "quota", 3000))
    assert kinds(actions) == [NotifyAborted, DiscardFiles, WriteMetadata]
    assert isinstance(actions[-1], WriteMetadata)
    assert actions[-1].checkpoint_id == 1


def test_a_failing_job_is_not_asked_to_write_anything_more():
    job = Driven(max_concurrent=2)
    job.epoch(1000)
    job.epoch(2000)
    for checkpoint_id in (2, 1):
        for subtask in (A, B):
            job.answer(checkpoint_id, subtask)
    actions = job.coordinator.handle(MetadataFailed(2, "quota", 3000))
    assert isinstance(actions[-1], FailJob)
    assert job.coordinator.handle(JobFailed(3001))[0] == NotifyAborted(1, "the job failed")
    assert job.coordinator.pending_ids == frozenset()


# ------------------------------------------------------------------------------------------ failing jobs


def test_a_failing_job_takes_its_pending_checkpoints_along():
    job = Driven()
    job.epoch(1000)
    job.answer(1, A)
    assert job.coordinator.handle(JobFailed(1100)) == [
        NotifyAborted(1, "the job failed"),
        DiscardFiles(1, ("shared/1-0",), directory=True),
    ]
    assert job.epoch(9000) == []
    job.coordinator.handle(JobStarted(10_000))
    assert job.answer(1, B, 10_001) == [DiscardFiles(1, ("shared/1-1",))]


def test_a_checkpoint_whose_metadata_is_being_written_outlives_the_failure_of_the_job():
    job = Driven()
    job.epoch(1000)
    job.answer(1, A)
    job.answer(1, B)
    assert job.coordinator.handle(JobFailed(1100)) == []
    assert job.written(1, 1200) == [NotifyComplete(1)]


def test_a_checkpoint_whose_outcome_was_never_heard_of_does_not_block_the_next_run():
    for restored_id, expected in ((1, []), (None, [NotifyAborted, DiscardFiles])):
        job = Driven()
        job.epoch(1000)
        job.answer(1, A)
        job.answer(1, B)
        job.coordinator.handle(JobFailed(1100))
        assert kinds(job.coordinator.handle(JobStarted(1200, restored_id=restored_id))) == expected
        recorded = job.coordinator.history[-1]
        assert (recorded.checkpoint_id, recorded.completed, recorded.ended_ms) == (1, restored_id == 1, 1200)
        assert job.started(2200) == 2


def test_requests_end_with_the_run():
    job = Driven(interval_ms=None)
    job.coordinator.handle(CheckpointRequested(1))
    job.coordinator.handle(JobFailed(2))
    job.coordinator.handle(JobStarted(3))
    assert job.epoch(4) == []


# ------------------------------------------------------------------------------------------ finished subtasks


def test_a_finished_subtask_is_asked_until_a_checkpoint_with_its_last_answer_exists():
    job = Driven(tolerable_failures=9)
    job.epoch(1000)
    job.answer(1, A, finished=True)
    job.fail(1)
    (start,) = job.epoch(2000)
    assert start.participants == {A, B}
    job.answer(2, A, finished=True)
    job.answer(2, B)
    job.written(2)
    (start,) = job.epoch(3000)
    assert start.participants == {B}
    (write,) = job.answer(3, B)
    assert write.finished == {A}


def test_when_everyone_has_finished_a_checkpoint_needs_no_answers():
    job = Driven()
    job.epoch(1000)
    for subtask in (A, B):
        job.answer(1, subtask, finished=True)
    job.written(1)
    start, write = job.epoch(2000)
    assert start.participants == frozenset()
    assert (write.snapshots, write.finished) == ((), {A, B})


def test_a_restored_job_knows_who_had_finished():
    coordinator = CheckpointCoordinator({A, B}, CoordinatorSettings(interval_ms=1000))
    coordinator.handle(JobStarted(0, restored_id=4, finished=frozenset({B})))
    (start,) = coordinator.handle(EpochStarting(1000))
    assert start == StartCheckpoint(5, frozenset({A}))


def test_after_going_back_to_an_older_checkpoint_the_finished_run_again():
    job = Driven()
    job.epoch(1000)
    job.answer(1, A, finished=True)
    job.answer(1, B)
    job.written(1)
    job.coordinator.handle(JobFailed(1500))
    job.coordinator.handle(JobStarted(1600))
    (start,) = job.epoch(2600)
    assert start.participants == {A, B}


def test_checkpoints_may_be_told_to_stop_when_a_subtask_has_finished():
    job = Driven(after_tasks_finish=False)
    job.epoch(1000)
    job.complete(1)
    job.epoch(2000)
    job.answer(2, A, finished=True)
    actions = job.answer(2, B)
    assert kinds(actions) == [NotifyAborted, DiscardFiles]  # it does not count as a failure
    assert "checkpoints-after-tasks-finish" in actions[0].why
    assert job.epoch(3000) == []
    assert job.coordinator.next_due_ms(3000) is None
    (refused,) = job.coordinator.handle(CheckpointRequested(3000, "savepoint", forced=True, request_id="s"))
    assert isinstance(refused, RefuseRequest) and refused.request_id == "s"


def test_checkpoints_told_to_stop_stay_so_when_restored_with_a_finished_subtask():
    coordinator = CheckpointCoordinator({A, B}, CoordinatorSettings(interval_ms=1000, after_tasks_finish=False))
    coordinator.handle(JobStarted(0, restored_id=4, finished=frozenset({B})))
    assert coordinator.handle(EpochStarting(1000)) == []


def test_an_operator_with_union_state_that_has_half_finished_is_asked_as_a_whole():
    job = Driven()
    job.epoch(1000)
    job.answer(1, A, finished=True, union=True)
    assert kinds(job.answer(1, B, union=True)) == [WriteMetadata]
    job.written(1)
    (start,) = job.epoch(2000)
    assert start.participants == {A, B}  # union state still needs A's part
    job.answer(2, A, finished=True, union=True)
    (write,) = job.answer(2, B, finished=True, union=True)
    assert not write.finished and len(write.snapshots) == 2
    job.written(2)
    (start, _) = job.epoch(3000)
    assert start.participants == frozenset()  # no running subtask is left to read it


# --------------------------------------------------------------------------------------------------- requests


def test_requests_beyond_a_thousand_are_refused():
    job = Driven(interval_ms=None)
    for number in range(1000):
        assert job.coordinator.handle(CheckpointRequested(0, "savepoint", request_id=str(number))) == []
    (refused,) = job.coordinator.handle(CheckpointRequested(0, "savepoint", request_id="one more"))
    assert refused == RefuseRequest("one more", "1000 requests are already waiting")


def test_requests_that_were_not_started_end_with_the_run():
    job = Driven(interval_ms=None)
    job.coordinator.handle(CheckpointRequested(0, "savepoint", request_id="one"))
    (refused,) = job.coordinator.handle(JobFailed(10))
    assert isinstance(refused, RefuseRequest) and refused.request_id == "one"
    assert job.coordinator.handle(JobStarted(20)) == [] and job.epoch(30) == []


def test_a_failed_savepoint_is_nobodys_failure():
    job = Driven(interval_ms=None)
    job.coordinator.handle(CheckpointRequested(0, "savepoint", forced=True))
    job.epoch(0)
    assert kinds(job.fail(1)) == [NotifyAborted, DiscardFiles]


def test_the_savepoint_that_a_job_ends_with_takes_the_job_with_it_when_a_subtask_cannot_write():
    job = Driven(interval_ms=None)
    job.coordinator.handle(CheckpointRequested(0, "savepoint", forced=True, synchronous=True))
    job.epoch(0)
    actions = job.fail(1)
    assert kinds(actions) == [NotifyAborted, DiscardFiles, FailJob]
    assert "disk full" in actions[-1].why


def test_the_savepoint_that_a_job_ends_with_may_fail_in_the_driver_without_the_job():
    for outcome in ("metadata", "timeout"):
        job = Driven(interval_ms=None, timeout_ms=100)
        job.coordinator.handle(CheckpointRequested(0, "savepoint", forced=True, synchronous=True))
        job.epoch(0)
        if outcome == "metadata":
            job.answer(1, A)
            job.answer(1, B)
            actions = job.coordinator.handle(MetadataFailed(1, "no room", 50))
        else:
            actions = job.tick(100)
        assert kinds(actions) == [NotifyAborted, DiscardFiles], outcome
