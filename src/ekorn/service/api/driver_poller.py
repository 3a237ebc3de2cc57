"""Asks the drivers that the service has started. A driver answers at a Unix socket of the user."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ekorn.errors import EkornError
from ekorn.service.jobs.job_record import JobRecord
from ekorn.web.http_client import WebClient

__all__ = ["DriverPoller", "driver_client"]

_ANSWER_S = 30.0
_POLL_S = 3.0  # long enough for an answer that needs no work in the driver
# The most drivers that are polled in parallel; polling one after another would take too long on a busy machine.
_MOST_ASKED = 128


def driver_client(record: JobRecord, timeout_s: float = _ANSWER_S) -> WebClient:
    """Return the client of a started job's driver."""
    return WebClient(f"unix:{record.socket}", timeout_s=timeout_s)


class DriverPoller:
    """Asks all drivers the same question, for any number of clients. Thread-safe.

    The drivers are polled in parallel, and each has a short time to answer, so a driver that hangs delays no other.
    Clients that ask while a poll is under way share the next poll: an answer is never older than the question.

    Args:
        path: The path that the drivers are asked for.
        timeout_s: How long each may take.
    """

    def __init__(self, path: str, timeout_s: float = _POLL_S) -> None:
        self._path = path
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._began_s = float("-inf")
        self._answers: dict[str, Any] = {}

    def answers(self, records: Sequence[JobRecord]) -> dict[str, Any]:
        """Return the answers of the drivers of jobs, by job id; None for a driver that gives no answer."""
        if len(records) < 2:
            return {record.job_id: self._ask(record) for record in records}
        asked_s = time.monotonic()
        with self._lock:
            if self._began_s < asked_s or any(record.job_id not in self._answers for record in records):
                self._began_s = time.monotonic()
                with ThreadPoolExecutor(min(len(records), _MOST_ASKED), "ekorn-driver-poll") as several:
                    ids = [record.job_id for record in records]
                    self._answers = dict(zip(ids, several.map(self._ask, records), strict=True))
            return {record.job_id: self._answers[record.job_id] for record in records}

    def _ask(self, record: JobRecord) -> Any:
        with contextlib.suppress(EkornError):  # the driver is starting, has just ended, or hangs
            return driver_client(record, self._timeout_s).get(self._path)
        return None
