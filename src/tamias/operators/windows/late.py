"""Records that come too late for all their windows: to the side output that asked for them, or counted."""

from __future__ import annotations

from typing import Any

from tamias.operators.operator import RuntimeOperator


class LateRecords:
    """Where an operator's late records go."""

    def __init__(self, operator: RuntimeOperator, tag: str | None, metric: str = "numLateRecordsDropped") -> None:
        self._operator = operator
        self._tag = tag
        self._dropped = operator.metric_group().counter(metric)

    def take(self, value: Any, time_ms: int | None) -> None:
        """Take one."""
        if self._tag is None:
            self._dropped.inc()
            return
        out = self._operator.side_out.get(self._tag)
        if out is not None:  # with a tag that nobody reads the record is let go, and not counted
            out(value, time_ms)
