"""The table of the pane layout: a pane per window, and in it the contents per key.

One lookup finds the pane and one the key; no pair of key and window is made or hashed. A pane fires and is dropped as a
whole, so there is no timer per key: the ends of open windows are enough.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from heapq import heappop, heappush
from typing import Any

from ekorn.functions.windows.window_arithmetic import SavedSpan, WindowGrid
from ekorn.operators.windows.contents import Contents
from ekorn.operators.windows.saved_windows import PANES, other_size
from ekorn.state.canonical_format import TableEntries
from ekorn.state.codecs import Codec
from ekorn.state.snapshots import WINDOWED, StateInfo
from ekorn.state.table import Table


class Pane(dict[Any, Any]):
    """The contents of one window, by key."""

    __slots__ = ("changed", "end", "fired", "fired_before_restore", "in_snapshot")

    def __init__(self, end_ms: int, *, fired: bool = False) -> None:
        super().__init__()
        self.end = end_ms
        self.fired = fired  # the window has fired and stays for late records; each late record fires it again
        self.fired_before_restore: set[Any] = set()  # keys that must not fire again unless they get a record
        self.changed: set[Any] = set()  # keys written since the last snapshot
        self.in_snapshot = False  # a snapshot was taken while the pane was open


class PaneTable(Table):
    """The open windows of a grid.

    In a checkpoint an entry's address is (key, (start, end)), and its value is (contents, has fired).
    """

    __slots__ = ("_contents", "_grid", "_tracked", "ends", "panes")

    def __init__(self, grid: WindowGrid, contents: Contents, ends: WindowEnds, *, tracked: bool) -> None:
        super().__init__(StateInfo(PANES, f"{WINDOWED}panes"), tracked=tracked)
        self._grid = grid
        self._contents = contents
        self._tracked = tracked
        self.ends = ends
        self.panes: dict[int, Pane] = {}  # by the window's end

    def open(self, end_ms: int, *, fired: bool) -> Pane:
        """Add a window. A window that has ended already fires with each of its records."""
        pane = self.panes[end_ms] = Pane(end_ms, fired=fired)
        self.ends.enter(end_ms, fired=fired)
        return pane

    def has_fired_before_restore(self) -> bool:
        """Return whether some restored windows had fired before the checkpoint. That happens with allowed lateness."""
        return any(pane.fired_before_restore for pane in self.panes.values())

    def mark_changed(self, pane: Pane, key: Any) -> None:
        """Note that a key was written. The generated loop does the same without a call."""
        if self._tracked:
            pane.changed.add(key)

    def settle(self, pane: Pane, *, over: bool) -> None:
        """Note that a window has fired and stays for late records, or drop a window that is over."""
        if not over:
            pane.fired = True
            if self._tracked:
                pane.changed.update(pane)
            return
        del self.panes[pane.end]
        if pane.in_snapshot:
            span = self._saved_span(pane.end)
            self.changed.update([(key, span) for key in pane])

    # ------------------------------------------------------------------------------------------- checkpoints

    def _saved_span(self, end_ms: int) -> SavedSpan:
        return (end_ms - self._grid.size_ms, end_ms)

    def codec(self) -> Codec:
        return self._contents.codec

    def some_key(self) -> Any:
        return next((key for pane in self.panes.values() for key in pane), None)

    def take_changed(self) -> set[Any]:
        changed = set(super().take_changed())
        for end, pane in self.panes.items():
            span = self._saved_span(end)
            changed.update([(key, span) for key in pane.changed])
            pane.changed.clear()
            pane.in_snapshot = True
        return changed

    def _saved(self, pane: Pane, key: Any) -> tuple[Any, bool]:
        return self._contents.snapshot(pane[key]), pane.fired or key in pane.fired_before_restore

    def whole(self) -> TableEntries:
        keys = [(key, self._saved_span(end)) for end, pane in self.panes.items() for key in pane]
        values = [self._saved(pane, key) for pane in self.panes.values() for key in pane]
        return TableEntries(self.info, keys, values, [], full=True)

    def some(self, keys: Collection[Any]) -> TableEntries:
        there, values, gone = [], [], []
        for address in keys:
            key, (_, end) = address
            pane = self.panes.get(end)
            if pane is not None and key in pane:
                there.append(address)
                values.append(self._saved(pane, key))
            else:
                gone.append(address)
        return TableEntries(self.info, there, values, gone, full=False)

    def load(self, entries: dict[Any, Any]) -> None:
        self.drop()
        for (key, (start, end)), (saved, fired) in entries.items():
            if end - start != self._grid.size_ms:
                raise other_size(end - start, self._grid.size_ms)
            pane = self.panes.get(end)
            if pane is None:
                pane = self.open(end, fired=False)
                pane.in_snapshot = True
            pane[key] = self._contents.restore(saved)
            if fired:
                pane.fired_before_restore.add(key)

    def drop(self) -> None:
        super().drop()
        self.panes.clear()
        self.ends.clear()


class WindowEnds:
    """Says which windows of a grid fire and which are over, in order of time: two heaps instead of a timer per key."""

    __slots__ = ("_known", "_lateness_ms", "_to_close", "_to_fire")

    def __init__(self, lateness_ms: int) -> None:
        self._lateness_ms = lateness_ms
        self._known: set[int] = set()
        self._to_fire: list[int] = []  # a heap of the ends of windows that have not fired
        self._to_close: list[int] = []  # a heap of the ends of windows that are open; empty without allowed lateness

    def enter(self, end_ms: int, *, fired: bool = False) -> None:
        """Add an open window. A window that has fired already is not reported as firing.

        Adding a window twice has no effect.
        """
        if end_ms in self._known:
            return
        self._known.add(end_ms)
        if not fired:
            heappush(self._to_fire, end_ms)
        if self._lateness_ms:
            heappush(self._to_close, end_ms)

    def next_ms(self) -> int | None:
        """Return the end of the window that fires next."""
        return self._to_fire[0] if self._to_fire else None

    def due(self, limit_ms: int) -> Iterator[tuple[int, bool, bool]]:
        """Yield the windows that fire or are over up to a time, in order of time, as (end, fires, is over)."""
        to_fire, to_close, lateness = self._to_fire, self._to_close, self._lateness_ms
        while self._is_due(limit_ms):
            if not lateness:
                end = heappop(to_fire)
                self._known.discard(end)
                yield end, True, True
            elif to_fire and (not to_close or to_fire[0] <= to_close[0] + lateness):
                yield heappop(to_fire), True, False
            else:
                end = heappop(to_close)
                self._known.discard(end)
                yield end, False, True

    def _is_due(self, limit_ms: int) -> bool:
        return bool(self._to_fire and self._to_fire[0] - 1 <= limit_ms) or bool(
            self._to_close and self._to_close[0] - 1 + self._lateness_ms <= limit_ms
        )

    def clear(self) -> None:
        self._known.clear()
        self._to_fire.clear()
        self._to_close.clear()

    def __len__(self) -> int:
        return len(self._known)
