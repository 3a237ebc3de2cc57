"""Evictors: all records of a window are kept, some are removed when it fires, and the function gets the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tamias.functions.evictor_contract import Evictor, TimestampedValue
from tamias.functions.timer_service import TimerService
from tamias.graph.specs import FoldContents, ReduceContents, WindowContents
from tamias.metrics.metricbase import MetricGroup
from tamias.operators.windows.contents import AllRecords, contents_for
from tamias.types.by_value import own


class Eviction:
    """An evictor, and what becomes of the records that it leaves."""

    def __init__(
        self, evictor: Evictor[Any, Any], spec: WindowContents, clocks: TimerService, metrics: MetricGroup
    ) -> None:
        self._evictor = evictor
        self._spec = spec
        self._contents = contents_for(spec)
        self._context = _EvictorContext(clocks, metrics)

    def fire(self, records: list[tuple[Any, int | None]], window: Any, call: Callable[[Any], None]) -> list[Any]:
        """Evict, hand over what is left, evict again; answers the records that stay in the window."""
        elements = [TimestampedValue(value, time_ms) for value, time_ms in records]
        self._evictor.evict_before(elements, len(elements), window, self._context)
        result = self._result([own(e.get_value()) for e in elements])
        if result is not None:
            call(result)
        self._evictor.evict_after(elements, len(elements), window, self._context)
        return [(e.get_value(), e.get_timestamp()) for e in elements]

    def _result(self, values: list[Any]) -> Any:
        """What incremental functions would have kept of these records."""
        if isinstance(self._contents, AllRecords):
            return values
        if not values:
            if isinstance(self._spec, ReduceContents):
                return None  # nothing can be made of nothing
            if isinstance(self._spec, FoldContents):
                return own(self._spec.initial)
            return self._contents.result(self._spec.function.create_accumulator())  # type: ignore[union-attr]
        kept = self._contents.first(values[0])
        for value in values[1:]:
            kept = self._contents.more(kept, value)
        return self._contents.result(kept)


class _EvictorContext(Evictor.EvictorContext):
    def __init__(self, clocks: TimerService, metrics: MetricGroup) -> None:
        self._clocks = clocks
        self._metrics = metrics

    def get_current_processing_time(self) -> int:
        return self._clocks.current_processing_time()

    def get_metric_group(self) -> MetricGroup:
        return self._metrics

    def get_current_watermark(self) -> int:
        return self._clocks.current_watermark()
