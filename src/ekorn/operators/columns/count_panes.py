"""The tables of count windows of columns: the open windows, how full they are, and how many rows each key has had.

The states are those of count windows of rows (`operators/windows/triggered_windows.py`): the contents of each key and
window, the count that the trigger keeps for them, and the count of each key.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ekorn.columns.kernels import CountKernel, Kernel
from ekorn.columns.key_index import KeyIndex
from ekorn.columns.key_words import Rows
from ekorn.columns.window_vectors import Starts
from ekorn.functions.column_aggregates import Count
from ekorn.operators.columns.column_panes import ColumnPanes, PaneEntries, loaded_contents
from ekorn.operators.columns.table_changes import joined_changes
from ekorn.operators.windows.saved_windows import TRIGGERED
from ekorn.state.canonical_format import TableEntries
from ekorn.state.codecs import Codec, TypedCodec
from ekorn.state.column_table import ColumnTable, KeyValues, LazyObjects, load_values, values_of
from ekorn.state.snapshots import WINDOWED, StateInfo
from ekorn.state.table import Table
from ekorn.types.factory import Types

__all__ = ["IN_WINDOWS", "CountPanes", "KeyCounts", "TriggerCounts"]

COUNTS, TRIGGER_COUNTS = "_window/count", "trigger/count"
IN_WINDOWS = frozenset({TRIGGERED, TRIGGER_COUNTS})
"""The states of count windows with an entry for each key and window."""


def _count_kernel() -> Kernel:
    return CountKernel(Count(), pa.int64())


class KeyCounts(ColumnTable):
    """The number of rows that each key has had."""

    __slots__ = ()

    def __init__(self, index: KeyIndex, key_values: KeyValues, *, tracked: bool) -> None:
        super().__init__(StateInfo(COUNTS, "value"), index, [_count_kernel()], key_values, tracked=tracked)

    def _stored_values(self, kernels: Sequence[Kernel], rows: Rows) -> list[Any]:
        return [count for (count,) in kernels[0].accumulators(rows)]

    def _load_values(self, rows: Rows, kept: Sequence[Any]) -> None:
        self.kernels[0].load(rows, [(count,) for count in kept])


class CountPanes(ColumnPanes):
    """The open windows of all keys. In the place of its start a window has its number."""

    saved_info = StateInfo(TRIGGERED, f"{WINDOWED}aggregating")

    __slots__ = ("_untaken", "aggregates", "counts")

    def __init__(self, keys: KeyIndex, kernels: Sequence[Kernel], key_values: KeyValues, *, tracked: bool) -> None:
        self.aggregates = list(kernels)
        self.counts = TriggerCounts(self, _count_kernel())
        self._untaken: dict[str, list[Any]] = {TRIGGERED: [], TRIGGER_COUNTS: []}
        super().__init__(keys, [*kernels, self.counts.kernel], key_values, 0, tracked=tracked)

    def _windows(self, starts: Starts) -> list[Any]:
        numbers: list[Any] = starts.tolist()
        return numbers

    def _values(self, panes: Rows) -> LazyObjects:
        kernels, stored = [kernel.frozen() for kernel in self.aggregates], self._codec.stored
        return LazyObjects(np.arange(len(panes)), lambda part: list(map(stored, values_of(kernels, panes[part]))))

    def load(self, entries: Mapping[Any, Any]) -> None:
        self.drop()
        if entries:
            keys, windows = zip(*entries, strict=True)
            contents = loaded_contents(self._codec, self.aggregates, list(entries.values()))
            load_values(self.aggregates, self.restored(keys, windows), contents)

    def restored(self, keys: Sequence[Any], windows: Sequence[int]) -> Rows:
        """Open panes of a snapshot, and return their numbers."""
        panes = self.panes(self.key_numbers(self._key_values.columns(keys)), np.array(windows, dtype=np.int64))
        self._vectors.changed.values[:] = False
        self._vectors.saved.values[:] = True
        return panes

    def take_changed(self) -> Collection[Any]:
        return self.changes_for(TRIGGERED)

    def changes_for(self, state: str) -> Collection[Any]:
        """Return what changed since the last call for one of the two states with an entry for each pane."""
        taken = super().take_changed()
        for untaken in self._untaken.values():
            untaken.append(taken)
        mine, self._untaken[state] = self._untaken[state], []
        return joined_changes(mine)

    def drop(self) -> None:
        super().drop()
        for untaken in self._untaken.values():
            untaken.clear()


class TriggerCounts(Table):
    """The number of rows in each open window. The panes of the window have it beside the aggregates."""

    __slots__ = ("_codec", "_panes", "kernel")

    def __init__(self, panes: CountPanes, kernel: Kernel) -> None:
        super().__init__(StateInfo(TRIGGER_COUNTS, f"{WINDOWED}reducing", str(Types.LONG())), tracked=False)
        self._panes = panes
        self.kernel = kernel
        self.data = PaneEntries(self)  # type: ignore[assignment]  # the part of a dictionary that backends read
        self._codec = TypedCodec(TRIGGER_COUNTS, Types.LONG())

    def __len__(self) -> int:
        return len(self._panes)

    def codec(self) -> Codec:
        return self._codec

    def some_key(self) -> Any:
        return self._panes.some_key()

    def take_changed(self) -> Collection[Any]:
        return self._panes.changes_for(TRIGGER_COUNTS)

    def whole(self) -> TableEntries:
        return self._counted(self._panes.open_panes(), self._panes.whole())

    def some(self, keys: Collection[Any]) -> TableEntries:
        return self._counted(self._panes.changed_panes(keys), self._panes.some(keys))

    def _counted(self, panes: Rows, entries: TableEntries) -> TableEntries:
        """Return entries with the counts of the panes in the place of their contents."""
        kernel = self.kernel.frozen()
        counts = LazyObjects(
            np.arange(len(panes)), lambda part: [count for (count,) in kernel.accumulators(panes[part])]
        )
        return TableEntries(self.info, entries.keys, counts, entries.gone, full=entries.full)  # type: ignore[arg-type]  # sliced

    def load(self, entries: Mapping[Any, Any]) -> None:
        if entries:
            keys, windows = zip(*entries, strict=True)
            self.kernel.load(self._panes.restored(keys, windows), [(count,) for count in entries.values()])

    def drop(self) -> None:
        """Nothing: the panes are dropped by the table of their contents."""
