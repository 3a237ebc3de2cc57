"""The contract of window layouts: how the open windows of a time window operator are stored, fired and restored.

There is one class per layout: `pane_layout.py`, `slice_layout.py`, `session_layout.py`. `layout_choice.py` chooses one
while the operator is built.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from ekorn.codegen.code_builder import CodeBuilder
from ekorn.graph.specs import WindowSpec
from ekorn.keygroups import KeyGroupRange
from ekorn.operators.contexts.function_contexts import Clocks
from ekorn.operators.windows.contents import Contents
from ekorn.operators.windows.window_output import WindowOutput
from ekorn.state.heap.heap_backend import HeapStateBackend
from ekorn.state.keyed_backend import RestoredTables
from ekorn.state.operator_state import OperatorStates
from ekorn.types.time_bounds import MAX_TIMESTAMP


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


@dataclass(frozen=True, slots=True)
class LayoutParts:
    """The parts that every layout is built from."""

    spec: WindowSpec
    contents: Contents
    time: WindowTime
    output: WindowOutput
    backend: HeapStateBackend
    key_groups: KeyGroupRange  # the key groups of the subtask
    max_parallelism: int


MakeLayout = Callable[[LayoutParts], WindowLayout]
