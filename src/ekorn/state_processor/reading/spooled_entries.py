"""The entries of large parts on local disk, divided by key, so that a piece of them fits into memory.

Entries go to one of 32 files by some bits of the hash of their key. A file that is still larger than a piece is divided
in the same way again, by the next bits. So memory and open files are bounded whatever the size of the parts: only
the depth grows, by one for every 32 times as many entries.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, NamedTuple

from ekorn.errors import InvalidKeyError
from ekorn.keygroups import stable_hash, user_key
from ekorn.state.canonical_format import Chunk
from ekorn.state.evolution.pickled_classes import loads
from ekorn.state.keyed_backend import RestoredTable, RestoredTables
from ekorn.state.snapshots import StateInfo
from ekorn.state_processor.stand_ins import stand_ins_importable
from ekorn.storage.spill_file import SpillFile
from ekorn.types.by_value import dumps

__all__ = ["StoredEntries", "divided"]

_BITS = 5  # the number of bits of a hash that choose the file
_FILES = 1 << _BITS  # the number of files into which entries are divided at once
_DEEPEST = 6  # entries of one key cannot be divided; at this depth they form a piece of their own
_NO_HASH = _FILES  # the file for keys whose hash only their class knows, if that class cannot be imported
_BUFFER_BYTES = 1 << 15  # the buffer of one file
_GATHERED_BYTES = 1 << 18  # the size up to which small blocks are divided together


@dataclass(frozen=True)
class StoredEntries:
    """The entries of one savepoint that are to be divided.

    Attributes:
        chunks: The entries and what was removed, in their order. One chunk at a time is in memory.
        infos: The descriptions of the states, by name. It is complete once the chunks have been read.
    """

    chunks: Iterable[Chunk]
    infos: dict[str, StateInfo]

    def info(self, chunk: Chunk) -> StateInfo:
        """Return the description of the state of a chunk."""
        return self.infos.get(chunk.name) or StateInfo(chunk.name, chunk.kind)


def divided(savepoints: Sequence[StoredEntries], piece_bytes: int) -> Generator[tuple[RestoredTables, ...], None, None]:
    """Yield the tables that chunks make up, in pieces: each has all entries of its keys, in every state.

    Args:
        savepoints: The entries of one or more savepoints. A piece has a key's entries of all of them.
        piece_bytes: The size of a piece on disk, unless one key has more. All keys without a hash are in one piece.
    """
    blocks = (_Block(number, chunk) for number, each in enumerate(savepoints) for chunk in each.chunks)
    return _divided(blocks, savepoints, piece_bytes, 0)


class _Block(NamedTuple):
    """Some entries of one savepoint."""

    savepoint: int
    chunk: Chunk


def _divided(
    blocks: Iterable[_Block], savepoints: Sequence[StoredEntries], piece_bytes: int, depth: int
) -> Generator[tuple[RestoredTables, ...], None, None]:
    with ExitStack() as opened:
        files: dict[int, _BlockFile] = {}
        for savepoint, chunk in blocks:
            for number, part in _by_file(chunk, savepoints[savepoint].info(chunk), depth):
                if number not in files:
                    files[number] = _BlockFile()
                    opened.callback(files[number].close)
                files[number].add(_Block(savepoint, part))
        for number, file in files.items():
            if file.size_bytes > piece_bytes and number != _NO_HASH and depth < _DEEPEST:
                yield from _divided(file.blocks(), savepoints, piece_bytes, depth + 1)
            else:
                yield _tables(file.blocks(), savepoints)
            file.close()


def _by_file(chunk: Chunk, info: StateInfo, depth: int) -> Iterator[tuple[int, Chunk]]:
    parts: dict[int, Chunk] = {}

    def part_of(address: Any) -> Chunk:
        key = user_key(address[0] if info.namespaced else address)
        try:
            # The hash of a number is the number itself, so the high bits are mixed.
            mixed = stable_hash(key) * 0x9E3779B97F4A7C15
            number = (mixed >> (64 - _BITS * (depth + 1))) % _FILES
        except InvalidKeyError:
            number = _NO_HASH
        part = parts.get(number)
        if part is None:
            part = parts[number] = Chunk(chunk.name, chunk.kind, [], [], [])
        return part

    for address, value in zip(chunk.keys, chunk.values, strict=True):
        part = part_of(address)
        part.keys.append(address)
        part.values.append(value)
    for address in chunk.gone:
        part_of(address).gone.append(address)
    yield from parts.items()


class _BlockFile:
    """Blocks in a file without a name, which are read in the order in which they were added."""

    def __init__(self) -> None:
        self._file = SpillFile(buffer_bytes=_BUFFER_BYTES)

    @property
    def size_bytes(self) -> int:
        return self._file.size_bytes

    def add(self, block: _Block) -> None:
        with stand_ins_importable():  # keys of missing classes are pickled again under their names
            self._file.append_chunk(dumps((block.savepoint, *block.chunk)))

    def blocks(self) -> Iterator[_Block]:
        """Yield the blocks, small ones of one state together."""
        gathered: _Block | None = None
        gathered_bytes = 0
        for size_bytes, block in self._stored():
            if gathered is not None and gathered_bytes < _GATHERED_BYTES and _may_follow(gathered, block):
                gathered.chunk.keys.extend(block.chunk.keys)
                gathered.chunk.values.extend(block.chunk.values)
                gathered.chunk.gone.extend(block.chunk.gone)
                gathered_bytes += size_bytes
                continue
            if gathered is not None:
                yield gathered
            gathered, gathered_bytes = block, size_bytes
        if gathered is not None:
            yield gathered

    def _stored(self) -> Iterator[tuple[int, _Block]]:
        for data in self._file.chunks():
            savepoint, *chunk = loads(data, "entries on local disk")
            yield len(data), _Block(savepoint, Chunk(*chunk))

    def close(self) -> None:
        self._file.close()


def _may_follow(block: _Block, later: _Block) -> bool:
    """Return whether a later block's entries can be added to a block. Removed keys are removed after all others."""
    same = (block.savepoint, *block.chunk[:2]) == (later.savepoint, *later.chunk[:2])
    return same and not block.chunk.gone


def _tables(blocks: Iterable[_Block], savepoints: Sequence[StoredEntries]) -> tuple[RestoredTables, ...]:
    tables: tuple[RestoredTables, ...] = tuple({} for _ in savepoints)
    for savepoint, chunk in blocks:
        table = tables[savepoint].setdefault(chunk.name, RestoredTable(savepoints[savepoint].info(chunk), {}))
        table.entries.update(zip(chunk.keys, chunk.values, strict=True))
        for key in chunk.gone:
            table.entries.pop(key, None)
    return tables
