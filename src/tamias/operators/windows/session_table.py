"""The table behind session windows: the open sessions of each key.

A session is a list of its start, its end, what it keeps, when it is next to be looked at, and whether it has fired.
Most records push a session's end: that changes a number here, and no timer. When the time comes for which a session
was entered, it is either due or entered again for the end that it has by then.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from heapq import heappop, heappush
from typing import Any

from tamias.operators.windows.contents import Contents
from tamias.state.canonical_format import TableEntries
from tamias.state.codecs import Codec
from tamias.state.snapshots import StateInfo
from tamias.state.table import Table

START, END, KEPT, ENTERED, QUIET = range(5)
Session = list[Any]


class SessionTable(Table):
    """The sessions of all keys. In a checkpoint a key's entry is a list of (start, end, kept, has fired)."""

    __slots__ = ("_contents", "_entered", "_lateness", "_times")

    def __init__(self, name: str, lateness_ms: int, contents: Contents, *, tracked: bool) -> None:
        super().__init__(StateInfo(name, "sessions"), tracked=tracked)
        self._lateness = lateness_ms
        self._contents = contents
        self._entered: dict[int, dict[Any, None]] = {}  # the keys to look at, by time
        self._times: list[int] = []  # a heap of those times

    def open(self, key: Any, start_ms: int, end_ms: int, kept: Any) -> Session:
        """Begin a session of a key, after those it has; `enter` comes next."""
        session = [start_ms, end_ms, kept, end_ms, False]
        self.data.setdefault(key, []).append(session)
        return session

    def merge(self, key: Any, sessions: list[Session], start_ms: int, end_ms: int) -> Session:
        """Make one session of some of a key's; the earliest one's contents come first. `enter` comes next."""
        sessions.sort(key=lambda s: (s[START], s[END]))
        target = sessions[0]
        for other in sessions[1:]:
            target[KEPT] = self._contents.merge(target[KEPT], other[KEPT])
            target[END] = max(target[END], other[END])
            self.data[key].remove(other)
        target[START], target[END] = min(target[START], start_ms), max(target[END], end_ms)
        return target

    def enter(self, key: Any, session: Session, *, quiet: bool) -> None:
        """Look at a session when it ends, or, if it is quiet until then, when it is over."""
        session[QUIET] = quiet
        session[ENTERED] = time_ms = session[END] + self._lateness if quiet else session[END]
        keys = self._entered.get(time_ms)
        if keys is None:
            keys = self._entered[time_ms] = {}
            heappush(self._times, time_ms)
        keys[key] = None

    def has_quiet(self) -> bool:
        """Whether sessions are here that had fired before a restore, as some do if late records were allowed then."""
        return any(session[QUIET] for sessions in self.data.values() for session in sessions)

    def next_ms(self) -> int | None:
        """When to look at a session next."""
        return self._times[0] if self._times else None

    def due(self, limit_ms: int) -> Iterator[tuple[Any, Session, bool, bool]]:
        """The sessions that fire or are over up to a time, in order: key, session, fires, is over."""
        while self._times and self._times[0] - 1 <= limit_ms:
            time_ms = heappop(self._times)
            for key in self._entered.pop(time_ms):
                for session in [s for s in self.data.get(key, ()) if s[ENTERED] == time_ms]:
                    quiet = session[QUIET]
                    if session[END] + (self._lateness if quiet else 0) > time_ms:
                        self.enter(key, session, quiet=quiet)  # it grew meanwhile
                        continue
                    over = quiet or not self._lateness
                    if over:
                        self._forget(key, session)
                    else:
                        self.enter(key, session, quiet=True)
                    self.mark(key)
                    yield key, session, not quiet, over

    def _forget(self, key: Any, session: Session) -> None:
        sessions = self.data[key]
        sessions.remove(session)
        if not sessions:
            del self.data[key]

    # ------------------------------------------------------------------------------------------- checkpoints

    def _frozen(self, sessions: list[Session]) -> list[tuple[int, int, Any, bool]]:
        return [(s[START], s[END], self._contents.freeze(s[KEPT]), s[QUIET]) for s in sessions]

    def codec(self) -> Codec:
        return self._contents.codec

    def whole(self) -> TableEntries:
        return TableEntries(self.info, list(self.data), [self._frozen(s) for s in self.data.values()], [], full=True)

    def some(self, keys: Collection[Any]) -> TableEntries:
        there = [k for k in keys if k in self.data]
        gone = [k for k in keys if k not in self.data]
        return TableEntries(self.info, there, [self._frozen(self.data[k]) for k in there], gone, full=False)

    def load(self, entries: dict[Any, Any]) -> None:
        self.drop()
        for key, sessions in entries.items():
            for start, end, frozen, quiet in sessions:
                self.enter(key, self.open(key, start, end, self._contents.thaw(frozen)), quiet=quiet)

    def drop(self) -> None:
        super().drop()
        self._entered.clear()
        self._times.clear()
