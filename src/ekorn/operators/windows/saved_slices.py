"""Slices in a checkpoint, translated into windows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ekorn.functions.windows.window_arithmetic import TimeSpan, WindowGrid
from ekorn.keygroups import KeyGroupRange
from ekorn.operators.windows.firing_marks import FiringMark, FiringMarks, mark_of
from ekorn.operators.windows.saved_windows import SLICES, SavedLayout, SavedPanes, SavedWindow
from ekorn.operators.windows.slice_contents import SliceContents
from ekorn.operators.windows.slice_table import SliceTable
from ekorn.state.keyed_backend import RestoredTables
from ekorn.state.operator_state import OperatorStates
from ekorn.state.snapshots import StateInfo


class SavedSlices(SavedLayout):
    """Slices, and the firing marks that say which windows had fired.

    Windows do not translate back into slices: the slice layout keeps translated windows in panes.
    """

    name = SLICES

    def __init__(
        self,
        grid: WindowGrid,
        contents: SliceContents | None,
        states: OperatorStates,
        key_groups: KeyGroupRange,
        max_parallelism: int,
    ) -> None:
        self._grid = grid
        self._contents = contents
        self._states = states
        self._key_groups = key_groups
        self._max_parallelism = max_parallelism

    def to_canonical(self, tables: RestoredTables) -> Iterator[SavedWindow] | None:
        """Combine the slices of each window. Slices of other windows, or that cannot be combined any more, are left."""
        if self._contents is None:
            return None
        entries, marks = tables[SLICES].entries, FiringMarks(self._states)
        restored = marks.of(self._key_groups)
        if any(mark.size_ms != self._grid.size_ms for mark in restored):
            return None
        if not all(self._grid.is_slice(TimeSpan(*span)) for _, span in entries):
            return None
        marks.clear()
        del tables[SLICES]
        return self._windows(entries, self._contents, restored)

    def _windows(
        self, entries: dict[Any, Any], contents: SliceContents, marks: list[FiringMark]
    ) -> Iterator[SavedWindow]:
        slices = SliceTable(self._grid, contents, tracked=False)
        slices.load(entries)
        for end_ms in slices.window_ends():
            for key in slices.keys_of(end_ms):
                mark = mark_of(key, marks, self._max_parallelism)
                if mark.dropped_ms < end_ms:
                    saved = contents.contents.snapshot(slices.contents_of(key, end_ms))
                    yield SavedWindow(key, self._grid.window(end_ms), saved, end_ms <= mark.fired_ms)

    def from_canonical(self, tables: RestoredTables, info: StateInfo, windows: Iterable[SavedWindow]) -> None:
        SavedPanes().from_canonical(tables, info, windows)
