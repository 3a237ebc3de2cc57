"""Keyed state made from the rows in which it is read: one state whole, windows included, or the timers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from ekorn.errors import ConfigurationError, StateError, preview
from ekorn.keygroups import state_key
from ekorn.operators.windows.saved_windows import PANES, SESSIONS, SLICES
from ekorn.state.declared import Described, declare
from ekorn.state.evolution.type_descriptions import PICKLED, Schema, describe
from ekorn.state.kinds import KINDS, bare_kind, shape_of
from ekorn.state.snapshots import WINDOWED, StateInfo
from ekorn.state_processor.entry_columns import (
    COLLECTIONS,
    check_text,
    check_whole,
    checked_columns,
    columns_of,
    element_of,
    window_of,
)
from ekorn.state_processor.reading.entries import Values
from ekorn.state_processor.reading.entry_rows import Entry, EntryRows
from ekorn.state_processor.reading.state_rows import EVENT_TIME, PROCESSING_TIME
from ekorn.state_processor.reading.stored_savepoint import StoredOperator
from ekorn.state_processor.writing.key_state_files import check_key_type
from ekorn.state_processor.writing.written_values import (
    SampledEntry,
    checked_keys,
    from_column,
    sampled_entries,
    to_program,
)
from ekorn.types.data_type import DataType
from ekorn.types.data_type_info import type_info_of
from ekorn.types.data_types import ArrayType, RowType

__all__ = ["StateRows", "TimerRows"]

_DEFAULT_LAYOUTS = {PANES: f"{WINDOWED}panes", SESSIONS: "sessions", SLICES: f"{WINDOWED}slices"}
_WINDOWS = ("panes", "sessions")


class StateRows(EntryRows):
    """Makes the entries of one state that `rows_of_state` has read whole.

    Args:
        name: The state.
        row_type: The columns of the rows.
        before: The operator in the savepoint that the new one is based on, if it has the operator.
        kind: The kind of a state that the operator does not have yet; empty for the one that the columns tell.
        now_ms: The time of the last access, for entries that expire and have none.

    Raises:
        ConfigurationError: There is no such kind of state, or a column is missing, unknown or of another type.
    """

    def __init__(self, name: str, row_type: RowType, before: StoredOperator | None, kind: str, now_ms: int) -> None:
        names = row_type.field_names()
        known = None if before is None else next((i for i in before.keyed_states if i.name == name), None)
        self.replaced = frozenset([name])
        self._now_ms = now_ms
        kind = _checked_kind(name, names, known, kind)
        self._kind = bare_kind(kind)
        self._namespaced = kind.startswith(WINDOWED)
        self._columns = columns_of(kind)
        self._column = self._columns.whole
        if any(each.flat[0] in names for each in COLLECTIONS.values()):
            raise ConfigurationError(
                f"rows of single elements have no order: read state {name!r} with flattenCollectionTypes false, "
                f"and write the column {self._column}"
            )
        needed = ("key", "namespace", self._column) if self._namespaced else ("key", self._column)
        optional = ("ttl_ms", "key_group", *(() if self._namespaced else ("namespace",)))
        types = checked_columns(row_type, f"{kind} state", needed=needed, optional=optional)
        for column in ("ttl_ms", "key_group"):
            if column in types:
                check_whole(column, types[column])
        if "namespace" in types:
            check_text("namespace", types["namespace"])
        check_key_type("key", types["key"])
        self._types = types
        sample = [] if before is None or known is None else sampled_entries(before, known)
        self._key = PICKLED
        if before is not None:
            states = [known] if known is not None else before.keyed_states
            self._key = checked_keys(before, states, types)
        self._is_list = False  # whether windows hold a list
        if self._kind in _WINDOWS:
            one, self._is_list = self._contents_of(types["value"], sample)
            info = known or _described_as(StateInfo(name, kind), one)
        else:
            info = known or _declared(name, kind, types[self._column])
        self._check_values(info, sample)
        self._info = info

    @cached_property
    def _values(self) -> Values:  # created in each task
        return Values(self._info)

    def _check_values(self, info: StateInfo, sample: list[SampledEntry]) -> None:
        described, column = Described.decode(info.schema, info.name), self._types[self._column]
        self._map_key: Schema = PICKLED
        what, values = repr(self._column), [each.value for each in sample]
        if self._kind in _WINDOWS:
            one, _ = self._contents_of(column, sample)
            listed = [pane for value in values for pane in value] if self._kind == "sessions" else values
            values = [p.contents for p in listed]
            if self._is_list:
                values = [record for records in values for record in records]
        else:
            one, map_key = self._columns.parts(column)
            if map_key is not None:
                keys = [key for value in values for key in self._columns.map_keys(value)]
                self._map_key = to_program(what, map_key, described.map_key, described.key_classes, keys)
            values = [each for value in values for each in self._columns.values(value)]
        self._value = to_program(what, one, described.value, described.classes, values)

    def _contents_of(self, column: DataType, sample: list[SampledEntry]) -> tuple[DataType, bool]:
        """Return the type of what a window holds, and whether it holds a list of it."""
        fields = ["start_ms", "end_ms"] if self._kind == "sessions" else []
        wanted = [*fields, "contents", "has_fired"]
        struct = column.element_type if isinstance(column, ArrayType) and self._kind == "sessions" else column
        if not isinstance(struct, RowType) or struct.field_names() != wanted:
            text = f"struct<{', '.join(wanted)}>"
            raise ConfigurationError(
                f"the column 'value' is {column}: windows are {f'array<{text}>' if fields else text}"
            )
        contents = struct.field_types()[wanted.index("contents")]
        held = [window for each in sample for window in (each.kept if fields else [each.kept])]
        of_lists = [isinstance(window[len(fields)], list) for window in held]
        is_list = of_lists[0] if of_lists else isinstance(contents, ArrayType)
        return (element_of("value.contents", contents) if is_list else contents), is_list

    def entry(self, row: Mapping[str, Any]) -> Entry:
        name, namespace, value = self._info.name, row.get("namespace"), row[self._column]
        absent = next((column for column in ("key", self._column) if row[column] is None), None)
        if absent is None and self._namespaced and namespace is None:
            absent = "namespace"
        if absent is not None:
            raise StateError(f"state {name!r}: the column {absent!r} of row {preview(dict(row))} is null")
        if namespace is not None and not self._namespaced:
            raise StateError(f"state {name!r} has no windows, and row {preview(dict(row))} has the window {namespace}")
        key = from_column(row["key"], self._key)
        at: Any = state_key(key)
        address = at if namespace is None else (at, window_of(namespace))
        return Entry(self._info, key, address, self._kept(value, row))

    def _kept(self, value: Any, row: Mapping[str, Any]) -> Any:
        values, of = self._values, self._value
        stamp = row.get("ttl_ms")
        if stamp is not None and not values.info.ttl:
            raise StateError(f"state {values.info.name!r} does not expire, and row {preview(dict(row))} has a ttl_ms")
        match self._kind:
            case "panes":
                return self._window_of(*value)
            case "sessions":
                return [(start, end, *self._window_of(contents, fired)) for start, end, contents, fired in value]
        shape, of_key = shape_of(self._kind), self._map_key
        made = shape.converter(lambda each: from_column(each, of), lambda key: from_column(key, of_key))(value)
        stamps = None if stamp is None else shape.converter(lambda each: stamp)(made)
        return values.store(made, stamps, self._now_ms)

    def _window_of(self, contents: Any, has_fired: bool) -> tuple[Any, bool]:
        if contents is None or has_fired is None:
            raise StateError(f"state {self._values.info.name!r}: a window needs contents and has_fired, which are null")
        of = self._value
        made = [from_column(each, of) for each in contents] if self._is_list else from_column(contents, of)
        return self._values.store_contents(made, is_list=self._is_list), has_fired

    def infos(self) -> list[StateInfo]:
        return [self._values.saved_as()]


# ------------------------------------------------------------------------------------------------------------ the state


def _checked_kind(name: str, columns: Sequence[str], known: StateInfo | None, kind: str) -> str:
    """Return the kind of a state."""
    if known is not None:
        if kind and kind != known.kind:
            raise ConfigurationError(f"state {name!r} is of the kind {known.kind}, not {kind}: leave out stateKind")
        kind = known.kind
    elif not kind:
        of_column = {columns_of(each).whole: each for each in reversed(KINDS) if KINDS[each].shape in COLLECTIONS}
        kind = _DEFAULT_LAYOUTS.get(name) or next((of_column[c] for c in columns if c in of_column), "value")
    if kind == "timers":
        raise ConfigurationError(f"{name!r} holds timers: write them with writeRegisteredTimers")
    if kind == _DEFAULT_LAYOUTS[SLICES]:
        raise ConfigurationError(
            f"{name!r} holds slices, which several windows share: read and write them with storedForm"
        )
    of_runtime = {PANES: _DEFAULT_LAYOUTS[PANES], SESSIONS: _DEFAULT_LAYOUTS[SESSIONS]}
    if name in of_runtime:
        possible = [of_runtime[name]]
    elif known is not None:
        possible = [known.kind]
    else:
        possible = [*KINDS, *(WINDOWED + each for each in KINDS)]
        if name.startswith("_"):
            raise ConfigurationError(
                f"the operator has no state {name!r}, and a new state of the runtime is one of "
                f"{', '.join(of_runtime)}: base the write on a savepoint that has it"
            )
    if kind not in possible:
        raise ConfigurationError(f"state {name!r} cannot be of the kind {kind!r}: it is {' or '.join(possible)}")
    return kind


def _declared(name: str, kind: str, column: DataType) -> StateInfo:
    """Return the description of a state that the operator does not have yet, with the types of its columns."""
    return declare(columns_of(kind).descriptor(name, column), kind).info


def _described_as(info: StateInfo, column: DataType) -> StateInfo:
    """Return the description of windows that the operator does not have yet."""
    type_info = type_info_of(column)
    return replace(info, type_text=str(type_info), schema=Described(value=describe(type_info)).encode())


# --------------------------------------------------------------------------------------------------------------- timers


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
                f"the row {preview(dict(row))} is not a timer: it needs a key, a timestamp_ms, and the time_domain "
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
