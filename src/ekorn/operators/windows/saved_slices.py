"""Slices in a checkpoint: how far their windows had fired, and their translation into windows.

Slices do not say which windows have fired: without a firing mark a restored job would emit windows again that had fired
before the checkpoint. The mark holds for all keys of a subtask, so it is one line of operator state, with the range of
key groups that it holds for. After rescaling, a subtask may have keys with different marks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass
from typing import Any

from ekorn.functions.state.state_descriptors import ListStateDescriptor
from ekorn.functions.state.state_handles import ListState
from ekorn.functions.windows.window_arithmetic import TimeSpan, WindowGrid
from ekorn.keygroups import KeyGroupRange, key_group, user_key
from ekorn.operators.windows.saved_windows import SLICES, SavedLayout, SavedPanes, SavedWindow
from ekorn.operators.windows.slice_contents import SliceContents
from ekorn.operators.windows.slice_table import SliceTable
from ekorn.state.keyed_backend import RestoredTables
from ekorn.state.operator_state import OperatorStates
from ekorn.state.snapshots import StateInfo
from ekorn.types.time_bounds import MIN_TIMESTAMP

FIRING_MARKS = "_window/progress"
"""The name of the operator state with the marks."""


@dataclass(frozen=True, slots=True)
class FiringMark:
    """The ends up to which windows of some key groups had fired and been dropped."""

    key_group_first: int
    key_group_last: int
    size_ms: int  # the size of the windows: windows of another size may have the same slices
    dropped_ms: int = MIN_TIMESTAMP  # windows that end up to here have been dropped from the slices
    # Windows that end up to here have fired; those that end after `dropped_ms` are still in slices.
    fired_ms: int = MIN_TIMESTAMP


class FiringMarks:
    """The marks of all subtasks in the restored checkpoint, and this subtask's mark in the next one."""

    def __init__(self, states: OperatorStates) -> None:
        self._state: ListState[Any] = states.get_union_list_state(ListStateDescriptor(FIRING_MARKS))

    def of(self, key_groups: KeyGroupRange) -> list[FiringMark]:
        """Return the restored marks that overlap a range of key groups."""
        saved = [FiringMark(*line) for line in self._state.get()]
        return [
            mark
            for mark in saved
            if mark.key_group_first <= key_groups.last and key_groups.first <= mark.key_group_last
        ]

    def clear(self) -> None:
        """Save no mark in the next checkpoint: the windows are no longer in slices."""
        self._state.clear()

    def save(self, mark: FiringMark) -> None:
        """Save a mark in the next checkpoint."""
        self._state.update([astuple(mark)])


def mark_of(key: Any, marks: Iterable[FiringMark], max_parallelism: int) -> FiringMark:
    """Return how far the windows of a key had fired."""
    group = key_group(user_key(key), max_parallelism)
    return next((m for m in marks if m.key_group_first <= group <= m.key_group_last), FiringMark(group, group, 0))


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
        """Combine the slices of each window.

        Leave slices of other windows, and slices that can no longer be combined.
        """
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
