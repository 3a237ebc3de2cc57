"""The records of the jobs that a service remembers, both on disk and in memory."""

from __future__ import annotations

import threading

from ekorn.service.jobs.job_record import JobRecord
from ekorn.service.jobs.job_store import JobStore

__all__ = ["JobTable"]


class JobTable:
    """The records, in the order of submission. Thread-safe.

    A thread holds the lock while it decides something by a record.

    Args:
        store: The files of the service, from which the records are loaded.
    """

    def __init__(self, store: JobStore) -> None:
        self.lock = threading.RLock()
        self._store = store
        self._records = {record.job_id: record for record in store.load()}

    def all(self) -> list[JobRecord]:
        """Return all jobs, in the order of submission."""
        with self.lock:
            return list(self._records.values())

    def find(self, job_id: str) -> JobRecord | None:
        """Return a job; None if there is none of this id."""
        with self.lock:
            return self._records.get(job_id)

    def __getitem__(self, job_id: str) -> JobRecord:
        return self._records[job_id]

    def save(self, record: JobRecord) -> None:
        """Write a record to disk, and show it from then on."""
        self._store.save(record)
        self._records[record.job_id] = record

    def show(self, record: JobRecord) -> None:
        """Show a record that is not on disk yet."""
        self._records[record.job_id] = record

    def put_last(self, job_id: str) -> None:
        """Make a job the latest one."""
        self._records[job_id] = self._records.pop(job_id)

    def forget(self, job_id: str) -> None:
        """Remove a job, and its files."""
        del self._records[job_id]
        self._store.forget(job_id)
