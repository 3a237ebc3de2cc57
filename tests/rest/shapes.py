"""The shapes of Flink's answers, as data, written from the facts of its published description of the REST API.

A shape is a type, a set of allowed texts, a list with the shape of its elements, a dict with the shape of each field,
or one of the classes below. A field whose name ends with a question mark may be missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Map:
    """An object with any keys, whose values have one shape."""

    of: Any


@dataclass(frozen=True)
class Maybe:
    """Null, or a value of this shape."""

    of: Any


@dataclass(frozen=True)
class Either:
    """A value of one of these shapes."""

    first: Any
    second: Any


def misfits(shape: Any, value: Any, at: str = "") -> list[str]:
    """Return where a value differs from a shape."""
    match shape:
        case Maybe():
            return [] if value is None else misfits(shape.of, value, at)
        case Either():
            return [] if not misfits(shape.first, value, at) else misfits(shape.second, value, at)
        case Map():
            if not isinstance(value, dict):
                return [f"{at}: {value!r} is no object"]
            return [each for key, part in value.items() for each in misfits(shape.of, part, f"{at}.{key}")]
        case dict():
            return _misfits_of_object(shape, value, at)
        case list():
            if not isinstance(value, list):
                return [f"{at}: {value!r} is no list"]
            return [each for n, part in enumerate(value) for each in misfits(shape[0], part, f"{at}[{n}]")]
        case frozenset():
            return [] if value in shape else [f"{at}: {value!r} is not one of {sorted(shape)}"]
    if shape is Any:
        return []
    if shape is float:
        return [] if type(value) in (int, float) else [f"{at}: {value!r} is no number"]
    return [] if type(value) is shape else [f"{at}: {value!r} is no {shape.__name__}"]


def _misfits_of_object(shape: dict[str, Any], value: Any, at: str) -> list[str]:
    if not isinstance(value, dict):
        return [f"{at}: {value!r} is no object"]
    known = {name.rstrip("?"): part for name, part in shape.items()}
    found = [f"{at}.{name} is missing" for name in shape if not name.endswith("?") and name not in value]
    found += [f"{at}.{name} is not one of Flink's fields" for name in value if name not in known]
    for name, part in value.items():
        if name in known:
            found += misfits(known[name], part, f"{at}.{name}")
    return found


def _fields(shape: Any, *names: str) -> dict[str, Any]:
    return dict.fromkeys(names, shape)


JOB_STATUS = frozenset(
    [
        "INITIALIZING",
        "CREATED",
        "RUNNING",
        "FAILING",
        "FAILED",
        "CANCELLING",
        "CANCELED",
        "FINISHED",
        "RESTARTING",
        "SUSPENDED",
        "RECONCILING",
    ]
)
STATES = [
    "CREATED",
    "SCHEDULED",
    "DEPLOYING",
    "RUNNING",
    "FINISHED",
    "CANCELING",
    "CANCELED",
    "FAILED",
    "RECONCILING",
    "INITIALIZING",
]
STATE = frozenset(STATES)
OUTCOME = frozenset({"IN_PROGRESS", "COMPLETED", "FAILED"})
SUMMARY = {
    **_fields(int, "min", "max", "avg"),
    **_fields(Either(float, frozenset({"NaN"})), "p50", "p90", "p95", "p99", "p999"),
}
IO_METRICS = {
    **_fields(int, "read-bytes", "read-records", "write-bytes", "write-records"),
    **_fields(bool, "read-bytes-complete", "read-records-complete", "write-bytes-complete", "write-records-complete"),
    **_fields(int, "accumulated-backpressured-time", "accumulated-idle-time"),
    "accumulated-busy-time": float,
}
PLAN = {
    **_fields(str, "jid", "name", "type"),
    "nodes": [
        {
            **_fields(str, "id", "description", "operator", "operator_strategy"),
            "parallelism": int,
            "optimizer_properties": dict,
            "inputs?": [{"num": int, **_fields(str, "id", "ship_strategy", "local_strategy", "caching", "exchange")}],
        }
    ],
}
TIMES = _fields(int, "start-time", "end-time", "duration")
JOB_OVERVIEW = {
    **_fields(str, "jid", "name"),
    **TIMES,
    "state": JOB_STATUS,
    "last-modification": int,
    "pending-operators": int,
    "jobType": frozenset({"BATCH", "STREAMING"}),
    "schedulerType": frozenset({"Default", "Adaptive", "AdaptiveBatch"}),
    "tasks": {"total": int, **_fields(int, *(state.lower() for state in STATES))},
}
JOB = {
    **_fields(str, "jid", "name", "application-id"),
    **TIMES,
    "isStoppable": bool,
    "state": JOB_STATUS,
    "job-type": frozenset({"BATCH", "STREAMING"}),
    "schedulerType": frozenset({"Default", "Adaptive", "AdaptiveBatch"}),
    **_fields(int, "maxParallelism", "now", "pending-operators"),
    "timestamps": _fields(int, *JOB_STATUS),
    "status-counts": _fields(int, *STATES),
    "plan": PLAN,
    "stream-graph": Maybe(dict),
    "vertices": [
        {
            **_fields(str, "id", "slotSharingGroupId", "name"),
            **_fields(int, "maxParallelism", "parallelism"),
            "status": STATE,
            **TIMES,
            "tasks": _fields(int, *STATES),
            "metrics": IO_METRICS,
        }
    ],
}
SUBTASK = {
    **_fields(int, "subtask", "attempt"),
    **_fields(str, "endpoint", "taskmanager-id"),
    "status": STATE,
    **TIMES,
    "metrics": IO_METRICS,
    "status-duration": Map(int),
    "other-concurrent-attempts": list,
}
AGGREGATED = {"metrics": Map(SUMMARY), "status-duration": Map(SUMMARY)}
ACCUMULATORS = [_fields(str, "name", "type", "value")]
METRICS = [{"id": str, "value?": str}]
AGGREGATED_METRICS = [{"id": str, "min?": float, "max?": float, "avg?": float, "sum?": float, "skew?": float}]
PART_OF_CHECKPOINT = {
    **_fields(int, "id", "latest_ack_timestamp", "checkpointed_size", "state_size", "end_to_end_duration"),
    **_fields(int, "alignment_buffered", "processed_data", "persisted_data"),
    **_fields(int, "num_subtasks", "num_acknowledged_subtasks"),
    "status": OUTCOME,
}
CHECKPOINT = {
    **PART_OF_CHECKPOINT,
    "className": frozenset({"completed", "failed", "in_progress"}),
    "is_savepoint": bool,
    "savepointFormat": Maybe(str),
    "trigger_timestamp": int,
    "checkpoint_type": frozenset({"CHECKPOINT", "UNALIGNED_CHECKPOINT", "SAVEPOINT", "SYNC_SAVEPOINT"}),
    "tasks": Map(PART_OF_CHECKPOINT),
    "external_path?": Maybe(str),
    "discarded?": bool,
    "failure_timestamp?": int,
    "failure_message?": Maybe(str),
}
CHECKPOINTS = {
    "counts": _fields(int, "restored", "total", "in_progress", "completed", "failed"),
    "summary": _fields(
        SUMMARY,
        "checkpointed_size",
        "state_size",
        "end_to_end_duration",
        "alignment_buffered",
        "processed_data",
        "persisted_data",
    ),
    "latest": {
        **_fields(Maybe(CHECKPOINT), "completed", "savepoint", "failed"),
        "restored": Maybe({"id": int, "restore_timestamp": int, "is_savepoint": bool, "external_path": Maybe(str)}),
    },
    "history": [CHECKPOINT],
}
CHECKPOINT_OF_VERTEX = {
    **PART_OF_CHECKPOINT,
    "summary": {
        **_fields(SUMMARY, "checkpointed_size", "state_size", "end_to_end_duration", "start_delay"),
        "checkpoint_duration": _fields(SUMMARY, "sync", "async"),
        "alignment": _fields(SUMMARY, "buffered", "processed", "persisted", "duration"),
    },
    "subtasks": [
        {
            "className": frozenset({"completed", "pending"}),
            "index": int,
            "status": str,
            **_fields(int, "ack_timestamp?", "end_to_end_duration?", "checkpointed_size?", "state_size?"),
            "checkpoint?": _fields(int, "sync", "async"),
            "alignment?": _fields(int, "buffered", "processed", "persisted", "duration"),
            "start_delay?": int,
            **_fields(bool, "unaligned_checkpoint?", "aborted?"),
        }
    ],
}
CHECKPOINT_CONFIG = {
    "mode": frozenset({"exactly_once", "at_least_once"}),
    **_fields(int, "interval", "timeout", "min_pause", "max_concurrent", "tolerable_failed_checkpoints"),
    **_fields(int, "aligned_checkpoint_timeout", "changelog_periodic_materialization_interval"),
    **_fields(str, "state_backend", "checkpoint_storage", "changelog_storage"),
    **_fields(bool, "unaligned_checkpoints", "checkpoints_after_tasks_finish", "state_changelog_enabled"),
    "externalization": _fields(bool, "enabled", "delete_on_cancellation"),
}
LEVEL = frozenset({"ok", "low", "high"})
BACK_PRESSURE = {
    "status": frozenset({"ok", "deprecated"}),
    **_fields(LEVEL, "backpressure-level", "backpressureLevel"),
    "end-timestamp": int,
    "subtasks": [
        {
            **_fields(int, "subtask", "attempt-number"),
            **_fields(LEVEL, "backpressure-level", "backpressureLevel"),
            **_fields(float, "ratio", "busyRatio", "idleRatio"),
            "other-concurrent-attempts": list,
        }
    ],
}
RESOURCE = {
    "cpuCores": float,
    **_fields(int, "taskHeapMemory", "taskOffHeapMemory", "managedMemory", "networkMemory"),
    "extendedResources": Map(float),
}
MEMORY = _fields(
    Maybe(int),
    "frameworkHeap",
    "taskHeap",
    "frameworkOffHeap",
    "taskOffHeap",
    "networkMemory",
    "managedMemory",
    "jvmMetaspace",
    "jvmOverhead",
    "totalFlinkMemory",
    "totalProcessMemory",
)
TASK_MANAGER = {
    **_fields(str, "id", "path"),
    **_fields(int, "dataPort", "jmxPort", "timeSinceLastHeartbeat", "slotsNumber", "freeSlots", "assignedTasks"),
    **_fields(RESOURCE, "totalResource", "freeResource"),
    "hardware": _fields(int, "cpuCores", "physicalMemory", "freeMemory", "managedMemory"),
    "memoryConfiguration": MEMORY,
    "blocked": bool,
}
EXCEPTION = {
    **_fields(str, "exceptionName", "stacktrace"),
    "timestamp": int,
    "failureLabels": Map(str),
    **_fields(Maybe(str), "taskName", "endpoint", "taskManagerId"),
}
LOGS = {"logs": [{"name": str, "size": int, "mtime": int}]}
VERTEX = "/jobs/{jobid}/vertices/{vertexid}"

READING: dict[str, Any] = {
    "/overview": {
        **_fields(int, "taskmanagers", "taskmanagers-blocked", "slots-total", "slots-available"),
        **_fields(int, "slots-free-and-blocked", "jobs-running", "jobs-finished", "jobs-cancelled", "jobs-failed"),
        **_fields(str, "flink-version", "flink-commit"),
    },
    "/config": {
        **_fields(int, "refresh-interval", "timezone-offset"),
        **_fields(str, "timezone-name", "flink-version", "flink-revision"),
        "features": _fields(bool, "web-submit", "web-cancel", "web-rescale", "web-history"),
    },
    "/jobs": {"jobs": [{"id": str, "status": JOB_STATUS}]},
    "/jobs/overview": {"jobs": [JOB_OVERVIEW]},
    "/jobs/metrics": AGGREGATED_METRICS,
    "/jobs/metrics?get=numRestarts,uptime&agg=min,max": AGGREGATED_METRICS,
    "/jobs/{jobid}": JOB,
    "/jobs/{jobid}/status": {"status": JOB_STATUS},
    "/jobs/{jobid}/plan": {"plan": PLAN},
    "/jobs/{jobid}/config": {
        **_fields(str, "jid", "name"),
        "execution-config": {
            "restart-strategy": str,
            "job-parallelism": int,
            "object-reuse-mode": bool,
            "user-config": Map(str),
        },
    },
    "/jobs/{jobid}/exceptions": {
        "exceptionHistory": {
            "entries": [{**EXCEPTION, "concurrentExceptions": [EXCEPTION]}],
            "truncated": bool,
        }
    },
    "/jobs/{jobid}/resource-requirements": Map({"parallelism": _fields(int, "lowerBound", "upperBound")}),
    "/applications/overview": {
        "applications": [{**_fields(str, "id", "name", "status"), **TIMES, "jobs": Map(int)}],
    },
    "/applications/{jobid}": {
        **_fields(str, "id", "name", "status"),
        **TIMES,
        "jobs": [JOB_OVERVIEW],
        "timestamps": Map(int),
    },
    "/applications/{jobid}/exceptions": {
        "exceptionHistory": {"entries": [{**_fields(str, "exceptionName", "stacktrace", "jobId"), "timestamp": int}]}
    },
    "/jobs/{jobid}/accumulators": {
        "job-accumulators": list,
        "user-task-accumulators": ACCUMULATORS,
        "serialized-user-task-accumulators": dict,
    },
    "/jobs/{jobid}/metrics": METRICS,
    "/jobs/{jobid}/metrics?get=uptime,lastCheckpointExternalPath": METRICS,
    "/jobs/{jobid}/checkpoints": CHECKPOINTS,
    "/jobs/{jobid}/checkpoints/config": CHECKPOINT_CONFIG,
    "/jobs/{jobid}/checkpoints/details/{checkpointid}": CHECKPOINT,
    "/jobs/{jobid}/checkpoints/details/{checkpointid}/subtasks/{vertexid}": CHECKPOINT_OF_VERTEX,
    VERTEX: {
        **_fields(str, "id", "name"),
        **_fields(int, "parallelism", "maxParallelism", "now"),
        "subtasks": [SUBTASK],
        "aggregated": AGGREGATED,
    },
    f"{VERTEX}/metrics": METRICS,
    f"{VERTEX}/metrics?get=0.numRecordsIn": METRICS,
    f"{VERTEX}/jm-operator-metrics": METRICS,
    f"{VERTEX}/watermarks": METRICS,
    f"{VERTEX}/backpressure": BACK_PRESSURE,
    f"{VERTEX}/accumulators": {"id": str, "user-accumulators": ACCUMULATORS},
    f"{VERTEX}/subtasktimes": {
        **_fields(str, "id", "name"),
        "now": int,
        "subtasks": [{"subtask": int, "endpoint": str, "duration": int, "timestamps": _fields(int, *STATES)}],
    },
    f"{VERTEX}/taskmanagers": {
        **_fields(str, "id", "name"),
        "now": int,
        "taskmanagers": [
            {
                **_fields(str, "endpoint", "taskmanager-id"),
                "status": STATE,
                **TIMES,
                "metrics": IO_METRICS,
                "status-counts": _fields(int, *STATES),
                "aggregated": AGGREGATED,
            }
        ],
    },
    f"{VERTEX}/subtasks/accumulators": {
        "id": str,
        "parallelism": int,
        "subtasks": [{"subtask": int, "attempt": int, "endpoint": str, "user-accumulators": ACCUMULATORS}],
    },
    f"{VERTEX}/subtasks/metrics": AGGREGATED_METRICS,
    f"{VERTEX}/subtasks/metrics?get=numRecordsIn": AGGREGATED_METRICS,
    f"{VERTEX}/subtasks/{{subtaskindex}}": SUBTASK,
    f"{VERTEX}/subtasks/{{subtaskindex}}/metrics": METRICS,
    f"{VERTEX}/subtasks/{{subtaskindex}}/attempts/{{attempt}}": SUBTASK,
    f"{VERTEX}/subtasks/{{subtaskindex}}/attempts/{{attempt}}/accumulators": {
        **_fields(int, "subtask", "attempt"),
        "id": str,
        "user-accumulators": ACCUMULATORS,
    },
    "/jobmanager/config": [_fields(str, "key", "value")],
    "/jobmanager/environment": {"jvm": {**_fields(str, "version", "arch"), "options": [str]}, "classpath": [str]},
    "/jobmanager/logs": LOGS,
    "/jobmanager/metrics": METRICS,
    "/jobmanager/thread-dump": {"threadInfos": [_fields(str, "threadName", "stringifiedThreadInfo")]},
    "/taskmanagers": {"taskmanagers": [TASK_MANAGER]},
    "/taskmanagers/{taskmanagerid}": {
        **TASK_MANAGER,
        "allocatedSlots": [{"jobId": str, "resource": RESOURCE, "assignedTasks": int}],
        "metrics": dict,
    },
    "/taskmanagers/{taskmanagerid}/metrics": METRICS,
    "/taskmanagers/{taskmanagerid}/logs": LOGS,
}
