"""Checkpoints as they are answered: counts, sums over subtasks, durations, and what is not there yet."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ekorn.config.choices import ExternalizedCheckpointRetention as Retention
from ekorn.driver.statistics.checkpoint_statistics import CheckpointRecord, SnapshotRecord
from ekorn.graph.addresses import SubtaskId
from ekorn.rest import checkpoint_answers
from ekorn.state.snapshots import AlignmentStats
from ekorn.web.http_messages import HttpError
from tests.rest.fakes import JOB, job, vertex

FIRST, SECOND = SubtaskId(3, 0), SubtaskId(3, 1)
ALIGNED = AlignmentStats(start_delay_ms=1.6, aligned_ms=4.0, held_bytes=11, in_flight_bytes=7, unaligned=True)
PARTS = {
    FIRST: SnapshotRecord(1_200, 100, 10, 2.6, 5.4, ALIGNED),
    SECOND: SnapshotRecord(1_300, 200, 20, 3.0, 6.0),
}


def record(number: int = 4, parts: Any = None, **more: Any) -> CheckpointRecord:
    given: dict[str, Any] = {"savepoint_format": None, "synchronous": False, "triggered_ms": 1_000}
    snapshots = PARTS if parts is None else parts
    return CheckpointRecord(number, participants=frozenset({FIRST, SECOND}), snapshots=snapshots, **{**given, **more})


def done(number: int = 4, **more: Any) -> CheckpointRecord:
    return record(number, outcome="COMPLETED", ended_ms=1_500, path=f"/chk-{number}", **more)


def answer(of: CheckpointRecord, *, with_vertices: bool = False) -> dict[str, Any]:
    return checkpoint_answers.record_answer(job(vertex(3)), of, 9_000, with_vertices=with_vertices)


def test_a_completed_checkpoint_sums_its_parts_and_took_until_the_last_of_them():
    assert answer(done()) == {
        "className": "completed",
        "id": 4,
        "status": "COMPLETED",
        "is_savepoint": False,
        "savepointFormat": None,
        "trigger_timestamp": 1_000,
        "latest_ack_timestamp": 1_300,
        "checkpointed_size": 30,
        "state_size": 300,
        "end_to_end_duration": 300,
        "alignment_buffered": 11,
        "processed_data": 0,
        "persisted_data": 7,
        "num_subtasks": 2,
        "num_acknowledged_subtasks": 2,
        "checkpoint_type": "CHECKPOINT",
        "tasks": {},
        "external_path": "/chk-4",
        "discarded": False,
    }


def test_a_checkpoint_in_progress_takes_until_now_and_a_failed_one_took_until_its_end():
    pending = answer(record(parts={FIRST: PARTS[FIRST]}))
    assert (pending["className"], pending["end_to_end_duration"]) == ("in_progress", 8_000)
    assert (pending["latest_ack_timestamp"], pending["num_acknowledged_subtasks"]) == (1_200, 1)
    assert "external_path" not in pending and "failure_message" not in pending
    begun = answer(record(parts={}))
    assert (begun["latest_ack_timestamp"], begun["end_to_end_duration"], begun["state_size"]) == (-1, 8_000, 0)
    failed = answer(record(parts={}, outcome="FAILED", ended_ms=1_700, why="expired"))
    assert (failed["end_to_end_duration"], failed["failure_timestamp"]) == (700, 1_700)
    assert failed["failure_message"] == "expired" and "external_path" not in failed


@pytest.mark.parametrize(
    ("kind", "synchronous", "name"),
    [
        (None, False, "CHECKPOINT"),
        (None, True, "CHECKPOINT"),
        ("CANONICAL", False, "SAVEPOINT"),
        ("NATIVE", True, "SYNC_SAVEPOINT"),
    ],
)
def test_a_savepoint_is_told_from_a_checkpoint(kind, synchronous, name):
    found = answer(record(savepoint_format=kind, synchronous=synchronous))
    assert (found["checkpoint_type"], found["is_savepoint"], found["savepointFormat"]) == (name, kind is not None, kind)


def test_a_vertex_has_its_own_part_of_a_checkpoint():
    other = {**PARTS, SubtaskId(5, 0): SnapshotRecord(1_400, 1, 1, 0.0, 0.0)}
    of = CheckpointRecord(4, None, False, 1_000, frozenset(other), other)
    tasks = checkpoint_answers.record_answer(job(vertex(3), vertex(5)), of, 9_000, with_vertices=True)["tasks"]
    assert [tasks[name]["state_size"] for name in ("op3", "op5")] == [300, 1]
    assert [tasks[name]["num_subtasks"] for name in ("op3", "op5")] == [2, 1], "only those that take part"
    assert [tasks[name]["end_to_end_duration"] for name in ("op3", "op5")] == [300, 400]


def statistics(*records: CheckpointRecord, **more: Any) -> Any:
    by_id = {each.checkpoint_id: each for each in records}
    given = {"last_completed": None, "last_savepoint": None, "last_failed": None, "last_restored": None}
    return SimpleNamespace(
        records=lambda: list(records),
        find=by_id.get,
        restored=1,
        completed=5,
        failed=3,
        in_progress=2,
        **{**given, **more},
    )


def test_the_checkpoints_of_a_job_are_counted_and_those_that_completed_are_summed_up():
    restored = SimpleNamespace(checkpoint_id=2, restored_ms=800, is_savepoint=True, path="/sp")
    kept = statistics(done(4), done(5), record(6), last_completed=done(5), last_restored=restored)
    found = checkpoint_answers.checkpoints(job(vertex(3), checkpoints=kept))
    assert found["counts"] == {"restored": 1, "total": 10, "in_progress": 2, "completed": 5, "failed": 3}
    assert [each["id"] for each in found["history"]] == [4, 5, 6]
    summed = {name: (each["min"], each["p99"]) for name, each in found["summary"].items()}
    assert summed == {
        "checkpointed_size": (30, 30.0),
        "state_size": (300, 300.0),
        "end_to_end_duration": (500, 500.0),
        "alignment_buffered": (11, 11.0),
        "processed_data": (0, 0.0),
        "persisted_data": (7, 7.0),
    }
    assert found["latest"]["completed"]["id"] == 5
    assert (found["latest"]["savepoint"], found["latest"]["failed"]) == (None, None)
    assert found["latest"]["restored"] == {
        "id": 2,
        "restore_timestamp": 800,
        "is_savepoint": True,
        "external_path": "/sp",
    }


def test_a_job_that_began_empty_was_not_restored():
    found = checkpoint_answers.checkpoints(job(vertex(3), checkpoints=statistics()))
    assert found["latest"]["restored"] is None
    assert found["summary"]["state_size"]["p50"] == "NaN"


def test_a_checkpoint_is_found_by_its_number():
    known = job(checkpoints=statistics(done(4)))
    assert checkpoint_answers.find(known, "4").checkpoint_id == 4
    with pytest.raises(HttpError, match=f"job {JOB} has no checkpoint 5, or it is no longer kept") as refused:
        checkpoint_answers.find(known, "5")
    assert refused.value.status == 404
    with pytest.raises(HttpError, match="the checkpoint is 'x', which is not a number"):
        checkpoint_answers.find(known, "x")


def test_the_subtasks_of_a_vertex_are_told_one_by_one_and_summed_up():
    found = checkpoint_answers.subtasks_answer(job(), record(parts={FIRST: PARTS[FIRST]}), vertex(3))
    arrived, pending = found["subtasks"]
    assert pending == {"className": "pending", "index": 1, "status": "pending_or_failed"}
    assert arrived == {
        "className": "completed",
        "index": 0,
        "status": "completed",
        "ack_timestamp": 1_200,
        "end_to_end_duration": 200,
        "checkpointed_size": 10,
        "state_size": 100,
        "checkpoint": {"sync": 3, "async": 5},
        "alignment": {"buffered": 11, "processed": 0, "persisted": 7, "duration": round(ALIGNED.duration_ms)},
        "start_delay": 2,
        "unaligned_checkpoint": True,
        "aborted": False,
    }
    summed = found["summary"]
    assert (summed["end_to_end_duration"]["avg"], summed["state_size"]["avg"], summed["start_delay"]["avg"]) == (
        200,
        100,
        2,
    )
    assert (summed["checkpoint_duration"]["sync"]["max"], summed["checkpoint_duration"]["async"]["max"]) == (3, 5)
    assert [summed["alignment"][name]["max"] for name in ("buffered", "processed", "persisted")] == [11, 0, 7]
    assert found["num_acknowledged_subtasks"] == 1 and found["end_to_end_duration"] == 9_000


@pytest.mark.parametrize(
    ("retention", "enabled", "deleted"),
    [
        (Retention.NO_EXTERNALIZED_CHECKPOINTS, False, True),
        (Retention.DELETE_ON_CANCELLATION, True, True),
        (Retention.RETAIN_ON_CANCELLATION, True, False),
    ],
)
@pytest.mark.parametrize(("interval_ms", "shown"), [(None, 9_223_372_036_854_775_807), (500, 500)])
def test_the_settings_of_checkpoints_are_told_in_flinks_form(retention, enabled, deleted, interval_ms, shown):
    checkpoints = SimpleNamespace(
        mode=SimpleNamespace(name="EXACTLY_ONCE"),
        interval_ms=interval_ms,
        timeout_ms=1,
        min_pause_ms=2,
        max_concurrent=3,
        retention=retention,
        storage="s",
        unaligned=True,
        tolerable_failures=4,
        aligned_timeout_ms=5,
        after_tasks_finish=True,
    )
    found = checkpoint_answers.config(job(settings=SimpleNamespace(checkpoints=checkpoints, state_backend="heap")))
    assert (found["mode"], found["interval"], found["timeout"], found["min_pause"]) == ("exactly_once", shown, 1, 2)
    assert found["externalization"] == {"enabled": enabled, "delete_on_cancellation": deleted}
    assert (found["tolerable_failed_checkpoints"], found["aligned_checkpoint_timeout"]) == (4, 5)
    assert found["state_changelog_enabled"] is False and found["changelog_periodic_materialization_interval"] == 0
