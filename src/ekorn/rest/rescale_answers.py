"""Answers about the changes of a job's parallelism, in the form of Flink's adaptive scheduler."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from ekorn.driver.statistics.job_statistics import MOST_RESCALES, RescaleRecord, VertexChange
from ekorn.rest.known_jobs import KnownJob
from ekorn.rest.summaries import summary
from ekorn.web.http_messages import not_found

__all__ = ["configuration", "details", "history", "overview", "rescale_ids", "rescales", "slot_group_id", "summaries"]

_NO_RESOURCE = {
    "cpuCores": 0.0,
    **dict.fromkeys(("taskHeapMemory", "taskOffHeapMemory", "managedMemory", "networkMemory"), 0),
    "extendedResources": {},
}
_NO_LIMIT = -1


def rescales(job: KnownJob) -> dict[str, Any]:
    """Answer `/jobs/:jobid/rescales`: the latest changes of the parallelism, the newest first. Not in Flink's API."""
    found = [
        {
            "timestamp": each.at_ms,
            "parallelism": each.before,
            "wanted": each.wanted,
            "cause": each.cause,
            "refusal": each.refusal,
        }
        for each in reversed(job.statistics.rescales)
    ]
    return {"rescales": found}


def overview(job: KnownJob) -> dict[str, Any]:
    """Answer `/jobs/:jobid/rescales/overview`: how many there were, and the latest of each outcome."""
    found = job.statistics.rescales
    latest = {_outcome(each).lower(): _rescale(job, each) for each in found}
    return {"rescalesCounts": _counts(found), "latest": dict.fromkeys(("completed", "failed", "ignored")) | latest}


def history(job: KnownJob) -> list[dict[str, Any]]:
    """Answer `/jobs/:jobid/rescales/history`: the latest rescales, the newest first."""
    return [_rescale(job, each) for each in reversed(job.statistics.rescales)]


def details(job: KnownJob, rescale_id: str) -> dict[str, Any]:
    """Answer `/jobs/:jobid/rescales/details/:rescaleuuid`.

    Raises:
        HttpError: There is no such rescale.
    """
    found = next((each for each in job.statistics.rescales if _id(job, each.number) == rescale_id), None)
    return _rescale(job, found) if found is not None else not_found(f"there is no rescale {rescale_id[:40]!r}")


def rescale_ids(job: KnownJob) -> list[str]:
    """Return the ids of the rescales that are remembered."""
    return [_id(job, each.number) for each in job.statistics.rescales]


def summaries(job: KnownJob) -> dict[str, Any]:
    """Answer `/jobs/:jobid/rescales/summary`: how long they took, by their outcome."""
    found = job.statistics.rescales
    by_outcome = {
        f"{outcome.lower()}RescalesDurationStatsInMillis": _durations(
            each for each in found if _outcome(each) == outcome
        )
        for outcome in ("COMPLETED", "IGNORED", "FAILED")
    }
    return {"rescalesCounts": _counts(found), "rescalesDurationStatsInMillis": _durations(found), **by_outcome}


def configuration(job: KnownJob) -> dict[str, Any]:
    """Answer `/jobs/:jobid/rescales/config`. A duration of -1 means that ekorn has no such waiting time."""
    reactive = job.statistics.settings.elasticity.reactive
    return {
        "rescaleHistoryMax": MOST_RESCALES,
        "schedulerExecutionMode": None if reactive is None else "REACTIVE",
        "submissionResourceWaitTimeoutInMillis": _NO_LIMIT,
        "submissionResourceStabilizationTimeoutInMillis": _NO_LIMIT,
        "slotIdleTimeoutInMillis": _NO_LIMIT,
        "executingCooldownTimeoutInMillis": _NO_LIMIT if reactive is None else reactive.cooldown_ms,
        "executingResourceStabilizationTimeoutInMillis": _NO_LIMIT if reactive is None else reactive.stabilization_ms,
        "maximumDelayForTriggeringRescaleInMillis": _NO_LIMIT,
        "rescaleOnFailedCheckpointCount": 1,  # a checkpoint that fails before the switch refuses the rescale
    }


def slot_group_id(name: str) -> str:
    """Return the id of a slot-sharing group, made of its name."""
    return hashlib.blake2s(name.encode(), digest_size=16).hexdigest()


def _counts(found: Iterable[RescaleRecord]) -> dict[str, int]:
    outcomes = [_outcome(each) for each in found]
    ended = {name: outcomes.count(name.upper()) for name in ("ignored", "completed", "failed")}
    return {**ended, "inProgress": 0}  # a rescale is remembered once it has ended


def _durations(found: Iterable[RescaleRecord]) -> dict[str, Any]:
    return summary(each.at_ms - each.began_ms for each in found)


def _outcome(record: RescaleRecord) -> str:
    if record.refusal is None:
        return "COMPLETED"
    return "FAILED" if record.vertices else "IGNORED"


_REASONS = {
    "COMPLETED": "SUCCEEDED",
    "FAILED": "EXCEPTION_OCCURRED",
    "IGNORED": "NO_RESOURCES_OR_PARALLELISMS_CHANGE",
}


def _rescale(job: KnownJob, record: RescaleRecord) -> dict[str, Any]:
    outcome = _outcome(record)
    groups = dict.fromkeys(each.slot_group for each in record.vertices)
    return {
        "rescaleUuid": _id(job, record.number),
        "resourceRequirementsUuid": _id(job, record.number),
        "rescaleAttemptId": record.number,
        "vertices": {each.operator_id: _vertex(each, outcome) for each in record.vertices},
        "slots": {slot_group_id(name): _slots(name, record.vertices, outcome) for name in groups},
        "schedulerStates": [
            {
                "state": "Executing",
                "enterTimestampInMillis": record.began_ms,
                "leaveTimestampInMillis": record.at_ms,
                "durationInMillis": record.at_ms - record.began_ms,
                "stringifiedException": record.refusal,
            }
        ],
        "startTimestampInMillis": record.began_ms,
        "endTimestampInMillis": record.at_ms,
        "terminalState": outcome,
        "triggerCause": "NEW_RESOURCE_AVAILABLE" if record.cause.startswith("reactive") else "UPDATE_REQUIREMENT",
        "terminatedReason": _REASONS[outcome],
    }


def _vertex(change: VertexChange, outcome: str) -> dict[str, Any]:
    return {
        "jobVertexId": change.operator_id,
        "jobVertexName": change.name,
        "slotSharingGroupId": slot_group_id(change.slot_group),
        "slotSharingGroupName": change.slot_group,
        "desiredParallelism": change.wanted,
        "sufficientParallelism": change.wanted,
        "preRescaleParallelism": change.before,
        "postRescaleParallelism": change.wanted if outcome == "COMPLETED" else change.before,
    }


def _slots(name: str, changes: Iterable[VertexChange], outcome: str) -> dict[str, Any]:
    own = [each for each in changes if each.slot_group == name]
    before, wanted = max(each.before for each in own), max(each.wanted for each in own)
    return {
        "slotSharingGroupId": slot_group_id(name),
        "slotSharingGroupName": name,
        "requestResourceProfile": _NO_RESOURCE,
        "acquiredResourceProfile": _NO_RESOURCE,
        "desiredSlots": wanted,
        "minimalRequiredSlots": wanted,
        "preRescaleSlots": before,
        "postRescaleSlots": wanted if outcome == "COMPLETED" else before,
    }


def _id(job: KnownJob, number: int) -> str:
    return hashlib.blake2s(f"{job.job_id}-{number}".encode(), digest_size=16).hexdigest()
