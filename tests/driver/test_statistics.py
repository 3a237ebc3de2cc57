"""What the driver remembers about a job for people and tools: checkpoints, failures, lives of subtasks, statuses."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ekorn.clock import ManualClock
from ekorn.common import JobID
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.driver.job_handle import JobHandle
from ekorn.driver.statistics.checkpoint_statistics import CheckpointStatistics, RestoredRecord, SnapshotRecord
from ekorn.driver.statistics.failure_history import FailureHistory
from ekorn.driver.statistics.job_statistics import JobStatistics, StatusChange
from ekorn.driver.statistics.subtask_lives import SubtaskLives
from ekorn.engine.protocol import Failure
from ekorn.errors import UserFunctionError
from ekorn.functions.results.job_status import JobStatus
from ekorn.graph.addresses import SubtaskId
from ekorn.metrics.thread_stacks import ThreadStack
from ekorn.operators.epoch import Ack
from ekorn.state.snapshots import KeyedFiles, OperatorSnapshot, StateFile, SubtaskSnapshot
from ekorn.testing.drawn_job import drawn_job
from ekorn.testing.scripted import Crash, Script, run_scripted
from tests.driver.savepoint_programs import Ask, counting, environment, numbers

FIRST, SECOND = SubtaskId(0, 0), SubtaskId(0, 1)
BOTH = frozenset({FIRST, SECOND})


def drawn() -> tuple[Any, Any]:
    """Return the graph and the settings of a job with two subtasks of a source, and two that count."""
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    env.from_sequence(1, 9).key_by(lambda v: v).map(lambda v: v).print()
    return drawn_job(env)


# --------------------------------------------------------------------------------------------------------- checkpoints


def snapshot(subtask: SubtaskId, *sizes: int, operator_state: int | None = None) -> SubtaskSnapshot:
    files = tuple(StateFile(size, 0, path=str(size)) for size in sizes)
    saved = None if operator_state is None else StateFile(operator_state, 0, path="operator")
    operators = (OperatorSnapshot("op", None, "op", KeyedFiles(0, 127, files), saved),)
    return SubtaskSnapshot(*subtask, operators, bytes_written=7, sync_ms=1.5, async_ms=2.5)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_000)


def test_a_checkpoint_is_in_progress_until_it_is_complete(clock: ManualClock) -> None:
    statistics = CheckpointStatistics(clock)
    statistics.begin(1, BOTH)
    (record,) = statistics.records()
    assert (record.outcome, record.triggered_ms, record.ended_ms) == ("IN_PROGRESS", 1_000, None)
    assert (record.participants, record.last_acknowledged_ms, record.state_bytes) == (BOTH, None, 0)
    assert (statistics.in_progress, statistics.completed, statistics.failed) == (1, 0, 0)
    clock.advance(10)
    statistics.acknowledge(1, snapshot(FIRST, 100, 20, operator_state=3))
    clock.advance(10)
    statistics.acknowledge(1, snapshot(SECOND, 50))
    assert record.snapshots == {
        FIRST: SnapshotRecord(1_010, 123, 7, 1.5, 2.5),
        SECOND: SnapshotRecord(1_020, 50, 7, 1.5, 2.5),
    }
    assert (record.state_bytes, record.written_bytes, record.last_acknowledged_ms) == (173, 14, 1_020)
    clock.advance(10)
    statistics.complete(1, "/checkpoints/chk-1")
    assert (statistics.in_progress, statistics.completed, statistics.failed) == (0, 1, 0)
    found = statistics.find(1)
    assert found is not None and found is statistics.last_completed
    assert (found.outcome, found.ended_ms, found.path, found.why) == ("COMPLETED", 1_030, "/checkpoints/chk-1", None)
    assert found.state_bytes == 173
    assert (found.is_savepoint, found.synchronous, found.discarded) == (False, False, False)
    assert (statistics.last_savepoint, statistics.last_failed) == (None, None)


def test_a_savepoint_and_a_failure_are_told_from_a_checkpoint(clock: ManualClock) -> None:
    statistics = CheckpointStatistics(clock)
    statistics.begin(1, BOTH, "NATIVE", synchronous=True)
    statistics.begin(2, BOTH)
    statistics.complete(1, "/savepoints/one")
    statistics.fail(2, "expired")
    assert (statistics.completed, statistics.failed, statistics.in_progress) == (1, 1, 0)
    assert statistics.last_completed is None
    savepoint, failed = statistics.last_savepoint, statistics.last_failed
    assert savepoint is not None and failed is not None
    assert (savepoint.is_savepoint, savepoint.synchronous, savepoint.savepoint_format) == (True, True, "NATIVE")
    assert (failed.checkpoint_id, failed.outcome, failed.why, failed.path) == (2, "FAILED", "expired", None)
    assert [record.checkpoint_id for record in statistics.records()] == [2, 1]


def test_a_checkpoint_in_flight_fails_with_the_end_of_its_job(clock: ManualClock) -> None:
    statistics = JobStatistics(*drawn(), clock)
    statistics.checkpoints.begin(1, BOTH)
    statistics.checkpoints.complete(1, "/checkpoints/chk-1")
    statistics.checkpoints.begin(2, BOTH)
    clock.advance(5)
    statistics.end(JobStatus.CANCELED)
    assert (statistics.checkpoints.in_progress, statistics.checkpoints.failed) == (0, 1)
    failed = statistics.checkpoints.find(2)
    assert failed is not None
    assert (failed.outcome, failed.ended_ms) == ("FAILED", 1_005)
    assert failed.why == "the job ended before the checkpoint was complete"


def test_what_happens_to_a_checkpoint_that_is_over_changes_nothing(clock: ManualClock) -> None:
    statistics = CheckpointStatistics(clock)
    statistics.begin(1, BOTH)
    statistics.fail(1, "expired")
    statistics.acknowledge(1, snapshot(FIRST, 100))
    statistics.complete(1, "/late")
    statistics.fail(1, "again")
    statistics.complete(9, "/unknown")
    (record,) = statistics.records()
    assert (record.why, dict(record.snapshots)) == ("expired", {})
    assert (statistics.completed, statistics.failed) == (0, 1)
    assert statistics.find(9) is None


class EndsWhileItIsRead(CheckpointStatistics):
    """Completes checkpoint 1 behind the back of a reader that has looked for it in one place."""

    is_read = False

    def __getattribute__(self, name):
        found = super().__getattribute__(name)
        if name in ("_pending", "_ended") and self.is_read:
            self.is_read = False
            self.complete(1, "/one")
        return found


def test_a_checkpoint_that_ends_while_it_is_looked_up_is_found():
    statistics = EndsWhileItIsRead(ManualClock(0))
    statistics.begin(1, BOTH)
    statistics.is_read = True
    record = statistics.find(1)
    assert record is not None and (record.outcome, record.path) == ("COMPLETED", "/one")


def test_checkpoints_whose_files_are_deleted_are_discarded_and_savepoints_are_not(clock: ManualClock) -> None:
    statistics = CheckpointStatistics(clock)
    for number in range(1, 6):
        statistics.begin(number, BOTH, "CANONICAL" if number == 2 else None)
        statistics.fail(number, "expired") if number == 3 else statistics.complete(number, str(number))
    statistics.keep({4, 5})
    assert {record.checkpoint_id for record in statistics.records() if record.discarded} == {1}
    before = statistics.records()
    statistics.keep({4, 5})
    assert all(new is old for new, old in zip(statistics.records(), before, strict=True))
    statistics.keep({5})
    assert {record.checkpoint_id for record in statistics.records() if record.discarded} == {1, 4}


def test_a_hundred_checkpoints_that_have_ended_are_remembered(clock: ManualClock) -> None:
    statistics = CheckpointStatistics(clock)
    for number in range(1, 151):
        statistics.begin(number, BOTH)
        statistics.complete(number, None)
    statistics.begin(151, BOTH)
    assert [record.checkpoint_id for record in statistics.records()] == list(range(151, 50, -1))
    assert statistics.completed == 150


def test_the_last_restored_checkpoint_is_told_with_its_time(clock: ManualClock) -> None:
    statistics = CheckpointStatistics(clock)
    assert (statistics.restored, statistics.last_restored) == (0, None)
    statistics.restore(4, "/checkpoints/chk-4", is_savepoint=False)
    clock.advance(5)
    statistics.restore(7, None, is_savepoint=True)
    assert (statistics.restored, statistics.last_restored) == (2, RestoredRecord(7, True, 1_005, None))


# ------------------------------------------------------------------------------------------------------------ failures


def test_a_failure_is_told_with_the_vertex_and_the_slot_of_its_first_subtask() -> None:
    graph, _ = drawn()
    history = FailureHistory(graph)
    history.add(ValueError("no"), BOTH, None, 5)
    (failure,) = history.failures
    assert (failure.at_ms, failure.name, failure.trace, failure.subtask) == (5, "builtins.ValueError", "no", FIRST)
    assert failure.location == f"{graph.vertices[0].name} (1/2)"
    assert failure.slot == graph.slot_of(graph.vertices[0], 0)
    history.add(ValueError("no"), frozenset({SECOND}), 7, 6)
    assert (history.failures[0].location, history.failures[0].slot) == (f"{graph.vertices[0].name} (2/2)", 7)
    assert history.count == 2


def test_a_failure_of_no_subtask_and_without_a_message_is_told_by_its_class() -> None:
    history = FailureHistory(drawn()[0])
    history.add(ValueError(), frozenset(), 3, 5)
    (failure,) = history.failures
    assert (failure.trace, failure.location, failure.subtask, failure.slot) == ("builtins.ValueError", None, None, 3)


def test_a_failure_of_user_code_is_told_by_the_exception_of_the_user_and_the_operator() -> None:
    graph, _ = drawn()
    history = FailureHistory(graph)
    error = UserFunctionError("count", None, 1, "7", "the trace", "my.Error")
    history.add(error, frozenset(), None, 5)
    history.add(error, frozenset({SECOND}), None, 6)
    newer, older = history.failures
    assert (older.name, older.location) == ("my.Error", "count (subtask 1)")
    assert (newer.name, newer.location) == ("my.Error", f"{graph.vertices[0].name} (2/2)")


def test_errors_of_several_slots_are_told_together() -> None:
    history = FailureHistory(drawn()[0])
    history.add(ValueError("first"), BOTH, 0, 5, [(KeyError("second"), 1)])
    (failure,) = history.failures
    assert [(other.name, other.slot, other.at_ms) for other in failure.others] == [("builtins.KeyError", 1, 5)]
    assert history.count == 1


def test_sixteen_failures_are_remembered_the_newest_first() -> None:
    history = FailureHistory(drawn()[0])
    for number in range(20):
        history.add(ValueError(str(number)), frozenset(), None, number)
    assert [failure.at_ms for failure in history.failures] == list(range(19, 3, -1))
    assert history.count == 20


# --------------------------------------------------------------------------------------------------- lives of subtasks


def test_a_subtask_goes_through_its_states_with_their_times() -> None:
    graph, _ = drawn()
    lives = SubtaskLives(graph, 1)
    assert {life.state for life in lives.all().values()} == {"CREATED"}
    assert len(lives.all()) == 4
    assert (lives.of(0)[1].started_ms, lives.of(0)[1].ended_ms) == (None, None)
    lives.deploy([SECOND], 0, 2)
    lives.enter([SECOND], "RUNNING", 3)
    lives.enter([SECOND], "RUNNING", 4)
    assert lives.earlier(SECOND) == ()
    life = lives.of(0)[1]
    assert (life.state, life.attempt, life.slot) == ("RUNNING", 0, graph.slot_of(graph.vertices[0], 1))
    assert life.times == {"CREATED": 2, "SCHEDULED": 2, "DEPLOYING": 2, "RUNNING": 3}
    assert (life.started_ms, life.ended_ms) == (2, None)
    lives.enter([SECOND], "FINISHED", 5)
    lives.enter([SECOND], "FAILED", 6)
    assert (lives.of(0)[1].state, lives.of(0)[1].ended_ms) == ("FINISHED", 5)
    assert [life.state for life in lives.of(0)] == ["CREATED", "FINISHED"]
    assert [life.state for life in lives.of(1)] == ["CREATED", "CREATED"]


def test_the_next_attempt_cancels_what_ran_and_remembers_sixteen_attempts() -> None:
    lives = SubtaskLives(drawn()[0], 0)
    for attempt in range(20):
        lives.deploy([FIRST], attempt, attempt)
        if attempt % 2:
            lives.enter([FIRST], "FAILED", attempt)
    earlier = lives.earlier(FIRST)
    assert [life.attempt for life in earlier] == list(range(3, 19))
    assert [life.state for life in earlier] == ["FAILED", "CANCELED"] * 8
    assert [life.ended_ms for life in earlier[:2]] == [3, 5]
    assert lives.earlier(SECOND) == ()


@pytest.mark.parametrize(
    ("status", "state"),
    [(JobStatus.FINISHED, "FINISHED"), (JobStatus.CANCELED, "CANCELED"), (JobStatus.FAILED, "CANCELED")],
)
def test_the_end_of_a_job_ends_what_still_runs(status: JobStatus, state: str) -> None:
    lives = SubtaskLives(drawn()[0], 0)
    lives.deploy(BOTH, 0, 1)
    lives.enter([FIRST], "FAILED", 2)
    lives.end(status, 3)
    assert [life.state for life in lives.of(0)] == ["FAILED", state]


# -------------------------------------------------------------------------------------------------------- a whole job


def test_a_job_remembers_its_statuses_and_when_it_began_and_ended(clock: ManualClock) -> None:
    statistics = JobStatistics(*drawn(), clock)
    assert (statistics.started_ms, statistics.ended_ms) == (1_000, None)
    statistics.deploy(BOTH, 0)
    clock.advance(1)
    statistics.run(BOTH)
    clock.advance(1)
    statistics.run(BOTH)
    statistics.epoch([Ack(0, 0, 1, finished=True), Ack(0, 1, 1)], 5.0)
    assert [life.state for life in statistics.lives.of(0)] == ["FINISHED", "RUNNING"]
    clock.advance(1)
    statistics.fail(Failure(ValueError("no"), subtasks=frozenset({SECOND})))
    assert [life.state for life in statistics.lives.of(0)] == ["FINISHED", "FAILED"]
    assert (statistics.failures.count, statistics.failures.failures[0].at_ms) == (1, 1_003)
    statistics.end(JobStatus.FAILED)
    assert statistics.ended_ms == 1_003
    assert statistics.time_line == (
        StatusChange(JobStatus.CREATED, 1_000),
        StatusChange(JobStatus.RUNNING, 1_001),
        StatusChange(JobStatus.FAILED, 1_003),
    )


def test_a_thousand_changes_of_status_are_remembered(clock: ManualClock) -> None:
    statistics = JobStatistics(*drawn(), clock)
    for number in range(1_200):
        clock.advance(1)
        statistics.enter(JobStatus.RESTARTING if number % 2 else JobStatus.RUNNING)
    assert len(statistics.time_line) == 1_000
    assert (statistics.time_line[0].at_ms, statistics.time_line[-1].at_ms) == (1_201, 2_200)


# ------------------------------------------------------------------------------------------------- while a job runs


def statistics_of(run: Any) -> JobStatistics:
    found: JobStatistics = run.handle.view.statistics
    return found


def test_a_job_that_fails_and_restarts_tells_of_its_checkpoints_and_failures(tmp_path: Path) -> None:
    script = Script(crashes=[Crash("after-epoch", 4)])
    run = run_scripted(counting(numbers(environment(tmp_path, restarts=1))), script)
    found, progress = statistics_of(run), run.handle.progress()
    statuses = [change.status for change in found.time_line]
    restarted = [JobStatus.RUNNING, JobStatus.RESTARTING, JobStatus.RUNNING]
    assert statuses == [JobStatus.CREATED, *restarted, JobStatus.FINISHED]
    assert found.ended_ms is not None
    assert (found.failures.count, found.checkpoints.restored) == (1, 1)
    assert found.checkpoints.completed == progress.checkpoints_completed > 2
    assert found.checkpoints.in_progress == 0
    restored, last = found.checkpoints.last_restored, found.checkpoints.last_completed
    assert restored is not None and last is not None
    assert not restored.is_savepoint and str(restored.path).endswith(f"chk-{restored.checkpoint_id}")
    assert last.path == progress.last_checkpoint_path
    completed = [record for record in found.checkpoints.records() if record.outcome == "COMPLETED"]
    taken = [record for record in completed if record.participants]  # all have finished at the last one
    assert taken and all(record.snapshots.keys() == record.participants for record in taken)
    assert all(record.written_bytes > 0 for record in taken)
    assert all(record.discarded for record in (*completed, last)), "a job that has finished deletes its checkpoints"
    for subtask, life in found.lives.all().items():
        assert (life.state, life.attempt) == ("FINISHED", 1)
        assert [before.attempt for before in found.lives.earlier(subtask)] == [0]


@pytest.mark.parametrize(("native", "kind"), [(True, "NATIVE"), (False, "CANONICAL")])
@pytest.mark.parametrize("then", ["go on", "stop"])
def test_a_savepoint_is_told_with_its_format_and_whether_the_job_ends_with_it(
    tmp_path: Path, native: bool, kind: str, then: str
) -> None:
    ask = Ask(tmp_path / "savepoints", then=then, native=native)
    run = run_scripted(counting(numbers(environment(tmp_path / "checkpoints"))), Script(deeds={2: ask}))
    savepoint = statistics_of(run).checkpoints.last_savepoint
    assert savepoint is not None
    assert (savepoint.savepoint_format, savepoint.synchronous) == (kind, then == "stop")
    assert (savepoint.path, savepoint.discarded) == (ask.path, False)


def test_a_checkpoint_whose_snapshot_fails_is_told_with_the_reason(tmp_path: Path) -> None:
    env = environment(tmp_path, tolerable_failed_checkpoints=5)
    run = run_scripted(counting(numbers(env)), Script(failed_snapshots={3}))
    checkpoints = statistics_of(run).checkpoints
    assert checkpoints.failed == 1
    assert checkpoints.last_failed is not None and "lost by the script" in str(checkpoints.last_failed.why)


def test_the_stacks_of_a_job_without_slots_are_none() -> None:
    handle = JobHandle(JobID.generate(), "job")
    assert handle.view.thread_stacks(0) == []
    slots: Any = SimpleNamespace(thread_stacks=lambda slot: [ThreadStack(f"thread of {slot}", 1, "")])
    handle.view.inspect(slots)
    assert [stack.name for stack in handle.view.thread_stacks(7)] == ["thread of 7"]
