"""Prometheus' text format, with the names of Flink's reporter, so that dashboards made for Flink work."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ekorn.metrics.reporter import Sample

__all__ = ["CONTENT_TYPE", "prometheus_text"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_]")


def prometheus_text(samples: Iterable[Sample]) -> str:
    r"""Return the samples as text, grouped by name.

    Every metric is a gauge, as in Flink: a counter begins again at 0 when its subtask restarts.

    >>> print(prometheus_text([Sample("jobmanager.job", "numRestarts", {"job_name": 'a "b"'}, 2.0)]), end="")
    # TYPE flink_jobmanager_job_numRestarts gauge
    flink_jobmanager_job_numRestarts{job_name="a \"b\""} 2
    """
    by_name: dict[str, list[str]] = {}
    for sample in samples:
        name = _NOT_IN_NAMES.sub("_", f"flink.{sample.scope}.{sample.name}")
        labels = ",".join(f'{key}="{_escaped(value)}"' for key, value in sample.variables.items())
        by_name.setdefault(name, []).append(f"{name}{{{labels}}} {_number(sample.value)}")
    return "".join(f"# TYPE {name} gauge\n" + "\n".join(lines) + "\n" for name, lines in by_name.items())


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
