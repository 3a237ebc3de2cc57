"""Sends metrics to an OpenTelemetry collector: OTLP as JSON over HTTP, which needs no library."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

import ekorn
from ekorn.metrics.reporter import Sample
from ekorn.reporters.http_request import send

__all__ = ["OpenTelemetryReporter"]

_PATH = "/v1/metrics"


class OpenTelemetryReporter:
    """Sends every metric as a gauge `flink.<scope>.<name>` with the variables as attributes.

    Args:
        endpoint: The address of the collector; `/v1/metrics` is appended if it is missing.
        service_name: The resource attribute `service.name`.
        service_version: The resource attribute `service.version`.
    """

    def __init__(self, endpoint: str, service_name: str = "ekorn", service_version: str = ekorn.__version__) -> None:
        self._url = endpoint if endpoint.rstrip("/").endswith(_PATH) else endpoint.rstrip("/") + _PATH
        self._resource = _attributes({"service.name": service_name, "service.version": service_version})

    def report(self, samples: Sequence[Sample]) -> None:
        """Send the current metrics."""
        at = str(time.time_ns())
        points: dict[str, list[dict[str, Any]]] = {}
        for sample in samples:
            point = {"timeUnixNano": at, "asDouble": sample.value, "attributes": _attributes(sample.variables)}
            points.setdefault(f"flink.{sample.scope}.{sample.name}", []).append(point)
        metrics = [{"name": name, "gauge": {"dataPoints": found}} for name, found in points.items()]
        scope = {"scope": {"name": "ekorn", "version": ekorn.__version__}, "metrics": metrics}
        body = {"resourceMetrics": [{"resource": {"attributes": self._resource}, "scopeMetrics": [scope]}]}
        send("POST", self._url, "application/json", json.dumps(body).encode())

    def close(self) -> None:
        """Do nothing: nothing is open between reports."""


def _attributes(values: Mapping[str, str]) -> list[dict[str, Any]]:
    return [{"key": key, "value": {"stringValue": value}} for key, value in values.items()]
