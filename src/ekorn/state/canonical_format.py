"""The canonical format of keyed state: written by the heap backend and for canonical savepoints, read by every backend.

A payload is a sequence of chunks. A chunk holds some entries of one state: their keys and values in the form in which a
heap table keeps them, or the keys of entries that were removed since the file before. Chunks and payloads are cut by
their size, so a snapshot or a restore holds one payload in memory beside the state. Only a single entry that is larger
than the bound makes a larger chunk. The layout is in docs/formats/heap-state.md.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from ekorn.errors import CorruptFileError, preview
from ekorn.state.evolution.pickled_classes import loads
from ekorn.state.snapshots import StateFile, StateInfo
from ekorn.state.state_files import state_view
from ekorn.storage.file_store import FileStore
from ekorn.types.by_value import dumps, dumps_up_to

_MAGIC = b"EKOK"
_VERSION = 1
_HEADER = struct.Struct(">4sB")  # magic, version
_CHUNK = struct.Struct(">IBQ")  # the sizes of the state's name, of its kind and of the pickled entries
_CHUNK_ENTRIES = 50_000
CHUNK_BYTES = 4 << 20
PAYLOAD_BYTES = 16 << 20


class TableEntries:
    """Entries of one table: keys with their values, and keys whose entries are gone.

    `full` says that the table has no other entries.
    """

    __slots__ = ("full", "gone", "info", "keys", "values")

    def __init__(self, info: StateInfo, keys: list[Any], values: list[Any], gone: list[Any], *, full: bool) -> None:
        self.info, self.keys, self.values, self.gone, self.full = info, keys, values, gone, full

    def there(self, run: slice) -> tuple[list[Any], list[Any], list[Any]]:
        """Return some keys and values, in the form of a chunk's entries."""
        return self.keys[run], self.values[run], []

    def removed(self, run: slice) -> tuple[list[Any], list[Any], list[Any]]:
        """Return some keys that are gone, in the form of a chunk's entries."""
        return [], [], self.gone[run]


class Chunk(NamedTuple):
    """A part of one table's entries in a file, as it was read."""

    name: str
    kind: str
    keys: list[Any]
    values: list[Any]
    gone: list[Any]


class EncodedChunk(NamedTuple):
    """A chunk as bytes, in two parts: joining them would copy the entries."""

    head: bytes
    entries: bytes


# ------------------------------------------------------------------------------------------------------------- writing


def encode_payloads(
    tables: Iterable[TableEntries], *, payload_bytes: int = PAYLOAD_BYTES, chunk_bytes: int = CHUNK_BYTES
) -> Iterator[bytes]:
    """Yield the payloads of state files with these entries, none if there are no entries.

    Args:
        tables: The entries. They are asked for one after another.
        payload_bytes: A payload ends with the chunk that reaches this size.
        chunk_bytes: The largest size of the entries of a chunk, unless a single entry is larger.
    """
    parts = [_HEADER.pack(_MAGIC, _VERSION)]
    size = 0
    for chunk in _encode_chunks(tables, min(chunk_bytes, payload_bytes)):
        parts.extend(chunk)
        size += len(chunk.head) + len(chunk.entries)
        del chunk  # only `parts` refers to the bytes now, and it is emptied before the payload is written
        if size >= payload_bytes:
            payload = b"".join(parts)
            del parts[1:]
            size = 0
            yield payload
            del payload
    if size:
        yield b"".join(parts)


def _encode_chunks(tables: Iterable[TableEntries], chunk_bytes: int) -> Iterator[EncodedChunk]:
    for table in tables:
        yield from _encode_runs(table, len(table.keys), table.there, chunk_bytes)
        yield from _encode_runs(table, len(table.gone), table.removed, chunk_bytes)


def _encode_runs(
    table: TableEntries, count: int, run_of: Callable[[slice], Any], chunk_bytes: int
) -> Iterator[EncodedChunk]:
    """Encode `count` entries in runs of at most `chunk_bytes`. Each run's length is estimated from the run before."""
    name, kind = table.info.name.encode("utf-8", "surrogatepass"), table.info.kind.encode("utf-8")
    start, length = 0, _CHUNK_ENTRIES
    while start < count:
        length = min(length, count - start)
        run = run_of(slice(start, start + length))
        data = dumps_up_to(run, chunk_bytes)
        if data is None and length > 1:
            length //= 2
            continue
        start += length
        if data is None:
            data = dumps(run)  # a single entry that is larger than a chunk
        elif len(data) < chunk_bytes // 4:
            length = min(2 * length, _CHUNK_ENTRIES)
        head, entries = _CHUNK.pack(len(name), len(kind), len(data)) + name + kind, [data]
        del run, data
        # Popped, so that this frame keeps no reference to the bytes, which may be gigabytes.
        yield EncodedChunk(head, entries.pop())


# ------------------------------------------------------------------------------------------------------------- reading


def decode_file(store: FileStore, file: StateFile, operator: str = "") -> Iterator[Chunk]:
    """Yield the chunks of a state file in their order; `operator` names the owner of the state in errors.

    Raises:
        CorruptFileError: The file is missing or damaged, or its payload is not in this format.
    """
    where = (file.path or "inline state") + (f", keyed state of operator {operator}" if operator else "")
    return _decode_chunks(state_view(store, file), where)


def _decode_chunks(payload: bytes | memoryview, where: str) -> Iterator[Chunk]:
    if payload[: len(_MAGIC)] != _MAGIC:
        found = f"bytes that start with {bytes(payload[: len(_MAGIC)])!r}"
        raise CorruptFileError(where, found, f"keyed state ({_MAGIC!r})")
    if payload[len(_MAGIC) : _HEADER.size] != bytes([_VERSION]):
        found = f"format version {payload[len(_MAGIC) : _HEADER.size].hex()} of keyed state"
        raise CorruptFileError(where, found, f"version {_VERSION}, which is the newest this release reads")
    view = memoryview(payload)
    position = _HEADER.size
    while position < len(view):
        if position + _CHUNK.size > len(view):
            raise CorruptFileError(where, f"{len(view) - position} bytes after the last chunk", "whole chunks")
        name_bytes, kind_bytes, entries_bytes = _CHUNK.unpack_from(view, position)
        position += _CHUNK.size
        name_end = position + name_bytes
        kind_end = name_end + kind_bytes
        end = kind_end + entries_bytes
        if end > len(view):
            raise CorruptFileError(where, f"a chunk at {position} that runs past the end, to {end}", "whole chunks")
        name, kind = _text(view[position:name_end], where), _text(view[name_end:kind_end], where)
        entries = loads(view[kind_end:end], where)
        if not _are_entries(entries):
            raise CorruptFileError(where, f"{preview(entries)} at {kind_end}", "keys, values and keys gone")
        position = end
        yield Chunk(name, kind, *entries)
        del entries


def _text(data: memoryview, where: str) -> str:
    try:
        return str(data, "utf-8", "surrogatepass")
    except UnicodeDecodeError:
        raise CorruptFileError(where, "a state name that is not UTF-8", "a state name") from None


def _are_entries(found: Any) -> bool:
    """Return whether an unpickled value has the shape of a chunk's entries.

    The checksum proves only that the bytes were written like this, not that ekorn wrote them.
    """
    return type(found) is tuple and list(map(type, found)) == [list] * 3 and len(found[0]) == len(found[1])
