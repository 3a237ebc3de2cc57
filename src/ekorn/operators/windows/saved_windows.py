"""The layouts of windows in checkpoints, and the translation of one into another while restoring.

On the heap, windows with their default trigger are kept in panes, slices or sessions. In RocksDB every window is kept
as contents with timers. A checkpoint of one backend restores in the other, and slices restore as panes where slices no
longer pay. Each layout translates to and from one canonical form, a sequence of `SavedWindow`, so no layout knows
another one.

    contents     {(key, window): contents}
    timers       {(key, (time, window)): None}: one at the end of a window that has yet to fire, one when it is over
    open         {key: [window, ...]}, where windows merge
    panes        {(key, window): (contents, has fired)}
    slices       {(key, slice): (contents, arrival numbers)}, see `slice_table.py`
    sessions     {key: [(start, end, contents, has fired), ...]}

Contents have the same encoding in all of them. Restored windows of a layout that cannot be translated are refused:
dropping them silently would lose state.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple

from ekorn.errors import StateMigrationError
from ekorn.functions.windows.assigner_contract import MergingWindowAssigner
from ekorn.functions.windows.window_arithmetic import TimeSpan
from ekorn.graph.specs import WindowSpec
from ekorn.operators.windows.contents import contents_for
from ekorn.operators.windows.open_windows import OPEN_WINDOWS
from ekorn.state.keyed_backend import KeyedStateBackend, RestoredTable, RestoredTables
from ekorn.state.snapshots import WINDOWED, StateInfo
from ekorn.types.time_bounds import MAX_TIMESTAMP

PANES, SLICES, SESSIONS, TRIGGERED = "_window/panes", "_window/slices", "_window/sessions", "_window/contents"
DEFAULT_IN_ROCKSDB = "_window/by-default"  # contents with timers of windows that the heap keeps in another layout
EVENT_TIMERS, PROCESSING_TIMERS = "_window/timers/event", "_window/timers/processing"
IN_ROCKSDB = frozenset({DEFAULT_IN_ROCKSDB, EVENT_TIMERS, PROCESSING_TIMERS, OPEN_WINDOWS})
"""The states of windows with their default trigger in RocksDB."""

_MEANING = {
    PANES: "tumbling or sliding windows with their default trigger and no evictor",
    SLICES: "sliding windows in slices, which several windows share, with their default trigger and no evictor",
    SESSIONS: "session windows with their default trigger and no evictor",
    DEFAULT_IN_ROCKSDB: "tumbling, sliding or session windows with their default trigger and no evictor, in RocksDB",
    TRIGGERED: "windows with a custom trigger, evictor or assigner",
}


def check_layout(backend: KeyedStateBackend, mine: str, *understood: str) -> None:
    """Refuse restored windows of a layout that is neither the operator's own nor one it understands besides.

    Raises:
        StateMigrationError: there are such windows.
    """
    for other, meaning in _MEANING.items():
        if other not in (mine, *understood) and backend.has_entries(other):
            raise StateMigrationError(
                f"the restored state belongs to {meaning}; the job now has {_MEANING[mine]}. "
                "Restore with the old windows, or give the operator another uid to start it empty"
            )


def check_merging(backend: KeyedStateBackend, mine: str, *, merging: bool) -> None:
    """Refuse restored windows that merge if those of the job do not, and the other way round.

    Contents with timers have one layout for both; a key's open windows are saved only where windows merge.

    Raises:
        StateMigrationError: there are such windows.
    """
    if backend.has_entries(mine) and backend.has_entries(OPEN_WINDOWS) != merging:
        kinds = ("windows that merge, such as session windows", "windows that do not merge, such as tumbling windows")
        now, before = kinds if merging else kinds[::-1]
        raise StateMigrationError(
            f"the restored state belongs to {before}; the job now has {now}. "
            "Restore with the old windows, or give the operator another uid to start it empty"
        )


def check_size(backend: KeyedStateBackend, mine: str, size_ms: int) -> None:
    """Refuse restored windows that are not as long as those of the job. All windows of a grid have one length.

    Raises:
        StateMigrationError: there are such windows.
    """
    for (_, (start_ms, end_ms)), _ in islice(backend.entries(mine), 1):
        if end_ms - start_ms != size_ms:
            raise other_size(end_ms - start_ms, size_ms)


def other_size(restored_ms: int, size_ms: int) -> StateMigrationError:
    """Return the error for restored windows that are not as long as those of the job."""
    return StateMigrationError(
        f"the restored windows are {restored_ms} ms long, those of the job {size_ms} ms; "
        "restore with the old size, or give the operator another uid to start it empty"
    )


class SavedWindow(NamedTuple):
    """One window of one key in a checkpoint: the canonical form of every layout."""

    key: Any
    span: TimeSpan
    contents: Any  # as `Contents.snapshot` encodes them
    has_fired: bool


class SavedLayout(ABC):
    """The tables of one layout in a checkpoint."""

    name: str
    """The table whose presence says that windows were saved in this layout."""

    @abstractmethod
    def to_canonical(self, tables: RestoredTables) -> Iterable[SavedWindow] | None:
        """Remove the layout's tables and return their windows. Return None if they are not windows of the job."""

    @abstractmethod
    def from_canonical(self, tables: RestoredTables, info: StateInfo, windows: Iterable[SavedWindow]) -> None:
        """Add windows to the layout's tables. A window that is there already stays as it is."""


def translate(tables: RestoredTables, mine: SavedLayout, others: Iterable[SavedLayout]) -> None:
    """Turn restored windows of other layouts into windows of one layout, in place."""
    for other in others:
        if other.name in tables:
            info = tables[other.name].info
            windows = other.to_canonical(tables)
            if windows is not None:
                mine.from_canonical(tables, info, windows)


class SavedPanes(SavedLayout):
    name = PANES

    def to_canonical(self, tables: RestoredTables) -> Iterator[SavedWindow]:
        entries = tables.pop(PANES).entries
        return (
            SavedWindow(key, TimeSpan(*span), contents, fired) for (key, span), (contents, fired) in entries.items()
        )

    def from_canonical(self, tables: RestoredTables, info: StateInfo, windows: Iterable[SavedWindow]) -> None:
        panes = _table(tables, replace(info, name=PANES, kind=f"{WINDOWED}panes"))
        for key, span, contents, fired in windows:
            panes.setdefault((key, tuple(span)), (contents, fired))


class SavedSessions(SavedLayout):
    name = SESSIONS

    def to_canonical(self, tables: RestoredTables) -> Iterator[SavedWindow]:
        entries = tables.pop(SESSIONS).entries
        return (
            SavedWindow(key, TimeSpan(start, end), contents, fired)
            for key, sessions in entries.items()
            for start, end, contents, fired in sessions
        )

    def from_canonical(self, tables: RestoredTables, info: StateInfo, windows: Iterable[SavedWindow]) -> None:
        sessions = _table(tables, replace(info, name=SESSIONS, kind="sessions"))
        for key, (start_ms, end_ms), contents, fired in windows:
            sessions.setdefault(key, []).append((start_ms, end_ms, contents, fired))


class SavedDefaultInRocksDB(SavedLayout):
    """Contents with timers, as the triggered window operator keeps windows with their default trigger."""

    name = DEFAULT_IN_ROCKSDB

    def __init__(self, spec: WindowSpec) -> None:
        self._event_time = spec.assigner.is_event_time()
        self._lateness_ms = spec.lateness_ms
        self._merging = isinstance(spec.assigner, MergingWindowAssigner)
        self._kind = WINDOWED + contents_for(spec.contents).state_kind

    def to_canonical(self, tables: RestoredTables) -> Iterator[SavedWindow]:
        contents = tables.pop(DEFAULT_IN_ROCKSDB).entries
        timers = {name: tables.pop(name).entries for name in (EVENT_TIMERS, PROCESSING_TIMERS) if name in tables}
        tables.pop(OPEN_WINDOWS, None)
        waiting = timers.get(EVENT_TIMERS, {})
        # The default trigger has a timer at the end of every window that has yet to fire.
        return (
            SavedWindow(key, TimeSpan(*span), saved, self._event_time and (key, (span[1] - 1, span)) not in waiting)
            for (key, span), saved in contents.items()
        )

    def from_canonical(self, tables: RestoredTables, info: StateInfo, windows: Iterable[SavedWindow]) -> None:
        contents = _table(tables, replace(info, name=DEFAULT_IN_ROCKSDB, kind=self._kind))
        timers = _table(tables, StateInfo(EVENT_TIMERS if self._event_time else PROCESSING_TIMERS, "timers"))
        open_windows = _table(tables, StateInfo(OPEN_WINDOWS, "list")) if self._merging else None
        for key, span, saved, fired in windows:
            window = tuple(span)
            if (key, window) in contents:
                continue
            contents[key, window] = saved
            for time_ms in self._timer_times(span, fired=fired):
                timers[key, (time_ms, window)] = None
            if open_windows is not None:
                open_windows.setdefault(key, []).append(window)

    def _timer_times(self, span: TimeSpan, *, fired: bool) -> set[int]:
        """Return when a window fires, unless it has fired, and when it is over."""
        last = span.end_ms - 1
        over = min(last + self._lateness_ms, MAX_TIMESTAMP) if self._event_time else last
        return {time_ms for time_ms in (last if not fired else over, over) if time_ms != MAX_TIMESTAMP}


def _table(tables: RestoredTables, info: StateInfo) -> dict[Any, Any]:
    return tables.setdefault(info.name, RestoredTable(info, {})).entries
