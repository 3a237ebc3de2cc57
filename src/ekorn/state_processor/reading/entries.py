"""The entries of an operator's keyed state, one part at a time, without the program that wrote them.

Entries come in the form in which tables keep them. `Values` turns them into the values that the program wrote.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from io import BytesIO
from itertools import islice
from operator import itemgetter
from typing import Any, NamedTuple

from ekorn.errors import StateError
from ekorn.keygroups import KeyGroupRange, key_group, user_key
from ekorn.state.canonical_format import Chunk, decode_file
from ekorn.state.codecs import PickledCodec
from ekorn.state.declared import Described
from ekorn.state.entry_shapes import Convert, DeclaredShape, itself
from ekorn.state.keyed_backend import RestoredTable, RestoredTables
from ekorn.state.kinds import bare_kind, shape_of
from ekorn.state.restored_tables import read_tables
from ekorn.state.rocksdb.instance_files import beside_of
from ekorn.state.rocksdb.instance_reader import opened_instance, read_states
from ekorn.state.snapshots import ROCKSDB, KeyedFiles, OperatorRestore, StateInfo
from ekorn.state_processor.reading.spooled_entries import StoredEntries, divided
from ekorn.state_processor.reading.stored_savepoint import StoredOperator
from ekorn.state_processor.stand_ins import load_value, missing_classes_allowed
from ekorn.storage.file_store import FileStore
from ekorn.types.global_names import find_global
from ekorn.types.serializer import TypeSerializer, TypeSerializerSnapshot

__all__ = [
    "ComparedPiece",
    "EntryAddress",
    "ListedPane",
    "ListedSession",
    "ListedSlice",
    "OpaqueBytes",
    "Values",
    "address_of",
    "compared_pieces",
    "pieces_of",
    "pieces_with",
]

_PIECE_BYTES = 2 << 20  # the size of a piece as stored; in memory entries take up many times as much
_CHUNK_ENTRIES = 1000  # the number of entries that are read from RocksDB at a time


class ListedPane(NamedTuple):
    """A window with its default trigger, as the heap keeps it."""

    contents: Any  # all records, or the value that they were reduced or aggregated to
    has_fired: bool


class ListedSession(NamedTuple):
    """A session with its default trigger, as the heap keeps it."""

    start_ms: int
    end_ms: int
    contents: Any
    has_fired: bool


class ListedSlice(NamedTuple):
    """A part of several sliding windows, as the heap keeps it."""

    contents: Any
    arrivals: Any


_LISTED: dict[str, Convert] = {
    "panes": ListedPane._make,
    "slices": ListedSlice._make,
    "sessions": lambda sessions: [ListedSession(*session) for session in sessions],
}
"""Names the parts of entries of tables that window operators bring along."""


class OpaqueBytes(bytes):
    """The bytes of a value whose serializer cannot be imported. They are written again as they are."""

    def __repr__(self) -> str:
        return f"<{len(self)} bytes of a serializer that cannot be imported: {bytes(self[:16]).hex()}>"


class EntryAddress(NamedTuple):
    """The place of an entry: the key as the program gave it, and the window or the time of a timer, if any."""

    key: Any
    namespace: Any = None


def address_of(info: StateInfo, stored: Any) -> EntryAddress:
    """Return the address of an entry of a table."""
    return EntryAddress(user_key(stored[0]), stored[1]) if info.namespaced else EntryAddress(user_key(stored))


# ------------------------------------------------------------------------------------------------------------ reading


def pieces_of(stored: StoredOperator, part: KeyedFiles, piece_bytes: int = _PIECE_BYTES) -> Iterator[RestoredTables]:
    """Yield the tables of a part in pieces, each with all entries of its keys in states per key.

    A piece fits into memory, whatever the size of the part. A part in the canonical format has pieces of about
    `piece_bytes`; a large part is put on local disk for that. A part that RocksDB wrote has a piece for each key group,
    and one for the tables beside RocksDB.
    """
    return within(missing_classes_allowed, _pieces_of(stored, part, part.key_groups, piece_bytes))


def pieces_with(stored: StoredOperator, key: Any) -> Iterator[RestoredTables]:
    """Yield the pieces that may have entries of a key. They have other keys too."""
    group = key_group(key, stored.metadata.max_parallelism)
    for part in stored.parts():
        if part.key_group_first <= group <= part.key_group_last:
            pieces = _pieces_of(stored, part, KeyGroupRange(group, group), _PIECE_BYTES)
            yield from within(missing_classes_allowed, pieces)


def _pieces_of(
    stored: StoredOperator, part: KeyedFiles, key_groups: KeyGroupRange, piece_bytes: int
) -> Iterator[RestoredTables]:
    files, restore = stored.files(), stored.restore(part)
    restore.check_formats()
    if part.format == ROCKSDB:
        listed = restore.keyed_infos()
        with opened_instance(part, files) as instance:
            for group in range(key_groups.first, key_groups.last + 1):
                states = read_states(instance, restore.max_parallelism, KeyGroupRange(group, group))
                read = ((listed.get(info.name, info), dict(entries)) for info, entries in states)
                yield {info.name: RestoredTable(info, entries) for info, entries in read if entries}
        restore = replace(restore, keyed=(beside_of(part),))
    if _stored_bytes(restore) >= 2 * piece_bytes:
        for (tables,) in divided([_stored_entries(restore, files)], piece_bytes):
            yield tables
    else:
        yield {table.info.name: table for table in read_tables(restore, files, part.key_groups)}


class ComparedPiece(NamedTuple):
    """The tables of two operators, with all entries of the same keys."""

    before: RestoredTables
    after: RestoredTables


def compared_pieces(
    before: StoredOperator, after: StoredOperator, key_groups: KeyGroupRange, piece_bytes: int = _PIECE_BYTES
) -> Iterator[ComparedPiece]:
    """Yield the tables of two operators in a range of key groups, a piece of both at a time.

    Args:
        before: The operator in one savepoint.
        after: The operator in another one.
        key_groups: The range. A part of either operator is within it, or has none of its key groups.
        piece_bytes: The size of a piece on disk. Smaller operators are not put on disk.
    """
    return within(missing_classes_allowed, _compared_pieces(before, after, key_groups, piece_bytes))


def _compared_pieces(
    before: StoredOperator, after: StoredOperator, key_groups: KeyGroupRange, piece_bytes: int
) -> Iterator[ComparedPiece]:
    restores = [
        replace(
            stored.restore(None), keyed=tuple(part for part in stored.parts() if key_groups.covers(part.key_groups))
        )
        for stored in (before, after)
    ]
    stores = [before.files(), after.files()]
    for restore in restores:
        restore.check_formats()
    if sum(map(_stored_bytes, restores)) < 2 * piece_bytes:
        both = [read_tables(restore, files, key_groups) for restore, files in zip(restores, stores, strict=True)]
        yield ComparedPiece(*({table.info.name: table for table in tables} for tables in both))
        return
    entries = [_stored_entries(restore, files) for restore, files in zip(restores, stores, strict=True)]
    for pair in divided(entries, piece_bytes):
        yield ComparedPiece(*pair)


def _stored_bytes(restore: OperatorRestore) -> int:
    return sum(file.raw_size or file.size for part in restore.keyed for file in part.files)


def _stored_entries(restore: OperatorRestore, files: FileStore) -> StoredEntries:
    infos = restore.keyed_infos()
    return StoredEntries(_chunks(restore, files, infos), infos)


def _chunks(restore: OperatorRestore, files: FileStore, infos: dict[str, StateInfo]) -> Iterator[Chunk]:
    """Yield the entries of all parts, whichever backend wrote them, and add the descriptions that were not listed."""
    for part in restore.keyed:
        of_rocksdb = part.format == ROCKSDB
        if of_rocksdb:
            with opened_instance(part, files) as instance:
                for info, entries in read_states(instance, restore.max_parallelism, part.key_groups):
                    infos.setdefault(info.name, info)
                    while some := list(islice(entries, _CHUNK_ENTRIES)):
                        yield Chunk(info.name, info.kind, [key for key, _ in some], [kept for _, kept in some], [])
        for file in (beside_of(part) if of_rocksdb else part).files:
            yield from decode_file(files, file)


def within(scope: Any, items: Iterable[Any]) -> Iterator[Any]:
    """Yield the items of an iterator, each of them made inside a scope and handed out outside of it.

    Args:
        scope: Returns the context manager of the scope.
        items: The items.
    """
    iterator = iter(items)
    try:
        while True:
            entered: AbstractContextManager[None] = scope()
            with entered:
                try:
                    item = next(iterator)
                except StopIteration:
                    return
            yield item
    finally:
        close = getattr(iterator, "close", None)
        if close is not None:
            close()


# ------------------------------------------------------------------------------------------------------------- values


class _Pickled:
    """Values that are kept as themselves or as pickles."""

    def __init__(self, state: str) -> None:
        self.codec = PickledCodec(state)

    def load(self, kept: Any) -> Any:
        return load_value(kept) if type(kept) is bytearray else kept

    def store(self, value: Any) -> Any:
        return self.codec.stored(value)


@dataclass(frozen=True, slots=True)
class _Serialized:
    """Values that a serializer of the program wrote; opaque if the serializer cannot be imported."""

    serializer: TypeSerializer[Any] | None

    def load(self, kept: Any) -> Any:
        if kept is None:
            return None
        return OpaqueBytes(kept) if self.serializer is None else self.serializer.deserialize(BytesIO(kept))

    def store(self, value: Any) -> Any:
        if value is None or isinstance(value, OpaqueBytes):
            return value if value is None else bytearray(value)
        if self.serializer is None:
            raise StateError(
                f"the state is written by a serializer that cannot be imported, so {value!r} cannot be stored"
            )
        stream = BytesIO()
        self.serializer.serialize(value, stream)
        return bytearray(stream.getvalue())


def _restored_serializer(schema: dict[str, Any]) -> TypeSerializer[Any] | None:
    try:
        cls = find_global(*str(schema["snapshot"]).split(":"))
    except LookupError:
        return None
    if not (isinstance(cls, type) and issubclass(cls, TypeSerializerSnapshot)):
        return None  # a savepoint must not be able to call any other class
    snapshot = cls()
    snapshot.read_snapshot(int(schema["version"]), BytesIO(base64.b64decode(schema["configuration"])))
    return snapshot.restore_serializer()


class Values:
    """Turns the kept entries of one state into the values that the program wrote, and back."""

    def __init__(self, info: StateInfo) -> None:
        self.info = info
        self.described = Described.decode(info.schema, info.name)
        schema = self.described.value
        of_serializer = isinstance(schema, dict) and "serializer" in schema
        self._one = _Serialized(_restored_serializer(schema["serializer"])) if of_serializer else _Pickled(info.name)
        key_schema = self.described.map_key
        self._key = (
            _Serialized(_restored_serializer(key_schema["serializer"]))
            if isinstance(key_schema, dict) and "serializer" in key_schema
            else None
        )
        self._listed = _LISTED.get(bare_kind(info.kind), itself)
        self._shape = shape = shape_of(info.kind)
        load = self._one.load
        value: Convert = (lambda stamped: load(stamped[1])) if info.ttl else load
        self._load = shape.converter(value, self.load_map_key)
        self._stamps = shape.converter(itemgetter(0), self.load_map_key)
        self._store = shape.converter(self._one.store, self._stored_map_key)

    def load(self, kept: Any) -> Any:
        """Return the value of an entry: a value, a list or a dict; for windows of the runtime more than that."""
        return self._listed(self._load(kept))

    def stamps(self, kept: Any) -> Any:
        """Return the times of the last access, in the shape of the value; None for a state without a time to live."""
        return self._stamps(kept) if self.info.ttl else None

    def store(self, value: Any, stamps: Any, now_ms: int) -> Any:
        """Return the entry of a value. A value without a stamp is stamped with the current time."""
        kept = self._store(value)
        if not self.info.ttl:
            return kept
        assert isinstance(self._shape, DeclaredShape), "tables of the runtime do not expire"
        of_kept = None if stamps is None else self._shape.converter(itself, self._stored_map_key)(stamps)
        return self._shape.stamped(kept, of_kept, now_ms)

    def store_contents(self, contents: Any, *, is_list: bool) -> Any:
        """Return the contents of a window of the runtime, as its entry has them."""
        return [self._one.store(record) for record in contents] if is_list else self._one.store(contents)

    def saved_as(self) -> StateInfo:
        """Return the description of the state, with the classes of the values that were stored here."""
        if not isinstance(self._one, _Pickled):
            return self.info
        classes = self._one.codec.classes() | self.described.classes
        return replace(self.info, schema=replace(self.described, classes=classes).encode())

    def load_map_key(self, kept: Any) -> Any:
        """Return a key of a map, as the program wrote it."""
        return kept if self._key is None else self._key.load(kept)

    def _stored_map_key(self, key: Any) -> Any:
        return key if self._key is None else bytes(self._key.store(key))
