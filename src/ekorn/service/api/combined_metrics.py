"""Metrics over all jobs and slots of a service: the drivers are asked beside each other, their numbers combined."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple
from urllib.parse import quote

from ekorn.errors import EkornError
from ekorn.rest.metric_answers import aggregated
from ekorn.service.jobs.job_record import JobRecord
from ekorn.web.http_client import WebClient
from ekorn.web.http_messages import Request

__all__ = ["AskedMetrics", "combined"]

_GLANCE_S = 3.0
_MOST_ASKED = 128


class AskedMetrics(NamedTuple):
    """The metrics of a job or of a slot: the record of its driver, and the path."""

    record: JobRecord
    path: str


def combined(all_asked: Sequence[AskedMetrics], request: Request) -> list[dict[str, Any]]:
    """Return the names of all metrics, or the numbers that a request asks for. A driver that hangs is left out.

    Raises:
        HttpError: An aggregation is not known.
    """
    wanted = request.many("get")
    query = "" if wanted is None else f"?get={quote(','.join(wanted), safe=',')}"
    aggregated([], request)  # a wrong aggregation is refused before any driver is asked
    if not all_asked:
        return []

    def ask(asked: AskedMetrics) -> dict[str, Any]:
        with contextlib.suppress(EkornError, KeyError, TypeError):  # it starts, has just ended, or hangs
            client = WebClient(f"unix:{asked.record.socket}", timeout_s=_GLANCE_S)
            return {each["id"]: _number(each.get("value")) for each in client.get(asked.path + query)}
        return {}

    with ThreadPoolExecutor(min(len(all_asked), _MOST_ASKED), "ekorn-metrics") as several:
        return aggregated(list(several.map(ask, all_asked)), request)


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None  # a path, or "n/a"
