"""Timers made from the rows in which they are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ekorn.errors import ConfigurationError, StateError, preview
from ekorn.keygroups import state_key
from ekorn.operators.windows.saved_windows import PANES, SESSIONS, SLICES
from ekorn.state.evolution.type_descriptions import PICKLED, Schema
from ekorn.state.snapshots import StateInfo
from ekorn.state_processor.entry_columns import check_text, check_whole, checked_columns, window_of
from ekorn.state_processor.reading.entry_rows import Entry, EntryRows
from ekorn.state_processor.reading.sampled_entries import checked_keys
from ekorn.state_processor.reading.state_rows import EVENT_TIME, PROCESSING_TIME
from ekorn.state_processor.reading.stored_savepoint import StoredOperator
from ekorn.state_processor.writing.key_state_files import check_key_type
from ekorn.state_processor.writing.written_values import from_column
from ekorn.types.data_types import RowType

__all__ = ["TimerRows"]

_WITHOUT_TIMERS = (PANES, SESSIONS, SLICES)


class TimerRows(EntryRows):
    """Makes the timers that `rows_of_timers` has read.

    Raises:
        ConfigurationError: A column is missing, unknown or of another type, or the operator keeps no timers.
    """

    def __init__(self, row_type: RowType, before: StoredOperator | None) -> None:
        needed = ("key", "time_domain", "timestamp_ms")
        types = checked_columns(row_type, "timers", needed=needed, optional=("namespace",))
        check_text("time_domain", types["time_domain"])
        check_whole("timestamp_ms", types["timestamp_ms"])
        if "namespace" in types:
            check_text("namespace", types["namespace"])
        self._prefix: str | None = None
        self._key: Schema = PICKLED
        self._known: dict[str, StateInfo] = {}
        self._written: dict[str, StateInfo] = {}
        check_key_type("key", types["key"])
        if before is not None:
            states = before.keyed_states
            without = [info.name for info in states if info.name in _WITHOUT_TIMERS]
            if without:
                raise ConfigurationError(
                    f"operator {before.label} has windows in {without[0]!r}, which fire at their end without timers: "
                    "write this state, in which has_fired says which windows have fired"
                )
            self._known = {info.name: info for info in states if info.kind == "timers"}
            self._prefix = _timer_prefix(states)
            self._key = checked_keys(before, [*self._known.values()] or states, types)
        self.replaced = frozenset(self._known)

    def entry(self, row: Mapping[str, Any]) -> Entry:
        domain, time_ms, namespace = row["time_domain"], row["timestamp_ms"], row.get("namespace")
        if row["key"] is None or time_ms is None or domain not in (EVENT_TIME, PROCESSING_TIME):
            raise StateError(
                f"the row {preview(dict(row))} is no timer: it needs a key, a timestamp_ms, and the time_domain "
                f"{EVENT_TIME!r} or {PROCESSING_TIME!r}"
            )
        prefix = self._prefix or ("_timers" if namespace is None else "_window/timers")
        if (prefix == "_timers") is not (namespace is None):
            is_one = "has no windows, so the namespace of its timers is null"
            raise StateError(
                f"the timer {preview(dict(row))} does not fit the operator, which "
                + (is_one if prefix == "_timers" else "has windows, so a timer has its window as the namespace")
            )
        name = f"{prefix}/{domain}"
        info = self._written.setdefault(name, self._known.get(name) or StateInfo(name, "timers"))
        key = from_column(row["key"], self._key)
        at: Any = time_ms if namespace is None else (time_ms, window_of(namespace))
        return Entry(info, key, (state_key(key), at), None)

    def infos(self) -> list[StateInfo]:
        return list(self._written.values())


def _timer_prefix(states: Sequence[StateInfo]) -> str:
    for info in states:
        if info.kind == "timers":
            return info.name.rpartition("/")[0]
    roots = {info.name.partition("/")[0] for info in states}
    return next((f"{root}/timers" for root in ("window_of", "_join") if root in roots), "_timers")
