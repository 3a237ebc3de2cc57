"""The shape of every answer of the REST API.

The description of the API is made of them (`openapi.py`), and the tests compare every answer with them.
"""

from __future__ import annotations

from typing import Any

from ekorn.rest.flink_answers import FAILURE, JOB_STATUS, LOGS, READING
from ekorn.rest.shapes import Map, Maybe, fields

__all__ = ["ANSWERS", "TEXT"]

# ------------------------------------------------------------------------------------ what Flink's API does not have

TEXT = str  # a log file, which is no JSON
SERVICE_JOB = {
    **fields(str, "id", "name", "state", "why", "program", "log"),
    "phase": frozenset({"WAITING", "STARTED", "ENDED"}),
    **fields(int, "slots", "arguments", "submitted", "started", "ended", "pid"),
    "settings": Map(str),
    **fields(bool, "changing", "silent"),
    "further": [str],
}
MEMBER = {**fields(str, "address", "host"), "pid": int}
OWN_READING: dict[str, Any] = {
    "/service/jobs": {"jobs": [SERVICE_JOB]},
    "/service/cluster": {
        "cluster": str,
        "leader": Maybe(MEMBER),
        "standbys": [MEMBER],
        "self": {**MEMBER, "leads": bool},
        "lease-ms": int,
        "storage-error": Maybe(str),
    },
    "/jobs/{jobid}/log": TEXT,
    "/jobs/{jobid}/jobmanager/config": READING["/jobmanager/config"],
    "/jobs/{jobid}/jobmanager/environment": READING["/jobmanager/environment"],
    "/jobs/{jobid}/jobmanager/logs": LOGS,
    "/jobs/{jobid}/jobmanager/logs/{name}": TEXT,
    "/jobs/{jobid}/rescales": {
        "rescales": [
            {**fields(int, "timestamp", "parallelism", "wanted"), "cause": str, "refusal": Maybe(str)},
        ]
    },
    "/jobs/{jobid}/time-line": {"changes": [{"status": JOB_STATUS, "timestamp": int}]},
    "/jobs/{jobid}/metric-history": {
        "points": [
            {
                **fields(int, "timestamp", "restarts"),
                **fields(float, "recordsPerSecond", "latency", "busyRatio", "backPressuredRatio"),
                **fields(Maybe(int), "stateSize", "checkpointDuration"),
            }
        ]
    },
    "/jobs/{jobid}/state": Any,
    "/jobs/{jobid}/state/{name}": Any,
    "/jobs/{jobid}/{rest}": Any,
    "/taskmanagers/{taskmanagerid}/{rest}": Any,
    "/openapi.json": dict,
}

# --------------------------------------------------------------------------------------------- operations and programs


TRIGGERED = {"request-id": str}


def _progress(**outcome: Any) -> dict[str, Any]:
    shapes = {f"{name.replace('_', '-')}?": shape for name, shape in outcome.items()}
    return {"status": {"id": frozenset({"IN_PROGRESS", "COMPLETED"})}, "operation": Maybe(shapes)}


SAVED = _progress(location=str, failure_cause=FAILURE)
TAKEN = {**SAVED, "operation": Maybe({"checkpointId?": int, "failureCause?": FAILURE})}
OPERATIONS: dict[str, Any] = {
    "/jobs/{jobid}/checkpoints/{triggerid}": TAKEN,
    "/jobs/{jobid}/savepoints/{triggerid}": SAVED,
    "/jobs/{jobid}/rescaling/{triggerid}": SAVED,
    "/jobs/{jobid}/upgrade/{triggerid}": SAVED,
    "/savepoint-disposal/{triggerid}": _progress(failure_cause=FAILURE),
    "/jars": {"address": str, "files": [{**fields(str, "id", "name"), "uploaded": int, "entry": list}]},
    "/jobmanager/log": TEXT,
    "/jobmanager/stdout": TEXT,
    "/jobmanager/logs/{name}": TEXT,
    "/taskmanagers/{taskmanagerid}/log": TEXT,
    "/taskmanagers/{taskmanagerid}/stdout": TEXT,
    "/taskmanagers/{taskmanagerid}/logs/{name}": TEXT,
    "/taskmanagers/{taskmanagerid}/thread-dump": READING["/jobmanager/thread-dump"],
}
CHANGING: dict[str, Any] = {
    "POST /jobs/{jobid}/checkpoints": TRIGGERED,
    "POST /jobs/{jobid}/savepoints": TRIGGERED,
    "POST /jobs/{jobid}/stop": TRIGGERED,
    "POST /jobs/{jobid}/upgrade": TRIGGERED,
    "POST /jobs/{jobid}/restore": {"jobid": str},
    "POST /jobs/{jobid}/state/{name}": Any,
    "POST /jobs/{jobid}/state/{rest}": Any,
    "POST /jobs/{jobid}/{rest}": Any,
    "PATCH /jobs/{jobid}": {},
    "PUT /jobs/{jobid}/resource-requirements": {},
    "PATCH /jobs/{jobid}/rescaling": TRIGGERED,
    "PATCH /jobs/{jobid}/{rest}": Any,
    "POST /savepoint-disposal": TRIGGERED,
    "POST /jars/upload": {"filename": str, "status": frozenset({"success"})},
    "POST /jars/{jarid}/run": fields(str, "jobid", "applicationId"),
    "POST /jars/{jarid}/run-application": {"applicationid": str},
    "POST /jars/{jarid}/plan": READING["/jobs/{jobid}/plan"],
    "POST /applications/{applicationid}/cancel": {},
    "DELETE /jars/{jarid}": {},
}
ANSWERS: dict[str, Any] = {
    **{
        f"GET {path.replace('/applications/{jobid}', '/applications/{applicationid}')}": shape
        for path, shape in {**READING, **OWN_READING, **OPERATIONS}.items()
        if "?" not in path
    },
    **CHANGING,
}
"""The shape of the answer to every method of every path."""
