"""Writes the keyed state of an operator from rows, outside of a job: files by ranges of key groups."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, NamedTuple

from ekorn.checkpoint.metadata import OperatorMetadata
from ekorn.errors import ConfigurationError, StateError, preview
from ekorn.keygroups import key_group, key_group_range, state_key, subtask_of
from ekorn.state.canonical_format import TableEntries
from ekorn.state.declared import Declaration, declare
from ekorn.state.entry_shapes import itself
from ekorn.state.keyed_backend import write_tables
from ekorn.state.kinds import shape_of
from ekorn.state.snapshots import KeyedFiles, OperatorSnapshot, StateFile, StateInfo
from ekorn.state_processor.entry_columns import columns_for
from ekorn.state_processor.operator_identifier import OperatorIdentifier
from ekorn.state_processor.writing.key_digests import KeyDigests
from ekorn.state_processor.writing.new_savepoint import WrittenFiles
from ekorn.storage.file_store import FileStore
from ekorn.types.data_type import DataType
from ekorn.types.data_types import ArrayType, MapType, RowType

__all__ = ["EntryFiles", "KeyStateFiles", "StatesByColumn", "WrittenRanges", "check_key_type", "operator_metadata"]

_BUFFERED_ENTRIES = 100_000
_RECENT_KEYS = 100_000


class StatesByColumn:
    """The states that the columns of a table stand for.

    Raises:
        ConfigurationError: A column is missing, or cannot be a key or a state.
    """

    def __init__(self, row_type: RowType, key_column: str) -> None:
        names = row_type.field_names()
        if key_column not in names:
            raise ConfigurationError(f"the DataFrame has no column {key_column!r} for the key; it has {names}")
        check_key_type(key_column, row_type.field_types()[names.index(key_column)])
        if len(names) == 1:
            raise ConfigurationError(
                f"the DataFrame has no column besides the key {key_column!r}: every other column is a state"
            )
        for name in names:
            if name.startswith("_") and name != key_column:
                raise ConfigurationError(
                    f"the column {name!r} cannot be a state: names that start with '_' are reserved for the runtime; "
                    "rename the column"
                )
        self._types = {field.name: field.data_type for field in row_type if field.name != key_column}
        self.declared()  # refuses columns that no state can be declared for

    @property
    def infos(self) -> tuple[StateInfo, ...]:
        """The descriptions of the states."""
        return tuple(declared.info for declared in self.declared().values())

    def declared(self) -> dict[str, Declaration]:
        """Return the declaration of the state of each column."""
        return {name: _declared(name, data_type) for name, data_type in self._types.items()}


def check_key_type(column: str, data_type: DataType) -> None:
    """Refuse the type of a column whose values cannot be keys.

    Raises:
        ConfigurationError: The type has maps, which have no hash.
    """
    match data_type:
        case MapType():
            raise ConfigurationError(
                f"the column {column!r} has maps, which cannot be keys of a stream: use a struct, text or a number"
            )
        case ArrayType():
            check_key_type(column, data_type.element_type)
        case RowType():
            for each in data_type.field_types():
                check_key_type(column, each)


def _declared(name: str, data_type: DataType) -> Declaration:
    descriptor = columns_for(data_type).descriptor(name, data_type)
    return declare(descriptor, descriptor.kind)


class WrittenRanges(NamedTuple):
    """The files that one task wrote, by range of key groups: the state, and the digests of the keys."""

    files: dict[int, list[StateFile]]
    digests: dict[int, StateFile]


class RangeFiles:
    """Collects entries of keyed state, and writes them as state files of ranges of key groups."""

    def __init__(
        self,
        files: FileStore,
        *,
        parallelism: int,
        max_parallelism: int,
        hashed: bool,
        buffered_entries: int = _BUFFERED_ENTRIES,
    ) -> None:
        self._target = WrittenFiles(files, hashed=hashed)
        self._parallelism = parallelism
        self._max_parallelism = max_parallelism
        self._entries: dict[int, dict[str, dict[Any, Any]]] = {}  # by range and state
        self._infos: dict[str, StateInfo] = {}
        self._buffered = 0
        self._most_buffered = buffered_entries
        self._digests = KeyDigests(files)  # the digests of the keys or entries of all rows
        self._written: dict[int, list[StateFile]] = defaultdict(list)

    def _range_of(self, key: Any) -> int:
        return subtask_of(key_group(key, self._max_parallelism), self._max_parallelism, self._parallelism)

    def _put(self, number: int, info: StateInfo, address: Any, kept: Any) -> None:
        states = self._entries.setdefault(number, {})
        entries = states.get(info.name)
        if entries is None:
            self._infos[info.name] = info
            entries = states[info.name] = {}
        entries[address] = kept
        self._buffered += 1

    def _make_room(self) -> None:
        if self._buffered >= self._most_buffered:
            self._flush()

    def finish(self) -> WrittenRanges:
        """Write what is left, and return the files by range."""
        self._flush()
        return WrittenRanges(dict(self._written), self._digests.finish())

    def _flush(self) -> None:
        for number, states in self._entries.items():
            tables = [
                TableEntries(self._infos[name], list(entries), list(entries.values()), [], full=True)
                for name, entries in states.items()
            ]
            self._written[number] += write_tables(tables, self._target, self._target.exclusive)
        self._entries.clear()
        self._buffered = 0


class KeyStateFiles(RangeFiles):
    """Collects the states of keys, which are columns of their rows."""

    def __init__(
        self,
        files: FileStore,
        columns: StatesByColumn,
        *,
        parallelism: int,
        max_parallelism: int,
        hashed: bool,
        buffered_entries: int = _BUFFERED_ENTRIES,
    ) -> None:
        super().__init__(
            files,
            parallelism=parallelism,
            max_parallelism=max_parallelism,
            hashed=hashed,
            buffered_entries=buffered_entries,
        )
        self._declared = columns.declared()
        self._recent: set[Any] = set()  # the keys of the last rows, including rows that were already written

    def add(self, key: Any, values: dict[str, Any]) -> None:
        """Add a key with the values of its states by name; a value that is None is no entry.

        Raises:
            StateError: The key came before, or a value does not fit its state.
        """
        number, stored = self._range_of(key), state_key(key)
        if stored in self._recent:
            raise StateError(f"key {preview(key)} has two rows; a savepoint has one value per state and key")
        if len(self._recent) >= _RECENT_KEYS:
            self._recent.clear()  # `check_digests` finds keys that came long before
        self._recent.add(stored)
        self._digests.add(number, stored)
        for name, value in values.items():
            if value is not None:
                declared = self._declared[name]
                self._put(number, declared.info, stored, _kept(declared, value))
        self._make_room()


class EntryFiles(RangeFiles):
    """Collects single entries of states."""

    def add(self, info: StateInfo, key: Any, address: Any, kept: Any) -> None:
        """Add an entry, in the form of tables. A timer may come twice."""
        number = self._range_of(key)
        if info.kind != "timers":
            self._digests.add(number, (info.name, address))
        self._put(number, info, address, kept)
        self._make_room()


def _kept(declared: Declaration, value: Any) -> Any:
    map_key = itself if declared.map_key is None else declared.map_key.stored
    return shape_of(declared.info.kind).converter(declared.value.stored, map_key)(value)


def operator_metadata(
    operator: OperatorIdentifier,
    infos: tuple[StateInfo, ...],
    written: dict[int, list[StateFile]],
    parallelism: int,
    max_parallelism: int,
) -> OperatorMetadata:
    """Return the metadata of an operator whose keyed state was written by range."""
    name = operator.uid or operator.operator_id
    subtasks = tuple(
        OperatorSnapshot(
            operator.operator_id,
            operator.uid,
            name,
            KeyedFiles(*key_group_range(max_parallelism, parallelism, number), tuple(written.get(number, ()))),
            None,
            infos,
        )
        for number in range(parallelism)
    )
    finished = (False,) * parallelism
    return OperatorMetadata(
        operator.operator_id, operator.uid, name, parallelism, max_parallelism, subtasks, finished, infos
    )
