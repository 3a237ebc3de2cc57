"""The contract of window layouts: how the open windows of a time window operator are stored, fired and restored.

There is one class per layout: `pane_layout.py`, `slice_layout.py`, `session_layout.py`. `layout_choice.py` chooses one
while the operator is built. This module also holds what all layouts are built from.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from tamias.codegen.code_builder import CodeBuilder
from tamias.functions.windows import TimeWindow
from tamias.graph.specs import WindowSpec
from tamias.operators.element_context import Clocks
from tamias.operators.operator import RuntimeOperator
from tamias.operators.windows.contents import Contents
from tamias.operators.windows.evaluation import CallWindowFunction, Evaluator
from tamias.operators.windows.late_records import LateRecords
from tamias.state.heap.backend import HeapStateBackend
from tamias.state.keyed_backend import RestoredTables
from tamias.state.operator_state import OperatorStates
from tamias.types.by_value import own
from tamias.types.time_bounds import MAX_TIMESTAMP


class WindowLayout(ABC):
    """Stores the open windows of one operator. Windows fire at their end, and again with each late record."""

    @abstractmethod
    def translate(self, tables: RestoredTables, states: OperatorStates) -> None:
        """Turn restored tables of other layouts into tables of this one, in place."""

    @abstractmethod
    def open(self, states: OperatorStates) -> None:
        """Take over the restored tables.

        Raises:
            StateMigrationError: the restored windows are not those of the job.
        """

    @abstractmethod
    def generate_add(self, code: CodeBuilder, key: str, value: str, at: str, time: str) -> None:
        """Generate the statements that add a record to its windows.

        Variables hold the record's key and value, the time that decides its windows, and its timestamp.
        """

    @abstractmethod
    def fire_up_to(self, limit_ms: int) -> None:
        """Fire the windows that end up to a time, and drop those that are over by then."""

    @abstractmethod
    def next_ms(self) -> int | None:
        """Return the time at which a window fires next."""

    def clock_advanced(self, now_ms: int) -> None:  # noqa: B027
        """Note that processing-time windows up to `now_ms` have fired."""

    def before_snapshot(self) -> None:  # noqa: B027
        """Bring operator state up to date."""


class WindowTime:
    """The time domain of an operator's windows, and the allowed lateness."""

    __slots__ = ("_clocks", "event_time", "lateness_ms")

    def __init__(self, clocks: Clocks, *, event_time: bool, lateness_ms: int) -> None:
        self._clocks = clocks
        self.event_time = event_time
        self.lateness_ms = lateness_ms if event_time else 0

    @property
    def watermark_ms(self) -> int:
        return self._clocks.watermark_ms

    def is_over(self, end_ms: int) -> bool:
        """Return whether the window that ends at `end_ms` takes no more records. Processing-time windows always do."""
        return self.event_time and min(end_ms - 1 + self.lateness_ms, MAX_TIMESTAMP) <= self._clocks.watermark_ms

    def has_ended(self, end_ms: int) -> bool:
        """Return whether the window that ends at `end_ms` has fired and fires again with every record."""
        return self.event_time and end_ms - 1 <= self._clocks.watermark_ms

    def is_late(self, time_ms: int) -> bool:
        """Return whether a record that no open window takes is late. Otherwise it lies in a gap between windows."""
        return time_ms + self.lateness_ms <= self._clocks.watermark_ms


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


@dataclass(frozen=True, slots=True)
class LayoutParts:
    """What every layout is built from."""

    spec: WindowSpec
    contents: Contents
    time: WindowTime
    output: WindowOutput
    backend: HeapStateBackend
    key_groups: tuple[int, int]  # first and last of the subtask
    max_parallelism: int


MakeLayout = Callable[[LayoutParts], WindowLayout]
