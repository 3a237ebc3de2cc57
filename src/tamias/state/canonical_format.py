"""The canonical format of keyed state: written by the heap backend and for canonical savepoints, read by every backend.

A payload is a sequence of chunks. A chunk holds some entries of one state: their keys and values in the form in which a
heap table keeps them, or the keys of entries that were removed since the file before. The layout is in
docs/formats/heap-state.md.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

from tamias.errors import CorruptFileError, preview
from tamias.state.evolution.pickled_classes import loads
from tamias.state.snapshots import StateFile, StateInfo
from tamias.state.state_files import read_state
from tamias.storage.file_store import FileStore
from tamias.types.by_value import dumps

_LENGTH = struct.Struct("<I")
_CHUNK_ENTRIES = 50_000


class TableEntries:
    """Entries of one table: keys with their values, and keys whose entries are gone.

    `full` says that the table has no other entries.
    """

    __slots__ = ("full", "gone", "info", "keys", "values")

    def __init__(self, info: StateInfo, keys: list[Any], values: list[Any], gone: list[Any], *, full: bool) -> None:
        self.info, self.keys, self.values, self.gone, self.full = info, keys, values, gone, full


class Chunk(NamedTuple):
    """A part of one table's entries in a file."""

    name: str
    kind: str
    keys: list[Any]
    values: list[Any]
    gone: list[Any]


def encode_entries(tables: dict[str, TableEntries]) -> Iterator[bytes]:
    """Yield the chunks of a payload with these entries."""
    for name, entries in tables.items():
        for start in range(0, len(entries.keys), _CHUNK_ENTRIES):
            end = start + _CHUNK_ENTRIES
            yield _encode_chunk(Chunk(name, entries.info.kind, entries.keys[start:end], entries.values[start:end], []))
        if entries.gone:
            yield _encode_chunk(Chunk(name, entries.info.kind, [], [], entries.gone))


def _encode_chunk(chunk: Chunk) -> bytes:
    data = dumps(tuple(chunk))  # a plain tuple: a checkpoint holds no class of tamias
    return _LENGTH.pack(len(data)) + data


def decode_file(store: FileStore, file: StateFile) -> Iterator[Chunk]:
    """Yield the chunks of a state file in their order.

    Raises:
        CorruptFileError: The file is missing or damaged, or its payload is not in this format.
    """
    return _decode_chunks(read_state(store, file), file.path or "inline state")


def _decode_chunks(payload: bytes, path: str) -> Iterator[Chunk]:
    position = 0
    while position < len(payload):
        if position + _LENGTH.size > len(payload):
            raise CorruptFileError(path, f"{len(payload) - position} bytes after the last chunk", "whole chunks")
        (length,) = _LENGTH.unpack_from(payload, position)
        position += _LENGTH.size
        if position + length > len(payload):
            raise CorruptFileError(path, f"a chunk of {length} bytes at {position} runs past the end", "whole chunks")
        chunk = loads(payload[position : position + length], path)
        if not _is_chunk(chunk):
            raise CorruptFileError(path, f"{preview(chunk)} at {position}", "name, kind, keys, values and keys gone")
        yield Chunk(*chunk)
        position += length


def _is_chunk(found: Any) -> bool:
    """Return whether an unpickled value has the shape of a chunk.

    The checksum proves only that the bytes were written like this, not that tamias wrote them.
    """
    if type(found) is not tuple or list(map(type, found)) != [str, str, list, list, list]:
        return False
    return len(found[2]) == len(found[3])
