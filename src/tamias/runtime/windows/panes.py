"""The table behind windows that end at fixed times: a pane per window, and in it what is kept per key.

One lookup finds the pane, one the key, and neither needs a pair to be made and hashed. A pane fires and goes as a
whole, so there is no timer per key: a heap of the ends of open windows is enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import Any

from tamias.errors import StateMigrationError
from tamias.runtime.windows.contents import Contents
from tamias.state.heap import Table
from tamias.state.heap_snapshots import Entries
from tamias.state.snapshots import WINDOWED, StateInfo


class Pane(dict[Any, Any]):
    """What is kept per key in one window."""

    __slots__ = ("captured", "changed", "end", "fired", "quiet")

    def __init__(self, end_ms: int, *, fired: bool = False) -> None:
        super().__init__()
        self.end = end_ms
        self.fired = fired  # its end has come; it is kept for late records, which fire it again
        self.quiet: set[Any] = set()  # keys that fired before a restore and got nothing since: not to fire again
        self.changed: set[Any] = set()  # keys written since the last snapshot
        self.captured = False  # a snapshot was taken while it was open


class PaneTable(Table):
    """The windows of one size, from their first record until nothing can come for them any more.

    In a checkpoint an entry's address is (key, (start, end)), its value what is kept and whether it has fired.
    """

    __slots__ = ("_contents", "_ends", "_lateness", "_overs", "_size", "_tracked", "panes")

    def __init__(self, name: str, size_ms: int, lateness_ms: int, contents: Contents, *, tracked: bool) -> None:
        super().__init__(StateInfo(name, f"{WINDOWED}panes"), tracked=tracked)
        self._size = size_ms
        self._lateness = lateness_ms
        self._contents = contents
        self._tracked = tracked
        self.panes: dict[int, Pane] = {}  # by the window's end
        self._ends: list[int] = []  # a heap: windows that have not fired
        self._overs: list[int] = []  # a heap: windows that are kept for late records; unused when none are

    def open(self, end_ms: int, *, fired: bool) -> Pane:
        """Begin a window; one that has ended already fires with each of its records."""
        pane = self.panes[end_ms] = Pane(end_ms, fired=fired)
        self._enter(pane)
        return pane

    def _enter(self, pane: Pane) -> None:
        if not pane.fired:
            heappush(self._ends, pane.end)
        if self._lateness:
            heappush(self._overs, pane.end)

    def next_end_ms(self) -> int | None:
        """When a window fires next."""
        return self._ends[0] if self._ends else None

    def is_due(self, limit_ms: int) -> bool:
        """Whether anything happens up to this time."""
        return bool(self._ends and self._ends[0] - 1 <= limit_ms) or bool(
            self._overs and self._overs[0] - 1 + self._lateness <= limit_ms
        )

    def due(self, limit_ms: int) -> Iterator[tuple[Pane, bool, bool]]:
        """The windows that fire or are over up to a time, in the order of their times: pane, fires, is over."""
        ends, overs, lateness = self._ends, self._overs, self._lateness
        while self.is_due(limit_ms):
            if not lateness:
                yield self._forget(heappop(ends)), True, True
            elif ends and (not overs or ends[0] <= overs[0] + lateness):
                pane = self.panes[heappop(ends)]
                yield pane, True, False
                pane.fired = True
                if self._tracked:
                    pane.changed.update(pane)
            else:
                yield self._forget(heappop(overs)), False, True

    def _forget(self, end_ms: int) -> Pane:
        pane = self.panes.pop(end_ms)
        if pane.captured:
            window = (end_ms - self._size, end_ms)
            self.changed.update([(key, window) for key in pane])
        return pane

    # ------------------------------------------------------------------------------------------- checkpoints

    def take_changed(self) -> set[Any]:
        changed = super().take_changed()
        for end, pane in self.panes.items():
            window = (end - self._size, end)
            changed.update([(key, window) for key in pane.changed])
            pane.changed.clear()
            pane.captured = True
        return changed

    def _frozen(self, pane: Pane, key: Any) -> tuple[Any, bool]:
        return self._contents.freeze(pane[key]), pane.fired or key in pane.quiet

    def whole(self) -> Entries:
        keys = [(key, (end - self._size, end)) for end, pane in self.panes.items() for key in pane]
        values = [self._frozen(pane, key) for pane in self.panes.values() for key in pane]
        return Entries(self.info, keys, values, [], full=True)

    def some(self, keys: set[Any]) -> Entries:
        there, values, gone = [], [], []
        for address in keys:
            key, (_, end) = address
            pane = self.panes.get(end)
            if pane is not None and key in pane:
                there.append(address)
                values.append(self._frozen(pane, key))
            else:
                gone.append(address)
        return Entries(self.info, there, values, gone, full=False)

    def load(self, entries: dict[Any, Any]) -> None:
        self.drop()
        for (key, (start, end)), (frozen, fired) in entries.items():
            if end - start != self._size:
                raise StateMigrationError(
                    f"the restored windows are {end - start} ms long, those of the job {self._size} ms; "
                    "restore with the old size, or give the operator another uid to start it empty"
                )
            pane = self.panes.get(end)
            if pane is None:
                pane = self.panes[end] = Pane(end)
                pane.captured = True
            pane[key] = self._contents.thaw(frozen)
            if fired:
                pane.quiet.add(key)
        self._ends[:] = self.panes
        heapify(self._ends)
        if self._lateness:
            self._overs[:] = self._ends

    def drop(self) -> None:
        super().drop()
        self.panes.clear()
        self._ends.clear()
        self._overs.clear()
