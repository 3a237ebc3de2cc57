"""Reporters that need no server: one writes to the log, one appends lines of JSON to a file."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Sequence
from pathlib import Path

from ekorn.metrics.reporter import Sample

__all__ = ["JsonLinesReporter", "LogReporter"]

_log = logging.getLogger("ekorn.metrics")


class LogReporter:
    """Writes all metrics of a report to the log as one message, at level INFO."""

    def report(self, samples: Sequence[Sample]) -> None:
        """Write one message."""
        lines = [f"{sample.scope}.{sample.name}{_shown(sample)}: {sample.value:g}" for sample in samples]
        _log.info("metrics:\n%s", "\n".join(lines))

    def close(self) -> None:
        """Do nothing: nothing is open between reports."""


def _shown(sample: Sample) -> str:
    wanted = ("job_name", "task_name", "operator_name", "subtask_index")
    return "{" + ", ".join(sample.variables[key] for key in wanted if key in sample.variables) + "}"


class JsonLinesReporter:
    """Appends one JSON object per report to a file: the time in milliseconds, and the samples."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)

    def report(self, samples: Sequence[Sample]) -> None:
        """Append one line."""
        found = [
            {"scope": each.scope, "name": each.name, "variables": dict(each.variables), "value": each.value}
            for each in samples
        ]
        line = json.dumps({"timestamp": time.time_ns() // 1_000_000, "metrics": found})
        with self._path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    def close(self) -> None:
        """Do nothing: nothing is open between reports."""
