"""The table of the session layout: the open sessions of each key.

Most records push a session's end. That changes a number here, and no timer: when the time comes for which a session was
entered, the session is either due, or it is entered again for the end that it has by then.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from heapq import heappop, heappush
from typing import Any

from ekorn.operators.windows.contents import Contents
from ekorn.operators.windows.saved_windows import SESSIONS
from ekorn.state.canonical_format import TableEntries
from ekorn.state.codecs import Codec
from ekorn.state.snapshots import StateInfo
from ekorn.state.table import Table

# A session is a list, since the generated loop changes its items in place.
Session = list[Any]
START, END, CONTENTS, ENTERED, FIRED = range(5)  # entered: the time at which the session is looked at next

SavedSession = tuple[int, int, Any, bool]
"""A session in a checkpoint: its start, its end, its contents, and whether it has fired. No class of ekorn."""


class SessionTable(Table):
    """The open sessions of all keys.

    In a checkpoint an entry's address is the key, and its value a list of `SavedSession`.
    """

    __slots__ = ("_contents", "_entered", "_lateness_ms", "_times")

    def __init__(self, lateness_ms: int, contents: Contents, *, tracked: bool) -> None:
        super().__init__(StateInfo(SESSIONS, "sessions"), tracked=tracked)
        self._lateness_ms = lateness_ms
        self._contents = contents
        self._entered: dict[int, dict[Any, None]] = {}  # the keys whose sessions are looked at, by time
        self._times: list[int] = []  # a heap of those times

    def open(self, key: Any, start_ms: int, end_ms: int, contents: Any) -> Session:
        """Add a session of a key, after the others of the key. The caller enters it next."""
        session = [start_ms, end_ms, contents, end_ms, False]
        self.data.setdefault(key, []).append(session)
        return session

    def merge(self, key: Any, sessions: list[Session], start_ms: int, end_ms: int) -> Session:
        """Merge sessions of a key into the earliest one and extend it. The caller enters it next."""
        sessions.sort(key=lambda s: (s[START], s[END]))
        target = sessions[0]
        for other in sessions[1:]:
            target[CONTENTS] = self._contents.merge(target[CONTENTS], other[CONTENTS])
            target[END] = max(target[END], other[END])
            self.data[key].remove(other)
        target[START], target[END] = min(target[START], start_ms), max(target[END], end_ms)
        return target

    def enter(self, key: Any, session: Session, *, fired: bool) -> None:
        """Look at a session when it ends, or, if it has fired, when it is over."""
        session[FIRED] = fired
        session[ENTERED] = time_ms = session[END] + self._lateness_ms if fired else session[END]
        keys = self._entered.get(time_ms)
        if keys is None:
            keys = self._entered[time_ms] = {}
            heappush(self._times, time_ms)
        keys[key] = None

    def has_fired_sessions(self) -> bool:
        """Return whether some restored sessions had fired before the checkpoint. That happens with allowed lateness."""
        return any(session[FIRED] for sessions in self.data.values() for session in sessions)

    def next_ms(self) -> int | None:
        """Return the time at which a session is looked at next."""
        return self._times[0] if self._times else None

    def due(self, limit_ms: int) -> Iterator[tuple[Any, Session, bool, bool]]:
        """Yield the sessions that fire or are over up to a time, in order, as (key, session, fires, is over)."""
        while self._times and self._times[0] - 1 <= limit_ms:
            time_ms = heappop(self._times)
            for key in self._entered.pop(time_ms):
                for session in [s for s in self.data.get(key, ()) if s[ENTERED] == time_ms]:
                    fired = session[FIRED]
                    if session[END] + (self._lateness_ms if fired else 0) > time_ms:
                        self.enter(key, session, fired=fired)  # the session has grown
                        continue
                    over = fired or not self._lateness_ms
                    if over:
                        self._drop(key, session)
                    else:
                        self.enter(key, session, fired=True)
                    self.mark(key)
                    yield key, session, not fired, over

    def _drop(self, key: Any, session: Session) -> None:
        sessions = self.data[key]
        sessions.remove(session)
        if not sessions:
            del self.data[key]

    # ------------------------------------------------------------------------------------------- checkpoints

    def _saved(self, sessions: list[Session]) -> list[SavedSession]:
        return [(s[START], s[END], self._contents.snapshot(s[CONTENTS]), s[FIRED]) for s in sessions]

    def codec(self) -> Codec:
        return self._contents.codec

    def whole(self) -> TableEntries:
        return TableEntries(self.info, list(self.data), [self._saved(s) for s in self.data.values()], [], full=True)

    def some(self, keys: Collection[Any]) -> TableEntries:
        there = [k for k in keys if k in self.data]
        gone = [k for k in keys if k not in self.data]
        return TableEntries(self.info, there, [self._saved(self.data[k]) for k in there], gone, full=False)

    def load(self, entries: dict[Any, Any]) -> None:
        self.drop()
        for key, sessions in entries.items():
            for start, end, saved, fired in sessions:
                self.enter(key, self.open(key, start, end, self._contents.restore(saved)), fired=fired)

    def drop(self) -> None:
        super().drop()
        self._entered.clear()
        self._times.clear()
