"""The contents of a window as keyed state per window, with and without an evictor.

Both classes have the same methods; the triggered window operator chooses one of them when it opens.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, assert_never

from ekorn.functions.state.state_descriptors import (
    AggregatingStateDescriptor,
    FoldingStateDescriptor,
    ListStateDescriptor,
    ReducingStateDescriptor,
)
from ekorn.functions.timer_service import TimerService
from ekorn.functions.windows.evictors import Evictor, TimestampedValue
from ekorn.graph.specs import AggregateContents, FoldContents, ListContents, ReduceContents, WindowContents
from ekorn.metrics.metricbase import MetricGroup
from ekorn.operators.windows.contents import contents_for
from ekorn.state.keyed_backend import KeyedStates
from ekorn.types.by_value import own
from ekorn.types.type_information import TypeInformation

Evaluate = Callable[[Any], None]
"""Evaluates the contents of the current key and window."""


class _RecordsDescriptor(ListStateDescriptor):
    """The chain has checked the records against their declared type already."""

    checks_values = False


class _RecordDescriptor(ReducingStateDescriptor):
    """The chain has checked the records against their declared type already."""

    checks_values = False


class ContentsState:
    """The contents of the current key and window."""

    def __init__(
        self, states: KeyedStates, spec: WindowContents, name: str, record_type: TypeInformation | None
    ) -> None:
        self.is_list = False
        self._state: Any
        match spec:
            case ListContents():
                self._state, self.is_list = states.state(_RecordsDescriptor(name, record_type)), True
            case ReduceContents(function):
                self._state = states.state(_RecordDescriptor(name, function, record_type))
            case AggregateContents(function):
                self._state = states.state(AggregatingStateDescriptor(name, function))
            case FoldContents(initial, function):
                self._state = states.state(FoldingStateDescriptor(name, initial, function))
            case _:
                assert_never(spec)
        self._add = self._state.add
        self.clear: Callable[[], None] = self._state.clear
        self.merge: Callable[[Any, list[Any]], None] = self._state.merge

    def add(self, value: Any, time_ms: int | None) -> None:
        self._add(value)

    def fire(self, window: Any, evaluate: Evaluate) -> None:
        """Evaluate the contents, unless there are none."""
        contents = self._state.get()
        if self.is_list:
            contents = list(contents) or None
        if contents is not None:
            evaluate(contents)


class EvictedContentsState:
    """The records of the current key and window with timestamps. A firing evicts some and evaluates the others."""

    def __init__(  # noqa: PLR0917
        self,
        states: KeyedStates,
        spec: WindowContents,
        name: str,
        record_type: TypeInformation | None,
        evictor: Evictor[Any, Any],
        context: Evictor.EvictorContext,
    ) -> None:
        state: Any = states.state(_RecordsDescriptor(name, record_type))
        self._state = state
        self._contents = contents_for(spec)
        self._evictor = evictor
        self._context = context
        self.clear: Callable[[], None] = self._state.clear
        self.merge: Callable[[Any, list[Any]], None] = self._state.merge

    def add(self, value: Any, time_ms: int | None) -> None:
        self._state.add((value, time_ms))

    def fire(self, window: Any, evaluate: Evaluate) -> None:
        """Evict, evaluate what is left, evict again, and keep the rest in the window."""
        records = list(self._state.get())
        if not records:
            return
        elements = [TimestampedValue(value, time_ms) for value, time_ms in records]
        self._evictor.evict_before(elements, len(elements), window, self._context)
        result = self._contents.of_records([own(e.get_value()) for e in elements])
        if result is not None:
            evaluate(result)
        self._evictor.evict_after(elements, len(elements), window, self._context)
        self._state.update([(e.get_value(), e.get_timestamp()) for e in elements])


class EvictorContext(Evictor.EvictorContext):
    def __init__(self, clocks: TimerService, metrics: MetricGroup) -> None:
        self._clocks = clocks
        self._metrics = metrics

    def get_current_processing_time(self) -> int:
        return self._clocks.current_processing_time()

    def get_metric_group(self) -> MetricGroup:
        return self._metrics

    def get_current_watermark(self) -> int:
        return self._clocks.current_watermark()
