"""The shapes of what Flink's REST API tells, written from the facts of its published description: GET and answer."""

from __future__ import annotations

from typing import Any

from ekorn.rest.shapes import Either, Map, Maybe, fields

__all__ = ["FAILURE", "JOB_STATUS", "LOGS", "READING"]

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
    **fields(int, "min", "max", "avg"),
    **fields(Either(float, frozenset({"NaN"})), "p50", "p90", "p95", "p99", "p999"),
}
IO_METRICS = {
    **fields(int, "read-bytes", "read-records", "write-bytes", "write-records"),
    **fields(bool, "read-bytes-complete", "read-records-complete", "write-bytes-complete", "write-records-complete"),
    **fields(int, "accumulated-backpressured-time", "accumulated-idle-time"),
    "accumulated-busy-time": float,
}
PLAN = {
    **fields(str, "jid", "name", "type"),
    "nodes": [
        {
            **fields(str, "id", "description", "operator", "operator_strategy"),
            "parallelism": int,
            "optimizer_properties": dict,
            "inputs?": [{"num": int, **fields(str, "id", "ship_strategy", "local_strategy", "caching", "exchange")}],
        }
    ],
}
TIMES = fields(int, "start-time", "end-time", "duration")
JOB_OVERVIEW = {
    **fields(str, "jid", "name"),
    **TIMES,
    "state": JOB_STATUS,
    "last-modification": int,
    "pending-operators": int,
    "jobType": frozenset({"BATCH", "STREAMING"}),
    "schedulerType": frozenset({"Default", "Adaptive", "AdaptiveBatch"}),
    "tasks": {"total": int, **fields(int, *(state.lower() for state in STATES))},
}
JOB = {
    **fields(str, "jid", "name", "application-id"),
    **TIMES,
    "isStoppable": bool,
    "state": JOB_STATUS,
    "job-type": frozenset({"BATCH", "STREAMING"}),
    "schedulerType": frozenset({"Default", "Adaptive", "AdaptiveBatch"}),
    **fields(int, "maxParallelism", "now", "pending-operators"),
    "timestamps": fields(int, *JOB_STATUS),
    "status-counts": fields(int, *STATES),
    "plan": PLAN,
    "stream-graph": Maybe(dict),
    "vertices": [
        {
            **fields(str, "id", "slotSharingGroupId", "name"),
            **fields(int, "maxParallelism", "parallelism"),
            "status": STATE,
            **TIMES,
            "tasks": fields(int, *STATES),
            "metrics": IO_METRICS,
        }
    ],
}
SUBTASK = {
    **fields(int, "subtask", "attempt"),
    **fields(str, "endpoint", "taskmanager-id"),
    "status": STATE,
    **TIMES,
    "metrics": IO_METRICS,
    "status-duration": Map(int),
    "other-concurrent-attempts": list,
}
AGGREGATED = {"metrics": Map(SUMMARY), "status-duration": Map(SUMMARY)}
ACCUMULATORS = [fields(str, "name", "type", "value")]
METRICS = [{"id": str, "value?": str}]
AGGREGATED_METRICS = [{"id": str, "min?": float, "max?": float, "avg?": float, "sum?": float, "skew?": float}]
PART_OF_CHECKPOINT = {
    **fields(int, "id", "latest_ack_timestamp", "checkpointed_size", "state_size", "end_to_end_duration"),
    **fields(int, "alignment_buffered", "processed_data", "persisted_data"),
    **fields(int, "num_subtasks", "num_acknowledged_subtasks"),
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
    "counts": fields(int, "restored", "total", "in_progress", "completed", "failed"),
    "summary": fields(
        SUMMARY,
        "checkpointed_size",
        "state_size",
        "end_to_end_duration",
        "alignment_buffered",
        "processed_data",
        "persisted_data",
    ),
    "latest": {
        **fields(Maybe(CHECKPOINT), "completed", "savepoint", "failed"),
        "restored": Maybe({"id": int, "restore_timestamp": int, "is_savepoint": bool, "external_path": Maybe(str)}),
    },
    "history": [CHECKPOINT],
}
CHECKPOINT_OF_VERTEX = {
    **PART_OF_CHECKPOINT,
    "summary": {
        **fields(SUMMARY, "checkpointed_size", "state_size", "end_to_end_duration", "start_delay"),
        "checkpoint_duration": fields(SUMMARY, "sync", "async"),
        "alignment": fields(SUMMARY, "buffered", "processed", "persisted", "duration"),
    },
    "subtasks": [
        {
            "className": frozenset({"completed", "pending"}),
            "index": int,
            "status": str,
            **fields(int, "ack_timestamp?", "end_to_end_duration?", "checkpointed_size?", "state_size?"),
            "checkpoint?": fields(int, "sync", "async"),
            "alignment?": fields(int, "buffered", "processed", "persisted", "duration"),
            "start_delay?": int,
            **fields(bool, "unaligned_checkpoint?", "aborted?"),
        }
    ],
}
CHECKPOINT_CONFIG = {
    "mode": frozenset({"exactly_once", "at_least_once"}),
    **fields(int, "interval", "timeout", "min_pause", "max_concurrent", "tolerable_failed_checkpoints"),
    **fields(int, "aligned_checkpoint_timeout", "changelog_periodic_materialization_interval"),
    **fields(str, "state_backend", "checkpoint_storage", "changelog_storage"),
    **fields(bool, "unaligned_checkpoints", "checkpoints_after_tasks_finish", "state_changelog_enabled"),
    "externalization": fields(bool, "enabled", "delete_on_cancellation"),
}
LEVEL = frozenset({"ok", "low", "high"})
BACK_PRESSURE = {
    "status": frozenset({"ok", "deprecated"}),
    **fields(LEVEL, "backpressure-level", "backpressureLevel"),
    "end-timestamp": int,
    "subtasks": [
        {
            **fields(int, "subtask", "attempt-number"),
            **fields(LEVEL, "backpressure-level", "backpressureLevel"),
            **fields(float, "ratio", "busyRatio", "idleRatio"),
            "other-concurrent-attempts": list,
        }
    ],
}
RESOURCE = {
    "cpuCores": float,
    **fields(int, "taskHeapMemory", "taskOffHeapMemory", "managedMemory", "networkMemory"),
    "extendedResources": Map(float),
}
MEMORY = fields(
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
    **fields(str, "id", "path"),
    **fields(int, "dataPort", "jmxPort", "timeSinceLastHeartbeat", "slotsNumber", "freeSlots", "assignedTasks"),
    **fields(RESOURCE, "totalResource", "freeResource"),
    "hardware": fields(int, "cpuCores", "physicalMemory", "freeMemory", "managedMemory"),
    "memoryConfiguration": MEMORY,
    "blocked": bool,
}
EXCEPTION = {
    **fields(str, "exceptionName", "stacktrace"),
    "timestamp": int,
    "failureLabels": Map(str),
    **fields(Maybe(str), "taskName", "endpoint", "taskManagerId"),
}
FAILURE = fields(str, "class", "stack-trace", "serialized-throwable")
RESCALE_OUTCOME = frozenset({"COMPLETED", "FAILED", "IGNORED"})
RESCALE = {
    **fields(str, "rescaleUuid", "resourceRequirementsUuid"),
    "rescaleAttemptId": int,
    "vertices": Map(
        {
            **fields(str, "jobVertexId", "jobVertexName", "slotSharingGroupId", "slotSharingGroupName"),
            **fields(int, "desiredParallelism", "sufficientParallelism"),
            **fields(int, "preRescaleParallelism", "postRescaleParallelism"),
        }
    ),
    "slots": Map(
        {
            **fields(str, "slotSharingGroupId", "slotSharingGroupName"),
            **fields(RESOURCE, "requestResourceProfile", "acquiredResourceProfile"),
            **fields(int, "desiredSlots", "minimalRequiredSlots", "preRescaleSlots", "postRescaleSlots"),
        }
    ),
    "schedulerStates": [
        {
            "state": str,
            **fields(int, "enterTimestampInMillis", "leaveTimestampInMillis", "durationInMillis"),
            "stringifiedException": Maybe(str),
        }
    ],
    **fields(int, "startTimestampInMillis", "endTimestampInMillis"),
    "terminalState": RESCALE_OUTCOME,
    "triggerCause": frozenset(
        {"INITIAL_SCHEDULE", "UPDATE_REQUIREMENT", "NEW_RESOURCE_AVAILABLE", "RECOVERABLE_FAILOVER"}
    ),
    "terminatedReason": frozenset({"SUCCEEDED", "EXCEPTION_OCCURRED", "NO_RESOURCES_OR_PARALLELISMS_CHANGE"}),
}
RESCALE_COUNTS = fields(int, "ignored", "inProgress", "completed", "failed")
LOGS = {"logs": [{"name": str, "size": int, "mtime": int}]}
VERTEX = "/jobs/{jobid}/vertices/{vertexid}"

READING: dict[str, Any] = {
    "/overview": {
        **fields(int, "taskmanagers", "taskmanagers-blocked", "slots-total", "slots-available"),
        **fields(int, "slots-free-and-blocked", "jobs-running", "jobs-finished", "jobs-cancelled", "jobs-failed"),
        **fields(str, "flink-version", "flink-commit"),
    },
    "/config": {
        **fields(int, "refresh-interval", "timezone-offset"),
        **fields(str, "timezone-name", "flink-version", "flink-revision"),
        "features": fields(bool, "web-submit", "web-cancel", "web-rescale", "web-history"),
    },
    "/jobs": {"jobs": [{"id": str, "status": JOB_STATUS}]},
    "/jobs/overview": {"jobs": [JOB_OVERVIEW]},
    "/jobs/metrics": AGGREGATED_METRICS,
    "/jobs/metrics?get=numRestarts,uptime&agg=min,max": AGGREGATED_METRICS,
    "/jobs/{jobid}": JOB,
    "/jobs/{jobid}/status": {"status": JOB_STATUS},
    "/jobs/{jobid}/plan": {"plan": PLAN},
    "/jobs/{jobid}/config": {
        **fields(str, "jid", "name"),
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
    "/jobs/{jobid}/execution-result": {
        "status": {"id": frozenset({"IN_PROGRESS", "COMPLETED"})},
        "job-execution-result?": {
            **fields(str, "id", "name", "application-id"),
            "application-status": frozenset({"SUCCEEDED", "FAILED", "CANCELED", "UNKNOWN"}),
            "accumulator-results": Map(str),
            **fields(int, "net-runtime", "start-time", "end-time"),
            "failure-cause?": FAILURE,
        },
    },
    "/jobs/{jobid}/rescales/overview": {
        "rescalesCounts": RESCALE_COUNTS,
        "latest": fields(Maybe(RESCALE), "completed", "failed", "ignored"),
    },
    "/jobs/{jobid}/rescales/history": [RESCALE],
    "/jobs/{jobid}/rescales/details/{rescaleuuid}": RESCALE,
    "/jobs/{jobid}/rescales/summary": {
        "rescalesCounts": RESCALE_COUNTS,
        **fields(
            SUMMARY,
            "rescalesDurationStatsInMillis",
            "completedRescalesDurationStatsInMillis",
            "ignoredRescalesDurationStatsInMillis",
            "failedRescalesDurationStatsInMillis",
        ),
    },
    "/jobs/{jobid}/rescales/config": {
        **fields(int, "rescaleHistoryMax", "rescaleOnFailedCheckpointCount", "slotIdleTimeoutInMillis"),
        "schedulerExecutionMode": Maybe(frozenset({"REACTIVE"})),
        **fields(int, "submissionResourceWaitTimeoutInMillis", "submissionResourceStabilizationTimeoutInMillis"),
        **fields(int, "executingCooldownTimeoutInMillis", "executingResourceStabilizationTimeoutInMillis"),
        "maximumDelayForTriggeringRescaleInMillis": int,
    },
    "/jobs/{jobid}/resource-requirements": Map({"parallelism": fields(int, "lowerBound", "upperBound")}),
    "/applications/overview": {
        "applications": [{**fields(str, "id", "name", "status"), **TIMES, "jobs": Map(int)}],
    },
    "/applications/{jobid}": {
        **fields(str, "id", "name", "status"),
        **TIMES,
        "jobs": [JOB_OVERVIEW],
        "timestamps": Map(int),
    },
    "/applications/{jobid}/jobmanager/config": [fields(str, "key", "value")],
    "/applications/{jobid}/exceptions": {
        "exceptionHistory": {"entries": [{**fields(str, "exceptionName", "stacktrace", "jobId"), "timestamp": int}]}
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
        **fields(str, "id", "name"),
        **fields(int, "parallelism", "maxParallelism", "now"),
        "subtasks": [SUBTASK],
        "aggregated": AGGREGATED,
    },
    f"{VERTEX}/flamegraph": {"endTimestamp": int, "data?": {"name": str, "value": int, "children": list}},
    f"{VERTEX}/metrics": METRICS,
    f"{VERTEX}/metrics?get=0.numRecordsIn": METRICS,
    f"{VERTEX}/jm-operator-metrics": METRICS,
    f"{VERTEX}/watermarks": METRICS,
    f"{VERTEX}/backpressure": BACK_PRESSURE,
    f"{VERTEX}/accumulators": {"id": str, "user-accumulators": ACCUMULATORS},
    f"{VERTEX}/subtasktimes": {
        **fields(str, "id", "name"),
        "now": int,
        "subtasks": [{"subtask": int, "endpoint": str, "duration": int, "timestamps": fields(int, *STATES)}],
    },
    f"{VERTEX}/taskmanagers": {
        **fields(str, "id", "name"),
        "now": int,
        "taskmanagers": [
            {
                **fields(str, "endpoint", "taskmanager-id"),
                "status": STATE,
                **TIMES,
                "metrics": IO_METRICS,
                "status-counts": fields(int, *STATES),
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
        **fields(int, "subtask", "attempt"),
        "id": str,
        "user-accumulators": ACCUMULATORS,
    },
    "/jobmanager/config": [fields(str, "key", "value")],
    "/jobmanager/environment": {"jvm": {**fields(str, "version", "arch"), "options": [str]}, "classpath": [str]},
    "/jobmanager/logs": LOGS,
    "/jobmanager/metrics": METRICS,
    "/jobmanager/thread-dump": {"threadInfos": [fields(str, "threadName", "stringifiedThreadInfo")]},
    "/taskmanagers": {"taskmanagers": [TASK_MANAGER]},
    "/taskmanagers/metrics": AGGREGATED_METRICS,
    "/taskmanagers/metrics?get=Status.JVM.Threads.Count&agg=sum": AGGREGATED_METRICS,
    "/taskmanagers/{taskmanagerid}": {
        **TASK_MANAGER,
        "allocatedSlots": [{"jobId": str, "resource": RESOURCE, "assignedTasks": int}],
        "metrics": {
            **fields(int, *(f"{kind}{what}" for kind in ("heap", "nonHeap") for what in ("Used", "Committed", "Max"))),
            **fields(int, *(f"{kind}{what}" for kind in ("direct", "mapped") for what in ("Count", "Used", "Max"))),
            **fields(int, "memorySegmentsAvailable", "memorySegmentsTotal"),
            **fields(int, *(f"nettyShuffleMemorySegments{what}" for what in ("Available", "Used", "Total"))),
            **fields(int, *(f"nettyShuffleMemory{what}" for what in ("Available", "Used", "Total"))),
            "garbageCollectors": [{"name": str, **fields(int, "count", "time")}],
        },
    },
    "/taskmanagers/{taskmanagerid}/metrics": METRICS,
    "/taskmanagers/{taskmanagerid}/logs": LOGS,
}
