"""The output of time windows: the results of firing windows, and late records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ekorn.functions.windows.window_values import TimeWindow
from ekorn.graph.specs import WindowSpec
from ekorn.operators.contexts.function_contexts import Clocks
from ekorn.operators.operator import RuntimeOperator
from ekorn.operators.results import LateRecords
from ekorn.operators.windows.contents import Contents
from ekorn.operators.windows.evaluation import CallWindowFunction, Evaluator
from ekorn.types.by_value import own


class WindowOutput:
    """Emits the results of firing windows and the late records."""

    def __init__(
        self, operator: RuntimeOperator, spec: WindowSpec, contents: Contents, clocks: Clocks, *, merging: bool
    ) -> None:
        assert operator.backend is not None
        self._operator = operator
        self._result = contents.result
        self._key_cell, self._window_cell = operator.backend.cell, operator.backend.window_cell
        self._evaluator: Evaluator | None = None  # None: the contents are the result
        if spec.function is not None:
            self._evaluator = CallWindowFunction(
                operator, spec.function, clocks, merging=merging, is_list=contents.is_list
            )
        self.late = LateRecords(operator, spec.late_tag)
        self.clears_windows = self._evaluator is not None and self._evaluator.clears_windows

    def fire(self, key: Any, window: TimeWindow, accumulated: Any, time_ms: int | None, *, stays: bool) -> None:  # hot
        """Evaluate a key's contents of a window. Contents that stay in the window are copied first."""
        value = self._result(accumulated)
        if value is None:
            return
        if stays:
            value = own(value)
        evaluator = self._evaluator
        if evaluator is None:
            self._operator.out(value, time_ms)
        else:
            self._enter(key, window)
            evaluator.evaluate(key, window, value, time_ms)

    @property
    def relief(self) -> Iterator[bool]:
        """The endless run of True that loops over firing windows are compressed by (`operators/results.py`)."""
        return self._operator.relief

    def clear(self, keys: Iterable[Any], window: TimeWindow) -> None:
        """Let the window function clear its state of a window that is over, key by key."""
        if self.clears_windows:
            assert self._evaluator is not None
            for key in keys:
                self._enter(key, window)
                self._evaluator.clear(window)

    def _enter(self, key: Any, window: TimeWindow) -> None:
        """Make a key and a window the current ones."""
        self._key_cell[0] = key
        self._window_cell[0] = (key, (window.start, window.end))
