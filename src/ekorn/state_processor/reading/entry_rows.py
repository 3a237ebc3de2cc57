"""Entries of keyed state as rows in the stored form, and made from rows again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ekorn.errors import ConfigurationError, CorruptFileError, StateError, preview
from ekorn.state.evolution.pickled_classes import loads
from ekorn.state.snapshots import StateInfo
from ekorn.state_processor.entry_columns import check_text, checked_columns
from ekorn.state_processor.reading.entries import address_of, pieces_of
from ekorn.state_processor.reading.state_rows import StateTable, group_of
from ekorn.state_processor.reading.stored_savepoint import StoredOperator
from ekorn.state_processor.stand_ins import missing_classes_allowed, stand_ins_importable
from ekorn.types.by_value import dumps
from ekorn.types.data_types import DataTypes, RowType, VarBinaryType

__all__ = ["Entry", "EntryRows", "StoredRows", "rows_of_entries"]


# -------------------------------------------------------------------------------------------------------------- reading


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


# -------------------------------------------------------------------------------------------------------------- writing


class Entry(NamedTuple):
    """One entry of keyed state, as tables have it."""

    info: StateInfo
    key: Any  # the key as the program gave it
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
            StateError: A value is null, or does not fit the state.
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
                "ekorn-state needs the option baseSavepoint beside storedForm: a savepoint with the operator "
                "defines the kinds and types of its states"
            )
        types = checked_columns(row_type, "all keyed state", needed=("state", "entry"), optional=("key_group",))
        check_text("state", types["state"])
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
