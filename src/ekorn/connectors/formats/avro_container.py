"""Avro's container files: a header with the schema, then blocks of records, each followed by the file's sync mark.

The mark makes files divisible: a block belongs to the range of bytes in which the mark before it begins. The first
block follows the mark of the header.
"""

from __future__ import annotations

import bz2
import json
import lzma
import os
import zlib
from collections.abc import Callable
from typing import IO, Any, NamedTuple

from ekorn.connectors.files.file_bytes import zstd_unpacker
from ekorn.connectors.formats.avro_codec import encode_datum, parsed, without_logical_types
from ekorn.errors import ConfigurationError
from ekorn.storage.input_files import open_input
from ekorn.storage.locations import shown

__all__ = ["Block", "Container", "ContainerWriter"]

_MAGIC = b"Obj\x01"
_SYNC_BYTES = 16
_PIECE_BYTES = 1 << 20
_BLOCK_BYTES = 64_000  # Java's default


class Block(NamedTuple):
    """A block of a file: where it begins, where the next one begins, and its records, decompressed."""

    offset: int
    next_offset: int
    record_count: int
    data: bytes


class Container:
    """A container file to read. No file stays open between two blocks."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._bytes = b""
        self._base = 0
        self._at_end = False
        self._read_header()

    def _read_header(self) -> None:
        if self._take(0, len(_MAGIC)) != _MAGIC:
            raise self._damaged("it does not start like an Avro file")
        at, metadata = len(_MAGIC), {}
        while True:
            count, at = self._long(at)
            if not count:
                break
            if count < 0:  # the size of this part in bytes follows
                count, (_, at) = -count, self._long(at)
            for _ in range(count):
                key, at = self._text(at)
                metadata[key.decode()], at = self._text(at)
        self._sync = self._take(at, _SYNC_BYTES)
        self.first_block = at + _SYNC_BYTES
        codec = metadata.get("avro.codec", b"null").decode()
        if codec not in _UNPACKERS:
            raise ConfigurationError(
                f"cannot read {shown(self._address)!r}: its codec {codec!r} is unknown; "
                f"the known ones are {', '.join(sorted(_UNPACKERS))}"
            )
        self._unpack = _UNPACKERS[codec]
        self.document = metadata["avro.schema"].decode()
        document = json.loads(self.document)
        self.schema = parsed(without_logical_types(document))

    def find_block(self, start: int) -> int:
        """Return the offset of the first block whose mark begins at a byte or behind it; the size of the file if none.

        Marks are searched, so a range may begin anywhere.
        """
        if start <= self.first_block - _SYNC_BYTES:
            return self.first_block
        at = start
        while True:
            self._fill(at, _PIECE_BYTES)
            found = self._bytes.find(self._sync, at - self._base)
            if found >= 0:
                return self._base + found + _SYNC_BYTES
            if self._at_end:
                return self._base + len(self._bytes)
            at = max(at, self._base + len(self._bytes) - _SYNC_BYTES + 1)

    def read_block(self, offset: int) -> Block | None:
        """Return the block that begins at an offset, or None at the end of the file."""
        self._fill(offset, 1)
        if self._base + len(self._bytes) <= offset:
            return None
        count, at = self._long(offset)
        size, at = self._long(at)
        if count < 0 or size < 0:
            raise self._damaged(f"the block at byte {offset} has a negative size")
        packed = self._take(at, size)
        if self._take(at + size, _SYNC_BYTES) != self._sync:
            raise self._damaged(f"there is no sync marker after the block at byte {offset}")
        try:
            data = self._unpack(packed)
        except ConfigurationError:
            raise
        except Exception as error:  # each library of compression raises errors of its own
            raise self._damaged(f"the block at byte {offset} cannot be decompressed: {error}") from None
        return Block(offset, at + size + _SYNC_BYTES, count, data)

    # ------------------------------------------------------------------------------------------------------------ bytes

    def _take(self, at: int, count: int) -> bytes:
        self._fill(at, count)
        found = self._bytes[at - self._base : at - self._base + count]
        if len(found) < count:
            raise self._damaged("it is truncated; write it again completely")
        return found

    def _fill(self, at: int, count: int) -> None:
        """Hold the bytes from `at` on: `count` of them, or as many as there are."""
        held = self._base + len(self._bytes)
        if self._base <= at and (at + count <= held or self._at_end):
            return
        with open_input(self._address) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(at)
            self._bytes = file.read(max(count, _PIECE_BYTES))
        self._base = at
        self._at_end = at + len(self._bytes) >= size

    def _long(self, at: int) -> tuple[int, int]:
        """Return the zigzag number at an offset, and the offset behind it."""
        value = shift = 0
        while True:
            byte = self._take(at, 1)[0]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1), at
            if shift > 63:
                raise self._damaged(f"there is no number at byte {at}")

    def _text(self, at: int) -> tuple[bytes, int]:
        size, at = self._long(at)
        if size < 0:
            raise self._damaged(f"there is a negative size at byte {at}")
        return self._take(at, size), at + size

    def _damaged(self, reason: str) -> ConfigurationError:
        return ConfigurationError(f"cannot read {shown(self._address)!r} as Avro: {reason}")


_UNPACKERS: dict[str, Callable[[bytes], bytes]] = {
    "null": bytes,
    "deflate": lambda packed: zlib.decompress(packed, wbits=-15),
    "bzip2": bz2.decompress,
    "xz": lzma.decompress,
    "zstandard": lambda packed: bytes(zstd_unpacker().decompress(packed)),
}


class ContainerWriter:
    """Writes a container file to a stream, uncompressed, as Flink does."""

    def __init__(self, stream: IO[bytes], document: Any) -> None:
        self._stream = stream
        self._schema = parsed(without_logical_types(document))
        self._sync = os.urandom(_SYNC_BYTES)
        self._block = bytearray()
        self._count = 0
        metadata = {b"avro.schema": json.dumps(document).encode(), b"avro.codec": b"null"}
        stream.write(_MAGIC + _number(len(metadata)))
        for key, value in metadata.items():
            stream.write(_number(len(key)) + key + _number(len(value)) + value)
        stream.write(_number(0) + self._sync)

    def add_element(self, element: Any) -> None:
        self._block += encode_datum(self._schema, element)
        self._count += 1
        if len(self._block) >= _BLOCK_BYTES:
            self.flush()

    def flush(self) -> None:
        if self._count:
            self._stream.write(_number(self._count) + _number(len(self._block)) + self._block + self._sync)
            self._block, self._count = bytearray(), 0

    def finish(self) -> None:
        self.flush()


def _number(value: int) -> bytes:
    """Return the zigzag form of a number that is not negative."""
    value <<= 1
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
