"""Pushes metrics to a Prometheus push gateway."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from urllib.parse import quote

from ekorn.metrics.reporter import Sample
from ekorn.reporters.http_request import send
from ekorn.reporters.prometheus_text import CONTENT_TYPE, prometheus_text

__all__ = ["PushGatewayReporter"]


class PushGatewayReporter:
    """Replaces the metrics of this driver in the gateway with every report, and deletes them at the end.

    Args:
        url: The address of the gateway.
        job_name: The value of the gateway's label `job`; empty for a random one.
        random_suffix: Whether the job name gets a random suffix, which keeps two drivers of one name apart.
        delete_at_end: Whether the metrics are deleted when the job ends.
        grouping: Further labels by which the gateway groups the metrics.
    """

    def __init__(
        self,
        url: str,
        job_name: str = "",
        *,
        random_suffix: bool = True,
        delete_at_end: bool = True,
        grouping: Mapping[str, str] | None = None,
    ) -> None:
        name = f"{job_name}{uuid.uuid4().hex}" if random_suffix or not job_name else job_name
        group = "".join(f"/{quote(key, safe='')}/{quote(value, safe='')}" for key, value in (grouping or {}).items())
        self._url = f"{url.rstrip('/')}/metrics/job/{quote(name, safe='')}{group}"
        self._delete_at_end = delete_at_end

    def report(self, samples: Sequence[Sample]) -> None:
        """Replace the metrics of this driver in the gateway."""
        send("PUT", self._url, CONTENT_TYPE, prometheus_text(samples).encode())

    def close(self) -> None:
        """Delete the metrics of this driver from the gateway."""
        if self._delete_at_end:
            send("DELETE", self._url, CONTENT_TYPE, b"")
