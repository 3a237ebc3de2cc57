"""Answers about the checkpoints of a job."""

from __future__ import annotations

from typing import Any

from ekorn.config.choices import ExternalizedCheckpointRetention
from ekorn.driver.statistics.checkpoint_statistics import CheckpointRecord, CheckpointStatistics, SnapshotRecord
from ekorn.graph.addresses import SubtaskId
from ekorn.graph.job_graph import Vertex
from ekorn.rest.known_jobs import KnownJob, flink_id
from ekorn.rest.summaries import summary
from ekorn.web.http_messages import not_found, whole_number

_CLASS_NAMES = {"COMPLETED": "completed", "FAILED": "failed", "IN_PROGRESS": "in_progress"}


def checkpoints(job: KnownJob) -> dict[str, Any]:
    """Answer `/jobs/:jobid/checkpoints`: counts, summary, the latest of each kind, and the history."""
    statistics = job.statistics.checkpoints
    now_ms = job.statistics.clock.now_ms()
    records = statistics.records()
    done = [record for record in records if record.outcome == "COMPLETED"]
    nothing = summary(0 for _ in done)
    return {
        "counts": {
            "restored": statistics.restored,
            "total": statistics.completed + statistics.failed + statistics.in_progress,
            "in_progress": statistics.in_progress,
            "completed": statistics.completed,
            "failed": statistics.failed,
        },
        "summary": {
            "checkpointed_size": summary(record.written_bytes for record in done),
            "state_size": summary(record.state_bytes for record in done),
            "end_to_end_duration": summary(_duration(record, now_ms) for record in done),
            "alignment_buffered": summary(_held_bytes(record) for record in done),
            "processed_data": nothing,
            "persisted_data": summary(record.in_flight_bytes for record in done),
        },
        "latest": _latest(job, statistics, now_ms),
        "history": [record_answer(job, record, now_ms, with_vertices=False) for record in records],
    }


def _latest(job: KnownJob, statistics: CheckpointStatistics, now_ms: int) -> dict[str, Any]:
    restored = statistics.last_restored
    found: dict[str, Any] = {
        name: None if record is None else record_answer(job, record, now_ms, with_vertices=False)
        for name, record in (
            ("completed", statistics.last_completed),
            ("savepoint", statistics.last_savepoint),
            ("failed", statistics.last_failed),
        )
    }
    found["restored"] = restored and {
        "id": restored.checkpoint_id,
        "restore_timestamp": restored.restored_ms,
        "is_savepoint": restored.is_savepoint,
        "external_path": restored.path,
    }
    return found


def find(job: KnownJob, checkpoint_id: str) -> CheckpointRecord:
    """Return a checkpoint that is remembered.

    Raises:
        HttpError: There is none of this number.
    """
    number = whole_number(checkpoint_id, "the checkpoint")
    found = job.statistics.checkpoints.find(number)
    return (
        found
        if found is not None
        else not_found(f"job {job.job_id} has no checkpoint {number}, or it is no longer kept")
    )


def record_answer(job: KnownJob, record: CheckpointRecord, now_ms: int, *, with_vertices: bool) -> dict[str, Any]:
    """Return one checkpoint."""
    found: dict[str, Any] = {
        "className": _CLASS_NAMES[record.outcome],
        "id": record.checkpoint_id,
        "status": record.outcome,
        "is_savepoint": record.is_savepoint,
        "savepointFormat": record.savepoint_format,
        "trigger_timestamp": record.triggered_ms,
        **_parts(record, list(record.participants), now_ms),
        "checkpoint_type": _type(record),
        "tasks": {
            flink_id(vertex): vertex_answer(record, vertex, now_ms)
            for vertex in (job.vertices if with_vertices else ())
        },
    }
    if record.outcome == "COMPLETED":
        found |= {"external_path": record.path, "discarded": record.discarded}
    elif record.outcome == "FAILED":
        found |= {"failure_timestamp": record.ended_ms, "failure_message": record.why}
    return found


def _type(record: CheckpointRecord) -> str:
    if not record.is_savepoint:
        return "CHECKPOINT"
    return "SYNC_SAVEPOINT" if record.synchronous else "SAVEPOINT"


def vertex_answer(record: CheckpointRecord, vertex: Vertex, now_ms: int) -> dict[str, Any]:
    """Return a vertex's part of a checkpoint."""
    subtasks = [SubtaskId(vertex.id, index) for index in range(vertex.parallelism)]
    taking_part = [subtask for subtask in subtasks if subtask in record.participants]
    return {"id": record.checkpoint_id, "status": record.outcome, **_parts(record, taking_part, now_ms)}


def _parts(record: CheckpointRecord, subtasks: list[SubtaskId], now_ms: int) -> dict[str, Any]:
    snapshots = dict(record.snapshots)
    arrived = [snapshots[subtask] for subtask in subtasks if subtask in snapshots]
    last_ms = max((part.acknowledged_ms for part in arrived), default=-1)
    until_ms = last_ms if len(arrived) == len(subtasks) and last_ms >= 0 else (record.ended_ms or now_ms)
    return {
        "latest_ack_timestamp": last_ms,
        "checkpointed_size": sum(part.written_bytes for part in arrived),
        "state_size": sum(part.state_bytes for part in arrived),
        "end_to_end_duration": until_ms - record.triggered_ms,
        "alignment_buffered": sum(part.alignment.held_bytes for part in arrived),
        "processed_data": 0,
        "persisted_data": sum(part.alignment.in_flight_bytes for part in arrived),
        "num_subtasks": len(subtasks),
        "num_acknowledged_subtasks": len(arrived),
    }


def _held_bytes(record: CheckpointRecord) -> int:
    return sum(part.alignment.held_bytes for part in list(record.snapshots.values()))


def _duration(record: CheckpointRecord, now_ms: int) -> int:
    return (record.ended_ms or now_ms) - record.triggered_ms


def subtasks_answer(job: KnownJob, record: CheckpointRecord, vertex: Vertex) -> dict[str, Any]:
    """Answer `.../checkpoints/details/:checkpointid/subtasks/:vertexid`."""
    now_ms = job.statistics.clock.now_ms()
    snapshots = dict(record.snapshots)
    parts = [snapshots.get(SubtaskId(vertex.id, index)) for index in range(vertex.parallelism)]
    arrived = [part for part in parts if part is not None]
    return vertex_answer(record, vertex, now_ms) | {
        "summary": {
            "checkpointed_size": summary(part.written_bytes for part in arrived),
            "state_size": summary(part.state_bytes for part in arrived),
            "end_to_end_duration": summary(part.acknowledged_ms - record.triggered_ms for part in arrived),
            "checkpoint_duration": {
                "sync": summary(part.sync_ms for part in arrived),
                "async": summary(part.async_ms for part in arrived),
            },
            "alignment": {
                "buffered": summary(part.alignment.held_bytes for part in arrived),
                "processed": summary(0 for _ in arrived),
                "persisted": summary(part.alignment.in_flight_bytes for part in arrived),
                "duration": summary(part.alignment.duration_ms for part in arrived),
            },
            "start_delay": summary(part.alignment.start_delay_ms for part in arrived),
        },
        "subtasks": [_subtask(index, record, part) for index, part in enumerate(parts)],
    }


def _subtask(index: int, record: CheckpointRecord, part: SnapshotRecord | None) -> dict[str, Any]:
    if part is None:
        return {"className": "pending", "index": index, "status": "pending_or_failed"}
    return {
        "className": "completed",
        "index": index,
        "status": "completed",
        "ack_timestamp": part.acknowledged_ms,
        "end_to_end_duration": part.acknowledged_ms - record.triggered_ms,
        "checkpointed_size": part.written_bytes,
        "state_size": part.state_bytes,
        "checkpoint": {"sync": round(part.sync_ms), "async": round(part.async_ms)},
        "alignment": {
            "buffered": part.alignment.held_bytes,
            "processed": 0,
            "persisted": part.alignment.in_flight_bytes,
            "duration": round(part.alignment.duration_ms),
        },
        "start_delay": round(part.alignment.start_delay_ms),
        "unaligned_checkpoint": part.alignment.unaligned,
        "aborted": False,
    }


def config(job: KnownJob) -> dict[str, Any]:
    """Answer `/jobs/:jobid/checkpoints/config`."""
    settings = job.statistics.settings
    checkpoints = settings.checkpoints
    retention = checkpoints.retention
    return {
        "mode": checkpoints.mode.name.lower(),
        "interval": checkpoints.interval_ms if checkpoints.interval_ms is not None else 2**63 - 1,
        "timeout": checkpoints.timeout_ms,
        "min_pause": checkpoints.min_pause_ms,
        "max_concurrent": checkpoints.max_concurrent,
        "externalization": {
            "enabled": retention is not ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS,
            "delete_on_cancellation": retention is not ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION,
        },
        "state_backend": settings.state_backend,
        "checkpoint_storage": checkpoints.storage,
        "unaligned_checkpoints": checkpoints.unaligned,
        "tolerable_failed_checkpoints": checkpoints.tolerable_failures,
        "aligned_checkpoint_timeout": checkpoints.aligned_timeout_ms,
        "checkpoints_after_tasks_finish": checkpoints.after_tasks_finish,
        "state_changelog_enabled": False,
        "changelog_periodic_materialization_interval": 0,
        "changelog_storage": "",
    }
