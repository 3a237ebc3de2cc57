"""The client of a driver that the service has started: the driver answers at a Unix socket of the user."""

from __future__ import annotations

from ekorn.service.jobs.job_record import JobRecord
from ekorn.web.http_client import WebClient

__all__ = ["driver_client"]

_ANSWER_S = 30.0


def driver_client(record: JobRecord) -> WebClient:
    """Return the client of a started job's driver."""
    return WebClient(f"unix:{record.socket}", timeout_s=_ANSWER_S)
