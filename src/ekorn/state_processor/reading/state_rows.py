"""Keyed state as rows: one row for each key with a column for each state, or one row for each entry of a state."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

from ekorn.errors import InvalidKeyError, StateError, preview
from ekorn.keygroups import key_group, user_key
from ekorn.state.declared import Described
from ekorn.state.keyed_backend import RestoredTables
from ekorn.state.kinds import KINDS, bare_kind
from ekorn.state.snapshots import StateInfo
from ekorn.state_processor.columns import declared_column, fitted, inferred_column
from ekorn.state_processor.entry_columns import columns_of
from ekorn.state_processor.reading.entries import Values, address_of, pieces_of
from ekorn.state_processor.reading.stored_savepoint import StoredOperator
from ekorn.state_processor.tools.savepoint_inspection import compared_ranges, differences_in
from ekorn.types.data_type import DataType
from ekorn.types.data_types import DataTypes, RowField, RowType, VarCharType

__all__ = [
    "EVENT_TIME",
    "PROCESSING_TIME",
    "KeyRow",
    "StateTable",
    "group_of",
    "key_rows",
    "rows_by_key",
    "rows_of_changes",
    "rows_of_state",
    "rows_of_timers",
    "states_per_key",
]

EVENT_TIME, PROCESSING_TIME = "event", "processing"
_SAMPLED_ROWS = 1000
_TEXT = DataTypes.STRING()


class KeyRow(NamedTuple):
    """One key, and the values of its states by name. States of windows and timers are left out."""

    key: Any
    values: dict[str, Any]


def states_per_key(stored: StoredOperator) -> list[StateInfo]:
    """Return the keyed states of the program: no timers, and nothing of windows."""
    infos = [info for info in stored.keyed_states if not info.namespaced and info.kind != "sessions"]
    return [info for info in infos if not info.name.startswith("_")]


def key_rows(stored: StoredOperator, part: int) -> Iterator[KeyRow]:
    """Yield a row for each key of a part that has an entry in one of the program's states."""
    codecs = {info.name: Values(info) for info in states_per_key(stored)}
    for tables in pieces_of(stored, stored.parts()[part]):
        mine = {name: tables[name].entries for name in codecs if name in tables}
        for key in dict.fromkeys(key for entries in mine.values() for key in entries):
            values = {name: codecs[name].load(entries[key]) for name, entries in mine.items() if key in entries}
            yield KeyRow(user_key(key), values)


# ------------------------------------------------------------------------------------------------------------- tables


ReadRows = Callable[[int], Iterator[tuple[Any, ...]]]
"""Yields the rows of a part, as values that are not fitted to columns yet."""


@dataclass(frozen=True)
class StateTable:
    """A table of state: its columns, and the rows of each part.

    Attributes:
        stored: The operator.
        names: The names of the columns.
        declared: The types of the columns; None for columns whose values decide.
        read: The rows of a part.
        part_count: The number of parts that can be read at the same time.
    """

    stored: StoredOperator
    names: tuple[str, ...]
    declared: tuple[DataType | None, ...]
    read: ReadRows
    part_count: int

    def row_type(self) -> RowType:
        """Return the types of the columns. Columns without a declared type are inferred from the first rows."""
        types = list(self.declared)
        unknown = [number for number, each in enumerate(types) if each is None]
        if unknown:
            sample = list(islice(self._all_rows(), _SAMPLED_ROWS))
            for number in unknown:
                types[number] = inferred_column(row[number] for row in sample)
        return RowType([RowField(name, each) for name, each in zip(self.names, types, strict=True) if each is not None])

    def _all_rows(self) -> Iterator[tuple[Any, ...]]:
        for part in range(self.part_count):
            yield from self.read(part)

    def rows(self, part: int, row_type: RowType) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a part in the types of the columns.

        Raises:
            StateError: A value does not fit its column.
        """
        positions = [self.names.index(name) for name in row_type.field_names() if name in self.names]
        if len(positions) != len(row_type.field_names()):
            unknown = [name for name in row_type.field_names() if name not in self.names]
            raise StateError(f"operator {self.stored.label} has no column {unknown[0]!r}; it has {list(self.names)}")
        types = row_type.field_types()
        for row in self.read(part):
            try:
                yield tuple([fitted(row[at], column) for at, column in zip(positions, types, strict=True)])
            except (ValueError, ArithmeticError) as error:
                raise StateError(
                    f"operator {self.stored.label}: {error}, the type of its column, in the row of key "
                    f"{preview(row[0])}; give the columns a schema, in which text takes every value"
                ) from None


def rows_by_key(stored: StoredOperator) -> StateTable:
    """Return the table with one row for each key and a column for each state."""
    infos = states_per_key(stored)
    if not infos:
        others = ", ".join(repr(info.name) for info in stored.metadata.states) or "none"
        raise StateError(
            f"operator {stored.label} has no keyed state declared by its program, so it has no rows by key: read one "
            f"of its other states by name: {others}"
        )

    def read(part: int) -> Iterator[tuple[Any, ...]]:
        for key, values in key_rows(stored, part):
            yield (key, *(values.get(info.name) for info in infos))

    columns = [_value_column(info) for info in infos]
    return StateTable(
        stored, ("key", *(info.name for info in infos)), (_key_column(infos[0]), *columns), read, len(stored.parts())
    )


def rows_of_state(stored: StoredOperator, name: str, *, flat: bool = True) -> StateTable:
    """Return the table with one row for each entry of a state.

    The columns are `key`, `namespace` (text: the window), the value (`value`, or `list_element`, or `user_map_key` and
    `user_map_value`), `ttl_ms` (the last access of an entry that expires) and `key_group`. Without `flat`, lists and
    maps are one row each, in `list_value` or `map_value`.
    """
    info = stored.state(name)
    if info.kind == "timers":
        raise StateError(f"{name!r} of operator {stored.label} holds timers: read them as registered timers")
    columns, of_program = columns_of(info.kind), bare_kind(info.kind) in KINDS
    values, described = Values(info), Described.decode(info.schema, info.name)
    one = declared_column(described.value, described.classes) if of_program else None
    of_windows = columns.collection is list and name.startswith("_window/")
    if of_windows and one is not None and _has_times(stored, name, values, one):
        one = None
    map_key = declared_column(described.map_key, described.key_classes)
    groups = stored.metadata.max_parallelism

    def read(part: int) -> Iterator[tuple[Any, ...]]:
        for tables in pieces_of(stored, stored.parts()[part]):
            for at, kept in _entries(tables, name):
                address = address_of(info, at)
                window = None if address.namespace is None else repr(address.namespace)
                group = group_of(address.key, groups)
                value, stamps = values.load(kept), values.stamps(kept)
                for *shown, stamp in columns.rows(value, stamps) if flat else [(value, _oldest(stamps))]:
                    yield (address.key, window, *shown, stamp, group)

    if flat:
        middle = dict(zip(columns.flat, columns.flat_types(one, map_key), strict=True))
    else:
        middle = {columns.whole: columns.whole_type(one, map_key)}
    names = ("key", "namespace", *middle, "ttl_ms", "key_group")
    types = (_key_column(info), DataTypes.STRING(), *middle.values(), DataTypes.BIGINT(), DataTypes.INT())
    return StateTable(stored, names, types, read, len(stored.parts()))


def _has_times(stored: StoredOperator, name: str, values: Values, one: DataType) -> bool:
    """Return whether the records of windows have their timestamps beside them, which an evictor needs."""
    for part in stored.parts():
        for tables in pieces_of(stored, part):
            for _, kept in _entries(tables, name):
                for record in values.load(kept):
                    return not _is_of(record, one)
    return False


def _is_of(value: Any, column: DataType) -> bool:
    try:
        fitted(value, column)
    except (ValueError, ArithmeticError):
        return False
    return not isinstance(column, VarCharType) or isinstance(value, str)


def group_of(key: Any, max_parallelism: int) -> int | None:
    """Return the key group of a key; None if its class cannot be imported."""
    try:
        return int(key_group(key, max_parallelism))
    except InvalidKeyError:  # only the class of the key knows its hash
        return None


def _oldest(stamps: Any) -> int | None:
    if isinstance(stamps, dict):
        stamps = list(stamps.values())
    return min(stamps, default=None) if isinstance(stamps, list) else stamps


def rows_of_timers(stored: StoredOperator) -> StateTable:
    """Return the table of registered timers: `key`, `time_domain`, `timestamp_ms`, `namespace` (text: the window)."""
    infos = [info for info in stored.keyed_states if info.kind == "timers"]

    def read(part: int) -> Iterator[tuple[Any, ...]]:
        for tables in pieces_of(stored, stored.parts()[part]):
            for info in infos:
                domain = EVENT_TIME if info.name.endswith("/event") else PROCESSING_TIME
                for at, _ in _entries(tables, info.name):
                    key, namespace = address_of(info, at)
                    time_ms, window = namespace if isinstance(namespace, tuple) else (namespace, None)
                    yield key, domain, time_ms, None if window is None else repr(window)

    key_column = _key_column(infos[0]) if infos else DataTypes.STRING()
    types = (key_column, DataTypes.STRING(), DataTypes.BIGINT(), DataTypes.STRING())
    return StateTable(stored, ("key", "time_domain", "timestamp_ms", "namespace"), types, read, len(stored.parts()))


def rows_of_changes(before: StoredOperator, after: StoredOperator, name: str) -> StateTable:
    """Return the table of the entries of a state that were added, removed or changed between two savepoints.

    The columns are `change_type` (added, removed or changed), `key`, `namespace` (text: the window), `previous` and
    `value`. Lists and maps are compared as a whole.
    """
    info = after.state(name)
    ranges = compared_ranges(before, after)

    def read(part: int) -> Iterator[tuple[Any, ...]]:
        for difference in differences_in(before, after, ranges[part]):
            if difference.state.name == name:
                key, namespace = difference.address
                window = None if namespace is None else repr(namespace)
                yield key, difference.change, window, difference.before, difference.after

    column = _value_column(info) if not info.namespaced and info.kind != "sessions" else None
    names = ("key", "change_type", "namespace", "previous", "value")
    return StateTable(after, names, (_key_column(info), _TEXT, _TEXT, column, column), read, len(ranges))


def _entries(tables: RestoredTables, name: str) -> Sequence[tuple[Any, Any]]:
    return list(tables[name].entries.items()) if name in tables else []


def _key_column(info: StateInfo) -> DataType | None:
    described = Described.decode(info.schema, info.name)
    return declared_column(described.key, described.key_classes)


def _value_column(info: StateInfo) -> DataType | None:
    described = Described.decode(info.schema, info.name)
    one = declared_column(described.value, described.classes)
    map_key = declared_column(described.map_key, described.key_classes)
    return columns_of(info.kind).whole_type(one, map_key)
