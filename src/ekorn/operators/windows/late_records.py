"""Late records: records that arrive after all their windows are over."""

from __future__ import annotations

from typing import Any

from ekorn.operators.operator import RuntimeOperator


class LateRecords:
    """Sends an operator's late records to the side output that the program asked for, or counts them."""

    def __init__(self, operator: RuntimeOperator, tag: str | None, metric: str = "numLateRecordsDropped") -> None:
        self._operator = operator
        self._tag = tag
        self._dropped = operator.metric_group().counter(metric)

    def take(self, value: Any, time_ms: int | None) -> None:
        if self._tag is None:
            self._dropped.inc()
            return
        out = self._operator.side_out.get(self._tag)
        if out is not None:  # a record for a side output without a reader is dropped without being counted
            out(value, time_ms)
