"""Windows that are kept in one form made windows that are kept in another, while they are restored.

On the heap, windows with their default trigger are kept tightly: in panes, slices or sessions. In RocksDB every window
is kept as contents with timers. A checkpoint taken with one backend restores in the other, so what is restored in the
form of the one becomes the form of the other: entry by entry, since both forms keep contents alike.

    contents     {(key, window): contents}
    timers       {(key, (time, window)): None}: one at the end of a window that has yet to fire, one when it is over
    open         {key: [window, ...]}, where windows merge
    panes        {(key, window): (contents, has fired)}
    slices       {(key, slice): (contents, numbers)}, which several windows share; they become panes first
    sessions     {key: [(start, end, contents, has fired), ...]}
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, assert_never

from tamias.graph.specs import AggregateContents, FoldContents, ListContents, ReduceContents, WindowContents, WindowSpec
from tamias.operators.operator import RuntimeOperator
from tamias.operators.windows.combinable import slice_contents_for
from tamias.operators.windows.layouts import IN_ROCKSDB, PANES, SESSIONS, SLICES
from tamias.operators.windows.progress import SavedProgress, progress_of
from tamias.operators.windows.slice_arithmetic import Slicing
from tamias.operators.windows.slice_table import SliceTable
from tamias.state.keyed_backend import RestoredTable, RestoredTables
from tamias.state.snapshots import WINDOWED, StateInfo
from tamias.types.time_bounds import MAX_TIMESTAMP

_OPEN = "_window/open"
_TIMERS = {True: "_window/timers/event", False: "_window/timers/processing"}  # by event time or not

Kept = tuple[Any, tuple[int, int], Any, bool]
"""A key, its window, what is kept of it, and whether it has fired."""


def to_general(tables: RestoredTables, spec: WindowSpec) -> None:
    """Let contents with timers take the place of panes or sessions."""
    for name, unfold in ((PANES, _in_panes), (SESSIONS, _in_sessions)):
        if name not in tables:
            continue
        info, entries = tables.pop(name)
        contents = _table(tables, replace(info, name=IN_ROCKSDB, kind=WINDOWED + _kind(spec.contents)))
        timers = _table(tables, StateInfo(_TIMERS[spec.assigner.is_event_time()], "timers"))
        for key, window, kept, fired in unfold(entries):
            contents[key, window] = kept
            for time_ms in _times(spec, window, fired=fired):
                timers[key, (time_ms, window)] = None
        if name == SESSIONS:
            of_key = _table(tables, StateInfo(_OPEN, "list"))
            of_key.update({key: [(start, end) for start, end, *_ in sessions] for key, sessions in entries.items()})


def out_of_slices(tables: RestoredTables, spec: WindowSpec, operator: RuntimeOperator) -> None:
    """Let panes take the place of slices: each window gets what its slices make together.

    Slices of other windows, or of functions whose results this one's are not like, are left: `check_layout` says so.
    """
    assigner: Any = spec.assigner
    contents = slice_contents_for(spec.contents, operator.operator.input_type)
    if SLICES not in tables or contents is None or not hasattr(assigner, "slide"):
        return
    slicing, (info, entries) = Slicing(assigner.size, assigner.slide, assigner.offset), tables[SLICES]
    progress, groups = SavedProgress(operator.states), operator.environment.vertex.max_parallelism
    saved = progress.of(operator.key_groups())
    if any(p.size_ms != assigner.size for p in saved) or not all(slicing.has(*address[1]) for address in entries):
        return
    progress.forget()
    del tables[SLICES]
    slices = SliceTable(SLICES, slicing, contents, tracked=False)
    slices.load(entries)
    panes = _table(tables, replace(info, name=PANES, kind=f"{WINDOWED}panes"))
    for end in slices.windows():
        window = (end - assigner.size, end)
        for key in slices.keys_of(end):
            had = progress_of(key, saved, groups)
            if had.gone_ms < end and (key, window) not in panes:
                frozen = contents.contents.freeze(slices.contents_of(key, end))
                panes[key, window] = (frozen, end <= had.fired_ms)


def to_panes(tables: RestoredTables, spec: WindowSpec) -> None:
    """Let panes take the place of contents with timers."""
    if IN_ROCKSDB in tables:
        info = tables[IN_ROCKSDB][0]
        panes = _table(tables, replace(info, name=PANES, kind=f"{WINDOWED}panes"))
        for key, window, kept, fired in _in_general(tables, spec):
            panes[key, window] = (kept, fired)


def to_sessions(tables: RestoredTables, spec: WindowSpec) -> None:
    """Let sessions take the place of contents with timers."""
    if IN_ROCKSDB in tables:
        info = tables[IN_ROCKSDB][0]
        sessions = _table(tables, replace(info, name=SESSIONS, kind="sessions"))
        for key, window, kept, fired in _in_general(tables, spec):
            sessions.setdefault(key, []).append((*window, kept, fired))
        tables.pop(_OPEN, None)


def _table(tables: RestoredTables, info: StateInfo) -> dict[Any, Any]:
    return tables.setdefault(info.name, RestoredTable(info, {})).entries


def _in_panes(entries: dict[Any, Any]) -> Iterator[Kept]:
    for (key, window), (kept, fired) in entries.items():
        yield key, window, kept, fired


def _in_sessions(entries: dict[Any, Any]) -> Iterator[Kept]:
    for key, sessions in entries.items():
        for start, end, kept, fired in sessions:
            yield key, (start, end), kept, fired


def _in_general(tables: RestoredTables, spec: WindowSpec) -> Iterator[Kept]:
    """Take contents and timers out. With the default trigger, what has no timer at its end has fired."""
    _, contents = tables.pop(IN_ROCKSDB)
    timers = {name: tables.pop(name)[1] for name in _TIMERS.values() if name in tables}
    waiting = timers.get(_TIMERS[True], {})
    for (key, window), kept in contents.items():
        fired = spec.assigner.is_event_time() and (key, (window[1] - 1, window)) not in waiting
        yield key, window, kept, fired


def _times(spec: WindowSpec, window: tuple[int, int], *, fired: bool) -> set[int]:
    """When something is to be done about a window: when it fires, unless it has, and when it is over."""
    last = window[1] - 1
    over = min(last + spec.lateness_ms, MAX_TIMESTAMP) if spec.assigner.is_event_time() else last
    return {time_ms for time_ms in (last if not fired else over, over) if time_ms != MAX_TIMESTAMP}


def _kind(contents: WindowContents) -> str:
    match contents:
        case ListContents():
            return "list"
        case ReduceContents():
            return "reducing"
        case AggregateContents():
            return "aggregating"
        case FoldContents():
            return "folding"
        case _:
            assert_never(contents)
