"""What the end of a driver means for its job: how the job ended, or what it goes on with."""

from __future__ import annotations

from dataclasses import replace

from ekorn.config import options
from ekorn.functions.results.job_status import JobStatus
from ekorn.service.api.job_overviews import JobOverviews
from ekorn.service.cluster.takeover import was_replaced
from ekorn.service.jobs.job_record import JobRecord
from ekorn.service.jobs.job_store import JobStore
from ekorn.service.jobs.job_table import JobTable

__all__ = ["WENT_BACK", "DriverEnds"]

WENT_BACK = "the change failed, and it goes on as before"


class DriverEnds:
    """Reads what drivers that have ended left behind.

    Args:
        store: The files of the service.
        overviews: What drivers say of their jobs.
        jobs: The records.
    """

    def __init__(self, store: JobStore, overviews: JobOverviews, jobs: JobTable) -> None:
        self._store = store
        self._jobs = jobs
        self._overviews = overviews

    def outcome(self, record: JobRecord) -> tuple[str, str]:
        """Return how a job ended whose driver has ended: its status, and why."""
        shown = self._overviews.of(replace(record, phase="ENDED"))
        answers = self._store.answers(record.job_id)
        if answers and options.ONLY_CONTINUE.key in record.settings and not self._ran_ms(record):
            why = "its driver was lost, and the next one could not go on; its log says more"
            return JobStatus.FAILED.name, why
        if shown is not None:
            return str(shown["state"]), "its driver has ended"
        noted = self._store.outcome(record)
        if noted is not None:
            return noted.status, "its driver has ended"
        latest = self._jobs.find(record.job_id)
        if latest is not None and latest.cancelled:
            return JobStatus.CANCELED.name, "it was cancelled, and its driver ended without a word"
        if answers:
            code = answers.get("exit code", 1)
            status = JobStatus.FINISHED if code == 0 else JobStatus.FAILED
            return status.name, f"the program ended with exit code {code} and started no job; its log says more"
        return JobStatus.FAILED.name, "its driver ended without a word, as a killed process does; its log says more"

    def follower(self, record: JobRecord, why: str) -> JobRecord | None:
        """Return the job that starts now that a driver has ended: with another plan, or again with the one before."""
        waiting = replace(record, phase="WAITING", pid=0, pid_started=0, then=None, fallback=None)
        path = self._stopped_at(record)
        if record.then is not None and path is not None:
            start = {options.RESTORE_PATH.key: path}
            plan = replace(record.then, settings={**record.then.settings, **start})
            before = replace(record.plan, settings={**record.settings, **start})
            return replace(waiting.running(plan), fallback=before, why="it continues from its savepoint")
        if record.fallback is not None and not self._ran_ms(record):
            return replace(waiting.running(record.fallback), why=f"{WENT_BACK}: {why}")
        return None

    def is_lost(self, record: JobRecord) -> bool:
        """Return whether a driver was killed, or ended because the driver of an earlier leader replaced it."""
        answers = self._store.answers(record.job_id)
        if not answers:
            return self._store.outcome(record) is None and not record.cancelled
        return self._store.is_shared and was_replaced(answers.get(f"/jobs/{record.job_id}/exceptions") or {})

    def _ran_ms(self, record: JobRecord) -> int:
        """Return when the job of a driver that has ended came to run; 0 if it did not."""
        details = self._store.answers(record.job_id).get(f"/jobs/{record.job_id}") or {}
        return int(details.get("timestamps", {}).get("RUNNING", 0))

    def _stopped_at(self, record: JobRecord) -> str | None:
        """Return the savepoint that a job has stopped with; None if it has not."""
        answers = self._store.answers(record.job_id)
        saved = (answers.get(f"/jobs/{record.job_id}/checkpoints") or {}).get("latest", {}).get("savepoint") or {}
        return saved.get("external_path") if saved.get("checkpoint_type") == "SYNC_SAVEPOINT" else None
