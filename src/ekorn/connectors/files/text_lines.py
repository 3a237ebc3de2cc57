"""Read text files line by line.

A line ends with a newline, a carriage return or both, as in Java, or at the end of the file. The position of a reader
is the offset of the next line in the content of the file, so a new reader continues there without reading what comes
before. A compressed file is decompressed again up to that offset.
"""

from __future__ import annotations

import codecs
import io
from dataclasses import dataclass
from typing import Any

from ekorn.connectors.files.file_bytes import Pieces, open_pieces
from ekorn.errors import ConfigurationError
from ekorn.functions.source_contract import Batch, SplitReader
from ekorn.storage.locations import shown
from ekorn.types.factory import Types
from ekorn.types.type_information import TypeInformation

# Charsets with a byte-order mark at the beginning of a file: the codec for each mark, and the codec without a mark.
# Flink: as in Java, UTF-16 and UTF-32 are big-endian without a mark, and UTF-8 has no marks.
_MARKED: dict[str, tuple[tuple[tuple[bytes, str], ...], str]] = {
    "utf-16": (((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")), "utf-16-be"),
    "utf-32": (((codecs.BOM_UTF32_LE, "utf-32-le"), (codecs.BOM_UTF32_BE, "utf-32-be")), "utf-32-be"),
    "utf-8-sig": (((codecs.BOM_UTF8, "utf-8"),), "utf-8"),
}


class TextLineReader(SplitReader):
    """Reads the lines that begin in a range of bytes of one file."""

    def __init__(self, address: str, charset: str, *, start: int, end: int | None, position: Any | None) -> None:
        self._address = address
        self._charset = charset
        self._start = start
        self._end = end
        self._offset: int = start if position is None else position  # the offset of `_rest`
        self._resumed = position is not None
        self._pieces: Pieces | None = None
        self._rest = bytearray()  # the bytes after the last whole line
        self._ended = False
        # Lines are decoded one block at a time and returned from there.
        self._block = b""
        self._block_offset = self._offset
        self._lines: list[str] = []
        self._next = 0

    def read(self, max_records: int) -> Batch:
        while self._next >= len(self._lines) and not self._ended:
            self._load()
        values = self._lines[self._next : self._next + max_records]
        self._next += len(values)
        return Batch(values)

    def position(self) -> int | None:
        if self._pieces is None and not self._resumed:
            return None  # the offset of the first line depends on the byte-order mark, which has not been read yet
        if not self._next:
            return self._block_offset
        if self._next >= len(self._lines):
            return self._offset
        # Only checkpoints need the offset of a line, so the offsets are not kept.
        return self._block_offset + sum(self._text.line_bytes(self._block)[: self._next])

    @property
    def finished(self) -> bool:
        return self._ended and self._next >= len(self._lines)

    def _load(self) -> None:
        """Decode the next block of lines."""
        if self._pieces is None:
            self._pieces = self._begin()
        block = self._whole_lines(self._pieces)
        self._block_offset, self._offset = self._offset, self._offset + len(block)
        if not self._resumed and self._start:
            block = self._drop_first_line(block)
        self._block, self._lines, self._next = block, self._decode(block), 0
        if self._end is not None and self._offset >= self._end:
            self._drop_lines_behind(self._end)

    def _begin(self) -> Pieces:
        """Determine the encoding of the file, and open the file where reading begins."""
        self._text, mark_bytes = _encoding_of(self._charset, self._address)
        if not self._resumed:
            if self._start:
                # A line that begins exactly with the range follows a line end, so search from one unit before the
                # range.
                self._offset -= self._text.unit_bytes
            else:
                self._offset = mark_bytes
            self._block_offset = self._offset
        return open_pieces(self._address, self._offset)

    def _whole_lines(self, pieces: Pieces) -> bytes:
        """Read pieces until one has a line end; return the bytes up to its last line end, or to the end of the file."""
        while piece := pieces.read():
            searched = max(0, len(self._rest) - self._text.unit_bytes)
            self._rest += piece
            end = self._text.last_line_end(self._rest, searched)
            if end:
                block = bytes(self._rest[:end])
                del self._rest[:end]
                return block
        self._ended = True
        block, self._rest = bytes(self._rest), bytearray()
        return block

    def _drop_first_line(self, block: bytes) -> bytes:
        """Return the block without the line that began before the range, which another reader reads."""
        self._resumed = True
        dropped = self._text.line_bytes(block)[0] if block else 0
        self._block_offset += dropped
        return block[dropped:]

    def _drop_lines_behind(self, end: int) -> None:
        """Keep the lines that begin before the end of the range; another reader reads the others."""
        self._ended = True
        at = self._block_offset
        for number, length in enumerate(self._text.line_bytes(self._block)):
            if at >= end:
                del self._lines[number:]
                self._offset = at
                break
            at += length

    def _decode(self, block: bytes) -> list[str]:
        """Return the lines of a block without their ends."""  # hot
        try:
            text = block.decode(self._text.codec)
        except UnicodeDecodeError as error:
            raise ConfigurationError(
                f"cannot read {shown(self._address)!r} as {self._charset}: {error.reason} "
                f"at byte {self._block_offset + error.start} ({block[error.start : error.start + 1]!r}); "
                "give text_line_format() the charset that the file is written in"
            ) from None
        if "\r" in text:
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        lines = text.split("\n")
        if not lines[-1]:
            del lines[-1]  # the empty text behind the last line end is not a line
        return lines


@dataclass(frozen=True, slots=True)
class Encoding:
    """Finds line ends in bytes of a charset."""

    codec: str
    newline: bytes
    carriage_return: bytes

    @property
    def unit_bytes(self) -> int:
        """Return the unit at whose multiples characters begin."""
        return len(self.newline)

    def last_line_end(self, content: bytearray, searched: int) -> int:
        """Return the end of the last whole line, or 0; no line ends before `searched`."""
        newline = self._last(content, self.newline, searched, len(content))
        # A newline that belongs to a carriage return at the very end may still follow.
        unit = self.unit_bytes
        known_to_be_followed = len(content) - len(content) % unit - unit
        carriage_return = self._last(content, self.carriage_return, searched, known_to_be_followed)
        return max(newline, carriage_return) + unit if max(newline, carriage_return) >= 0 else 0

    def _last(self, content: bytearray, wanted: bytes, start: int, stop: int) -> int:
        at = content.rfind(wanted, start, stop)
        while at > 0 and at % self.unit_bytes:  # the second half of one character and the first half of the next
            at = content.rfind(wanted, start, at + self.unit_bytes - 1)
        return at

    def line_bytes(self, block: bytes) -> list[int]:
        """Return the length of each line in bytes, with the line end."""
        if self.newline == b"\n":
            # No charset with ASCII's newline uses that byte inside another character.
            return [len(line) for line in block.splitlines(keepends=True)]
        # A block may begin inside a surrogate pair or hold invalid bytes; the lengths must still be right.
        errors = "replace" if self.unit_bytes == 1 else "surrogatepass"
        lines = io.StringIO(block.decode(self.codec, errors), newline="").readlines()
        if self.unit_bytes == 1:
            return [len(line) for line in lines]
        return [len(line.encode(self.codec, errors)) for line in lines]


UTF8 = Encoding("utf-8", b"\n", b"\r")


def checked_charset(charset: str) -> str:
    """Return the name of the charset, or raise an error if there is no such text encoding."""
    if not isinstance(charset, str):
        raise TypeError(f"text_line_format() takes the name of a charset, got {charset!r}")
    try:
        "\n".encode(charset)
    except LookupError:
        raise ConfigurationError(f"there is no charset named {charset!r}") from None
    return charset


def _encoding_of(charset: str, address: str) -> tuple[Encoding, int]:
    """Return the encoding of a file, and the length of its byte-order mark."""
    name, mark_bytes = codecs.lookup(charset).name, 0
    if name in _MARKED:
        marks, name = _MARKED[name]
        pieces, head = open_pieces(address), b""
        while len(head) < 4 and (piece := pieces.read()):
            head += piece
        for mark, codec in marks:
            if head.startswith(mark):
                name, mark_bytes = codec, len(mark)
    return Encoding(name, "\n".encode(name), "\r".encode(name)), mark_bytes


def text_type() -> TypeInformation:
    """Return the type of lines."""
    return Types.STRING()
