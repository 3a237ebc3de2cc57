"""Decides how the next leader continues the jobs of a leader that is gone. Rules only, without files or processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ekorn.config import options
from ekorn.errors import Fenced
from ekorn.functions.results.job_status import JobStatus
from ekorn.service.jobs.job_record import JobRecord, NotedOutcome

__all__ = ["MOST_LOST", "SHORT_LIFE_MS", "after_lost_driver", "taken_over", "was_replaced"]

SHORT_LIFE_MS = 60_000
MOST_LOST = 5


def taken_over(record: JobRecord, outcome: NotedOutcome | None, now_ms: int) -> JobRecord:
    """Return a job of the previous leader as the next leader continues it.

    Args:
        record: The job as the previous leader recorded it.
        outcome: How the job ended, if its driver recorded that.
        now_ms: The wall clock.
    """
    if record.phase != "STARTED":
        return record
    if outcome is None and record.cancelled:
        outcome = NotedOutcome(JobStatus.CANCELED.name, None)
    if outcome is None:
        # A change that was only planned is dropped. A change that has begun keeps the plan to fall back to.
        return replace(_waiting(record), then=None, why="it continues from its last checkpoint under another leader")
    if record.then is not None and outcome.savepoint is not None and outcome.status == JobStatus.FINISHED.name:
        start = {options.RESTORE_PATH.key: outcome.savepoint}
        plan = replace(record.then, settings={**record.then.settings, **start})
        before = replace(record.plan, settings={**record.settings, **start})
        waiting = replace(_waiting(record).running(plan), then=None, fallback=before)
        return replace(waiting, why="it continues from its savepoint")
    why = "its driver has ended"
    return replace(_waiting(record), phase="ENDED", status=outcome.status, why=why, ended_ms=now_ms)


def after_lost_driver(record: JobRecord, why: str, now_ms: int, *, may_begin: bool) -> JobRecord | None:
    """Return the next record of a job whose driver was lost under a live service; None if too many were lost in a row.

    Args:
        record: The job.
        why: What is known of the loss.
        now_ms: The wall clock.
        may_begin: Whether a job without a checkpoint starts from its beginning; else it fails.
    """
    is_short = now_ms - record.started_ms < SHORT_LIFE_MS
    lost = record.lost_drivers + 1 if is_short else 1
    if lost > MOST_LOST:
        return None
    settings = record.settings if may_begin else {**record.settings, options.ONLY_CONTINUE.key: "true"}
    again = replace(_waiting(record), settings=settings, then=None, lost_drivers=lost)
    return replace(again, why=f"it continues from its last checkpoint: {why}")


def was_replaced(exceptions: Mapping[str, Any]) -> bool:
    """Return whether a driver ended because another driver took its job over.

    Args:
        exceptions: The driver's last answer to `/jobs/:jobid/exceptions`.
    """
    entries = exceptions.get("exceptionHistory", {}).get("entries", [])
    return bool(entries) and entries[0].get("exceptionName") == f"{Fenced.__module__}.{Fenced.__qualname__}"


def _waiting(record: JobRecord) -> JobRecord:
    return replace(record, phase="WAITING", pid=0, pid_started=0, socket="", run="", host="")
