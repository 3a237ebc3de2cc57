"""Entries of keyed state as rows, and made from rows again: all of an operator, its timers, or one of its states."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

from tamias.errors import ConfigurationError, CorruptFileError, StateError, preview
from tamias.functions.state_descriptors import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from tamias.keygroups import state_key
from tamias.operators.windows.saved_windows import PANES, SESSIONS, SLICES
from tamias.state.declared import Described, declare
from tamias.state.evolution.pickled_classes import loads
from tamias.state.evolution.type_descriptions import PICKLED, Schema, describe
from tamias.state.snapshots import WINDOWED, StateInfo
from tamias.state_processor.entries import Values, address_of, pieces_of
from tamias.state_processor.key_state_files import check_key_type
from tamias.state_processor.stand_ins import missing_classes_allowed, stand_ins_importable
from tamias.state_processor.state_rows import EVENT_TIME, PROCESSING_TIME, StateTable, group_of
from tamias.state_processor.stored_savepoint import StoredOperator
from tamias.state_processor.written_values import from_column, to_program
from tamias.types.by_value import dumps
from tamias.types.data_type import DataType
from tamias.types.data_type_info import type_info_of
from tamias.types.data_types import ArrayType, DataTypes, IntegralType, MapType, RowType, VarBinaryType, VarCharType

__all__ = ["Entry", "EntryRows", "StateRows", "StoredRows", "TimerRows", "rows_of_entries"]

_SAMPLED_ENTRIES = 1000
_KINDS = ("value", "list", "map", "reducing", "aggregating", "folding")
_DEFAULT_LAYOUTS = {PANES: f"{WINDOWED}panes", SESSIONS: "sessions", SLICES: f"{WINDOWED}slices"}
_WINDOWS = ("panes", "sessions")
_VALUE_COLUMNS = {"list": "list_value", "map": "map_value"}


# ------------------------------------------------------------------------------------------------------------ reading


def rows_of_entries(stored: StoredOperator) -> StateTable:
    """Return the table of all entries of an operator's keyed state: of its program, of windows and of timers.

    The columns are `state`, `key_group` and `entry`, the bytes from which `StoredRows` makes the same entry again.
    """

    def read(part: int) -> Iterator[tuple[Any, ...]]:
        for tables in pieces_of(stored, stored.parts()[part]):
            for info, entries in tables.values():
                for at, kept in entries.items():
                    with stand_ins_importable():  # keys of missing classes are pickled again under their names
                        entry = dumps((at, kept))
                    yield info.name, group_of(address_of(info, at).key, stored.metadata.max_parallelism), entry

    types = (DataTypes.STRING(), DataTypes.INT(), DataTypes.BYTES())
    return StateTable(stored, ("state", "key_group", "entry"), types, read, len(stored.parts()))


# ------------------------------------------------------------------------------------------------------------ writing


class Entry(NamedTuple):
    """One entry of keyed state, as tables have it."""

    info: StateInfo
    key: Any  # of the program
    address: Any
    kept: Any


class EntryRows(ABC):
    """Makes entries of keyed state from rows.

    Attributes:
        replaced: The states of the operator in the base savepoint that the entries take the place of; None for all.
    """

    replaced: frozenset[str] | None = None

    @abstractmethod
    def entry(self, row: Mapping[str, Any]) -> Entry:
        """Return the entry of a row.

        Raises:
            StateError: A value is null, or is none of the state.
        """

    @abstractmethod
    def infos(self) -> list[StateInfo]:
        """Return the descriptions of the states that have been written, with the classes of their values."""


class StoredRows(EntryRows):
    """Makes the entries that `rows_of_entries` has read.

    Raises:
        ConfigurationError: A column is missing, unknown or of another type.
    """

    def __init__(self, row_type: RowType, before: StoredOperator | None) -> None:
        if before is None:
            raise ConfigurationError(
                "tamias-state needs the option baseSavepoint beside storedForm: a savepoint that has the operator "
                "tells of which kinds and types its states are"
            )
        types = _checked_columns(row_type, "all keyed state", needed=("state", "entry"), optional=("key_group",))
        _check_text("state", types["state"])
        if not isinstance(types["entry"], VarBinaryType):
            raise ConfigurationError(f"the column 'entry' is {types['entry']}, and its values must be bytes")
        self._infos = {info.name: info for info in before.keyed_states}
        self._label = before.label

    def entry(self, row: Mapping[str, Any]) -> Entry:
        info = self._infos.get(row["state"])
        if info is None:
            has = ", ".join(map(repr, sorted(self._infos))) or "none"
            raise StateError(f"operator {self._label} has no keyed state {row['state']!r}; it has {has}")
        if row["entry"] is None:
            raise StateError(f"state {info.name!r}: the column 'entry' of a row is null")
        with missing_classes_allowed():
            found = loads(row["entry"], f"an entry of state {info.name!r}")
        if not isinstance(found, tuple) or len(found) != 2:
            raise CorruptFileError(f"an entry of state {info.name!r}", preview(found), "an address and a value")
        return Entry(info, address_of(info, found[0]).key, *found)

    def infos(self) -> list[StateInfo]:
        return list(self._infos.values())


class TimerRows(EntryRows):
    """Makes the timers that `rows_of_timers` has read.

    Raises:
        ConfigurationError: A column is missing, unknown or of another type, or the operator keeps no timers.
    """

    def __init__(self, row_type: RowType, before: StoredOperator | None) -> None:
        needed = ("key", "time_domain", "timestamp_ms")
        types = _checked_columns(row_type, "timers", needed=needed, optional=("namespace",))
        _check_text("time_domain", types["time_domain"])
        _check_whole("timestamp_ms", types["timestamp_ms"])
        if "namespace" in types:
            _check_text("namespace", types["namespace"])
        self._prefix: str | None = None
        self._key: Schema = PICKLED
        self._known: dict[str, StateInfo] = {}
        self._written: dict[str, StateInfo] = {}
        check_key_type("key", types["key"])
        if before is not None:
            states = before.keyed_states
            without = [info.name for info in states if info.name in _DEFAULT_LAYOUTS]
            if without:
                raise ConfigurationError(
                    f"operator {before.label} has windows in {without[0]!r}, which fire at their end without timers: "
                    "write this state, in which has_fired says which windows have fired"
                )
            self._known = {info.name: info for info in states if info.kind == "timers"}
            self._prefix = _timer_prefix(states)
            self._key = _checked_keys(before, [*self._known.values()] or states, types)
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
        at: Any = time_ms if namespace is None else (time_ms, _window(namespace))
        return Entry(info, key, (state_key(key), at), None)

    def infos(self) -> list[StateInfo]:
        return list(self._written.values())


def _timer_prefix(states: Sequence[StateInfo]) -> str:
    for info in states:
        if info.kind == "timers":
            return info.name.rpartition("/")[0]
    roots = {info.name.partition("/")[0] for info in states}
    return next((f"{root}/timers" for root in ("_window", "_join") if root in roots), "_timers")


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
        self._kind = kind.removeprefix(WINDOWED)
        self._namespaced = kind.startswith(WINDOWED)
        self._column = _VALUE_COLUMNS.get(self._kind, "value")
        if any(column in names for column in ("list_element", "user_map_key")):
            raise ConfigurationError(
                f"rows of single elements have no order: read state {name!r} with flattenCollectionTypes false, "
                f"and write the column {self._column}"
            )
        needed = ("key", "namespace", self._column) if self._namespaced else ("key", self._column)
        optional = ("ttl_ms", "key_group", *(() if self._namespaced else ("namespace",)))
        types = _checked_columns(row_type, f"{kind} state", needed=needed, optional=optional)
        for column in ("ttl_ms", "key_group"):
            if column in types:
                _check_whole(column, types[column])
        if "namespace" in types:
            _check_text("namespace", types["namespace"])
        check_key_type("key", types["key"])
        self._types = types
        sample = [] if before is None or known is None else _sample(before, known)
        self._key = PICKLED
        if before is not None:
            states = [known] if known is not None else before.keyed_states
            self._key = _checked_keys(before, states, types)
        self._is_list = False  # of the contents of windows
        if self._kind in _WINDOWS:
            one, self._is_list = self._contents_of(types["value"], sample)
            info = known or _described_as(StateInfo(name, kind), one)
        else:
            info = known or _declared(name, kind, types[self._column])
        self._check_values(info, sample)
        self._info = info

    @cached_property
    def _values(self) -> Values:  # made in each task
        return Values(self._info)

    def _check_values(self, info: StateInfo, sample: list[_Sampled]) -> None:
        described, column = Described.decode(info.schema, info.name), self._types[self._column]
        self._map_key: Schema = PICKLED
        what, values = repr(self._column), [each.value for each in sample]
        match self._kind:
            case "list":
                one = _element_of(self._column, column)
                values = [element for value in values for element in value]
            case "map":
                if not isinstance(column, MapType):
                    raise ConfigurationError(f"the column {what} is {column}, and its values must be maps")
                keys = [key for value in values for key in value]
                self._map_key = to_program(what, column.key_type, described.map_key, described.key_classes, keys)
                one, values = column.value_type, [each for value in values for each in value.values()]
            case "panes" | "sessions":
                one, _ = self._contents_of(column, sample)
                listed = [pane for value in values for pane in value] if self._kind == "sessions" else values
                values = [p.contents for p in listed]
                if self._is_list:
                    values = [record for records in values for record in records]
            case _:
                one = column
        self._value = to_program(what, one, described.value, described.classes, values)

    def _contents_of(self, column: DataType, sample: list[_Sampled]) -> tuple[DataType, bool]:
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
        return (_element_of("value.contents", contents) if is_list else contents), is_list

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
        address = at if namespace is None else (at, _window(namespace))
        return Entry(self._info, key, address, self._kept(value, row))

    def _kept(self, value: Any, row: Mapping[str, Any]) -> Any:
        values, of = self._values, self._value
        stamp = row.get("ttl_ms")
        if stamp is not None and not values.info.ttl:
            raise StateError(f"state {values.info.name!r} does not expire, and row {preview(dict(row))} has a ttl_ms")
        match self._kind:
            case "list":
                made: Any = [from_column(each, of) for each in value]
                return values.store(made, None if stamp is None else [stamp] * len(made), self._now_ms)
            case "map":
                made = {from_column(key, self._map_key): from_column(each, of) for key, each in value.items()}
                return values.store(made, None if stamp is None else dict.fromkeys(made, stamp), self._now_ms)
            case "panes":
                return self._window_of(*value)
            case "sessions":
                return [(start, end, *self._window_of(contents, fired)) for start, end, contents, fired in value]
            case _:
                return values.store(from_column(value, of), stamp, self._now_ms)

    def _window_of(self, contents: Any, has_fired: bool) -> tuple[Any, bool]:
        if contents is None or has_fired is None:
            raise StateError(f"state {self._values.info.name!r}: a window needs contents and has_fired, which are null")
        of = self._value
        made = [from_column(each, of) for each in contents] if self._is_list else from_column(contents, of)
        return self._values.store_contents(made, is_list=self._is_list), has_fired

    def infos(self) -> list[StateInfo]:
        return [self._values.saved_as()]


# ------------------------------------------------------------------------------------------------------------- checks


def _checked_columns(
    row_type: RowType, what: str, *, needed: tuple[str, ...], optional: tuple[str, ...]
) -> dict[str, DataType]:
    types = dict(zip(row_type.field_names(), row_type.field_types(), strict=True))
    missing = [column for column in needed if column not in types]
    unknown = [column for column in types if column not in (*needed, *optional)]
    if missing or unknown:
        wrong = f"has no column {missing[0]!r}" if missing else f"has a column {unknown[0]!r}"
        raise ConfigurationError(
            f"the DataFrame {wrong}: rows of {what} have {', '.join(needed)}, and may have {', '.join(optional)}"
        )
    return types


def _check_text(column: str, data_type: DataType) -> None:
    if not isinstance(data_type, VarCharType):
        raise ConfigurationError(f"the column {column!r} is {data_type}, and its values must be text")


def _check_whole(column: str, data_type: DataType) -> None:
    if not isinstance(data_type, IntegralType):
        raise ConfigurationError(f"the column {column!r} is {data_type}, and its values must be whole numbers")


def _element_of(column: str, data_type: DataType) -> DataType:
    if not isinstance(data_type, ArrayType):
        raise ConfigurationError(f"the column {column!r} is {data_type}, and its values must be arrays")
    return data_type.element_type


def _checked_kind(name: str, columns: Sequence[str], known: StateInfo | None, kind: str) -> str:
    """Return the kind of a state."""
    if known is not None:
        if kind and kind != known.kind:
            raise ConfigurationError(f"state {name!r} is of the kind {known.kind}, not {kind}: leave out stateKind")
        kind = known.kind
    elif not kind:
        of_column = {column: each for each, column in _VALUE_COLUMNS.items()}
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
        possible = [*_KINDS, *(WINDOWED + each for each in _KINDS)]
        if name.startswith("_"):
            raise ConfigurationError(
                f"the operator has no state {name!r}, and a new state of the runtime is one of "
                f"{', '.join(of_runtime)}: base the write on a savepoint that has it"
            )
    if kind not in possible:
        raise ConfigurationError(f"state {name!r} cannot be of the kind {kind!r}: it is {' or '.join(possible)}")
    return kind


def _declared(name: str, kind: str, column: DataType) -> StateInfo:
    """Return the description of a state that the operator does not have yet: of the types of its columns."""
    descriptor: Any
    match kind.removeprefix(WINDOWED):
        case "list":
            descriptor = ListStateDescriptor(name, type_info_of(_element_of("list_value", column)))
        case "map" if isinstance(column, MapType):
            descriptor = MapStateDescriptor(name, type_info_of(column.key_type), type_info_of(column.value_type))
        case _:
            descriptor = ValueStateDescriptor(name, type_info_of(column))
    return declare(descriptor, kind).info


def _described_as(info: StateInfo, column: DataType) -> StateInfo:
    """Return the description of windows that the operator does not have yet."""
    type_info = type_info_of(column)
    return replace(info, type_text=str(type_info), schema=Described(value=describe(type_info)).encode())


class _Sampled(NamedTuple):
    """An entry of the savepoint that a write is based on."""

    key: Any
    kept: Any
    value: Any


def _sample(stored: StoredOperator, info: StateInfo) -> list[_Sampled]:
    values = Values(info)
    return [_Sampled(key, kept, values.load(kept)) for key, kept in islice(_entries(stored, info), _SAMPLED_ENTRIES)]


def _entries(stored: StoredOperator, info: StateInfo) -> Iterator[tuple[Any, Any]]:
    for part in stored.parts():
        for tables in pieces_of(stored, part):
            if info.name in tables:
                for at, kept in tables[info.name].entries.items():
                    yield address_of(info, at).key, kept


def _checked_keys(stored: StoredOperator, infos: Sequence[StateInfo], types: Mapping[str, DataType]) -> Schema:
    """Return the description of the keys, after checking that the column makes keys of the operator."""
    described = [Described.decode(info.schema, info.name) for info in infos]
    declared = next((each for each in described if each.key != PICKLED), Described())
    keys = [key for info in infos[:1] for key, _ in islice(_entries(stored, info), _SAMPLED_ENTRIES)]
    return to_program("'key'", types["key"], declared.key, declared.key_classes, keys, keys=True)


def _window(text: str) -> Any:
    """Return the window that a namespace stands for.

    >>> _window("(0, 20)"), _window("()"), _window("7")
    ((0, 20), (), 7)
    """
    try:
        window = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError):
        window = None
    parts = window if isinstance(window, tuple) else (window,)
    if all(type(part) in (int, str, bytes) for part in parts) and not isinstance(window, str):
        return window
    raise StateError(
        f"{text!r} is no window: a window of time is '(start_ms, end_ms)', the global window '()', a window of a count "
        "its number, and a window of a class of the program the bytes of its serializer, as in b'...'"
    )
