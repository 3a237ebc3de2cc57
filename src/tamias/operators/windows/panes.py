"""The table behind windows that end at fixed times: a pane per window, and in it what is kept per key.

One lookup finds the pane, one the key, and neither needs a pair to be made and hashed. A pane fires and goes as a
whole, so there is no timer per key: the ends of open windows are enough.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from tamias.errors import StateMigrationError
from tamias.operators.windows.contents import Contents
from tamias.operators.windows.ends import WindowEnds
from tamias.state.canonical_format import TableEntries
from tamias.state.codecs import Codec
from tamias.state.snapshots import WINDOWED, StateInfo
from tamias.state.table import Table


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

    __slots__ = ("_contents", "_size", "_tracked", "ends", "panes")

    def __init__(self, name: str, size_ms: int, contents: Contents, ends: WindowEnds, *, tracked: bool) -> None:
        super().__init__(StateInfo(name, f"{WINDOWED}panes"), tracked=tracked)
        self._size = size_ms
        self._contents = contents
        self._tracked = tracked
        self.ends = ends
        self.panes: dict[int, Pane] = {}  # by the window's end

    def open(self, end_ms: int, *, fired: bool) -> Pane:
        """Begin a window; one that has ended already fires with each of its records."""
        pane = self.panes[end_ms] = Pane(end_ms, fired=fired)
        self.ends.enter(end_ms, fired=fired)
        return pane

    def has_quiet(self) -> bool:
        """Whether windows are here that had fired before a restore, as some do if late records were allowed then."""
        return any(pane.quiet for pane in self.panes.values())

    def mark_in(self, pane: Pane, key: Any) -> None:
        """A key was written; the operator's loop does the same without a call."""
        if self._tracked:
            pane.changed.add(key)

    def settle(self, pane: Pane, *, over: bool) -> None:
        """A window has fired and is kept for late records, or it is over."""
        if not over:
            pane.fired = True
            if self._tracked:
                pane.changed.update(pane)
            return
        del self.panes[pane.end]
        if pane.captured:
            window = (pane.end - self._size, pane.end)
            self.changed.update([(key, window) for key in pane])

    # ------------------------------------------------------------------------------------------- checkpoints

    def codec(self) -> Codec:
        return self._contents.codec

    def some_key(self) -> Any:
        return next((key for pane in self.panes.values() for key in pane), None)

    def take_changed(self) -> set[Any]:
        changed = set(super().take_changed())
        for end, pane in self.panes.items():
            window = (end - self._size, end)
            changed.update([(key, window) for key in pane.changed])
            pane.changed.clear()
            pane.captured = True
        return changed

    def _frozen(self, pane: Pane, key: Any) -> tuple[Any, bool]:
        return self._contents.freeze(pane[key]), pane.fired or key in pane.quiet

    def whole(self) -> TableEntries:
        keys = [(key, (end - self._size, end)) for end, pane in self.panes.items() for key in pane]
        values = [self._frozen(pane, key) for pane in self.panes.values() for key in pane]
        return TableEntries(self.info, keys, values, [], full=True)

    def some(self, keys: Collection[Any]) -> TableEntries:
        there, values, gone = [], [], []
        for address in keys:
            key, (_, end) = address
            pane = self.panes.get(end)
            if pane is not None and key in pane:
                there.append(address)
                values.append(self._frozen(pane, key))
            else:
                gone.append(address)
        return TableEntries(self.info, there, values, gone, full=False)

    def load(self, entries: dict[Any, Any]) -> None:
        self.drop()
        for (key, (start, end)), (frozen, fired) in entries.items():
            if end - start != self._size:
                raise other_size(end - start, self._size)
            pane = self.panes.get(end)
            if pane is None:
                pane = self.open(end, fired=False)
                pane.captured = True
            pane[key] = self._contents.thaw(frozen)
            if fired:
                pane.quiet.add(key)

    def drop(self) -> None:
        super().drop()
        self.panes.clear()
        self.ends.clear()


def other_size(restored_ms: int, size_ms: int) -> StateMigrationError:
    """What is said when restored windows are not as long as those of the job."""
    return StateMigrationError(
        f"the restored windows are {restored_ms} ms long, those of the job {size_ms} ms; "
        "restore with the old size, or give the operator another uid to start it empty"
    )
