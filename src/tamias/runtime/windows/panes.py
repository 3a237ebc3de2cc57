"""The table behind windows that end at fixed times: a pane per window, and in it what is kept per key.

One lookup finds the pane, one the key, and neither needs a pair to be made and hashed. A pane goes as a whole
when its window ends, so there is no timer per key: a heap of the ends of open windows is enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import Any

from tamias.runtime.windows.contents import Contents
from tamias.state.heap import Table
from tamias.state.heap_snapshots import Entries
from tamias.state.snapshots import WINDOWED, StateInfo


class Pane(dict[Any, Any]):
    """What is kept per key in one window."""

    __slots__ = ("captured", "changed")

    def __init__(self) -> None:
        super().__init__()
        self.changed: set[Any] = set()  # keys written since the last snapshot
        self.captured = False  # a snapshot was taken while it was open


class PaneTable(Table):
    """The open windows of one size. In a checkpoint an entry's address is (key, (start, end))."""

    __slots__ = ("_contents", "_size", "ends", "panes")

    def __init__(self, name: str, size_ms: int, contents: Contents, *, tracked: bool) -> None:
        super().__init__(StateInfo(name, f"{WINDOWED}panes"), tracked=tracked)
        self._size = size_ms
        self._contents = contents
        self.panes: dict[int, Pane] = {}  # by the window's end
        self.ends: list[int] = []  # a heap

    def open(self, end_ms: int) -> Pane:
        """Begin a window."""
        pane = self.panes[end_ms] = Pane()
        heappush(self.ends, end_ms)
        return pane

    def take_until(self, limit_ms: int) -> Iterator[tuple[int, Pane]]:
        """Remove the windows whose last instant is not after the limit, in order."""
        ends = self.ends
        while ends and ends[0] - 1 <= limit_ms:
            end = heappop(ends)
            pane = self.panes.pop(end)
            if pane.captured:
                window = (end - self._size, end)
                self.changed.update([(key, window) for key in pane])
            yield end, pane

    # ------------------------------------------------------------------------------------------- checkpoints

    def take_changed(self) -> set[Any]:
        changed = super().take_changed()
        for end, pane in self.panes.items():
            window = (end - self._size, end)
            changed.update([(key, window) for key in pane.changed])
            pane.changed.clear()
            pane.captured = True
        return changed

    def whole(self) -> Entries:
        freeze = self._contents.freeze
        keys = [(key, (end - self._size, end)) for end, pane in self.panes.items() for key in pane]
        values = [freeze(kept) for pane in self.panes.values() for kept in pane.values()]
        return Entries(self.info, keys, values, [], full=True)

    def some(self, keys: set[Any]) -> Entries:
        there, values, gone = [], [], []
        for address in keys:
            key, (_, end) = address
            pane = self.panes.get(end)
            if pane is not None and key in pane:
                there.append(address)
                values.append(self._contents.freeze(pane[key]))
            else:
                gone.append(address)
        return Entries(self.info, there, values, gone, full=False)

    def load(self, entries: dict[Any, Any]) -> None:
        self.drop()
        for (key, (_, end)), frozen in entries.items():
            pane = self.panes.get(end)
            if pane is None:
                pane = self.panes[end] = Pane()
                pane.captured = True
            pane[key] = self._contents.thaw(frozen)
        self.ends[:] = self.panes
        heapify(self.ends)

    def drop(self) -> None:
        super().drop()
        self.panes.clear()
        self.ends.clear()
