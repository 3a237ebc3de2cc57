"""Asks all drivers the same question at a time, for any number of clients.

Drivers are asked beside each other, each for a short while, so one that hangs holds up nobody. Clients that ask while a
round is under way share the next one: an answer is never older than the question.
"""

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

__all__ = ["DriverGlances"]

_GLANCE_S = 3.0  # for an answer that a driver has at hand
_MOST_ASKED = 128  # at once: 50 drivers that have little of the machine must not be waited for one after another


class DriverGlances:
    """The rounds of one question. Thread-safe.

    Args:
        path: What the drivers are asked.
        glance_s: How long each may take.
    """

    def __init__(self, path: str, glance_s: float = _GLANCE_S) -> None:
        self._path = path
        self._glance_s = glance_s
        self._lock = threading.Lock()
        self._began_s = float("-inf")
        self._answers: dict[str, Any] = {}

    def answers(self, records: Sequence[JobRecord]) -> dict[str, Any]:
        """Return what the drivers of jobs answer, by the ids of the jobs; None for those that give no answer."""
        if len(records) < 2:
            return {record.job_id: self._ask(record) for record in records}
        asked_s = time.monotonic()
        with self._lock:
            if self._began_s < asked_s or any(record.job_id not in self._answers for record in records):
                self._began_s = time.monotonic()
                with ThreadPoolExecutor(min(len(records), _MOST_ASKED), "ekorn-glance") as several:
                    ids = [record.job_id for record in records]
                    self._answers = dict(zip(ids, several.map(self._ask, records), strict=True))
            return {record.job_id: self._answers[record.job_id] for record in records}

    def _ask(self, record: JobRecord) -> Any:
        with contextlib.suppress(EkornError):  # it is about to open its socket, has just ended, or hangs
            return WebClient(f"unix:{record.socket}", timeout_s=self._glance_s).get(self._path)
        return None
