"""The table behind session windows: the open sessions of each key.

A session is a list of its start, its end, what it keeps, and the time at which it was last entered to be looked at.
Most records push a session's end: that changes a number here, and no timer. When the time comes for which a session
was entered, it is either over or entered again for the end that it has by then.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any

from tamias.runtime.windows.contents import Contents
from tamias.state.heap import Table
from tamias.state.heap_snapshots import Entries
from tamias.state.snapshots import StateInfo

START, END, KEPT, ENTERED = range(4)
Session = list[Any]


class SessionTable(Table):
    """The open sessions of all keys. In a checkpoint a key's entry is a list of (start, end, kept)."""

    __slots__ = ("_contents", "_ends", "_entered")

    def __init__(self, name: str, contents: Contents, *, tracked: bool) -> None:
        super().__init__(StateInfo(name, "sessions"), tracked=tracked)
        self._contents = contents
        self._entered: dict[int, dict[Any, None]] = {}  # the keys to look at when a session may end
        self._ends: list[int] = []  # a heap of those times

    def open(self, key: Any, start_ms: int, end_ms: int, kept: Any) -> None:
        """Begin a session of a key, after those it has."""
        self.data.setdefault(key, []).append([start_ms, end_ms, kept, end_ms])
        self._enter(end_ms, key)

    def merge(self, key: Any, sessions: list[Session], start_ms: int, end_ms: int) -> Session:
        """Make one session of some of a key's; the earliest one's contents come first."""
        sessions.sort(key=lambda s: (s[START], s[END]))
        target = sessions[0]
        for other in sessions[1:]:
            target[KEPT] = self._contents.merge(target[KEPT], other[KEPT])
            target[END] = max(target[END], other[END])
            self.data[key].remove(other)
        target[START], target[END] = min(target[START], start_ms), max(target[END], end_ms)
        return target

    def next_end_ms(self) -> int | None:
        """When a session may be over next."""
        return self._ends[0] if self._ends else None

    def take_until(self, limit_ms: int) -> list[tuple[Any, Session]]:
        """Remove the sessions whose last instant is not after the limit, in the order of their ends."""
        over: list[tuple[Any, Session]] = []
        while self._ends and self._ends[0] - 1 <= limit_ms:
            time_ms = heappop(self._ends)
            for key in self._entered.pop(time_ms):
                self._look_at(key, time_ms, over)
        return over

    def _look_at(self, key: Any, time_ms: int, over: list[tuple[Any, Session]]) -> None:
        sessions = self.data.get(key, ())
        for session in [s for s in sessions if s[ENTERED] == time_ms]:
            if session[END] > time_ms:
                session[ENTERED] = session[END]
                self._enter(session[END], key)
            else:
                over.append((key, session))
                sessions.remove(session)
                self.mark(key)
        if not sessions:
            self.data.pop(key, None)

    def _enter(self, time_ms: int, key: Any) -> None:
        keys = self._entered.get(time_ms)
        if keys is None:
            keys = self._entered[time_ms] = {}
            heappush(self._ends, time_ms)
        keys[key] = None

    # ------------------------------------------------------------------------------------------- checkpoints

    def _frozen(self, sessions: list[Session]) -> list[tuple[int, int, Any]]:
        return [(s[START], s[END], self._contents.freeze(s[KEPT])) for s in sessions]

    def whole(self) -> Entries:
        return Entries(self.info, list(self.data), [self._frozen(s) for s in self.data.values()], [], full=True)

    def some(self, keys: set[Any]) -> Entries:
        there = [k for k in keys if k in self.data]
        gone = [k for k in keys if k not in self.data]
        return Entries(self.info, there, [self._frozen(self.data[k]) for k in there], gone, full=False)

    def load(self, entries: dict[Any, Any]) -> None:
        self.drop()
        for key, sessions in entries.items():
            for start, end, frozen in sessions:
                self.open(key, start, end, self._contents.thaw(frozen))

    def drop(self) -> None:
        super().drop()
        self._entered.clear()
        self._ends.clear()
