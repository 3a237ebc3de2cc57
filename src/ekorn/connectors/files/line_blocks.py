"""Whole lines of a file as bytes, many at a time: what formats that parse lines by the batch read."""

from __future__ import annotations

from typing import Any

from ekorn.connectors.files.file_bytes import Pieces, open_pieces
from ekorn.connectors.files.text_lines import UTF8

__all__ = ["LineBlocks"]

_BLOCK_BYTES = 1 << 20
_MARK = b"\xef\xbb\xbf"  # a byte-order mark


class LineBlocks:
    r"""The lines that begin in a range of bytes of a file in UTF-8. A line ends with \n, \r\n or \r.

    Attributes:
        line: The number of lines before the next one, in the range.
    """

    def __init__(self, address: str, *, start: int, end: int | None, position: tuple[int, int] | None) -> None:
        """Begin with the range, or at the offset and the number of a line."""
        self._address = address
        self._start = start
        self._end = end
        self._aligned = position is not None  # whether the next line is known to begin at `_offset`
        self._offset, self.line = position if position is not None else (start, 0)
        self._pieces: Pieces | None = None
        self._rest = bytearray()  # the bytes from `_offset` on
        self._ends: list[int] = []  # where the lines that are there end, from the beginning of `_rest`
        self._at = 0  # the lines of `_ends` that were taken
        self._is_whole = False  # whether the file has no bytes after `_rest`

    def look(self, most_lines: int) -> tuple[bytes, int]:
        r"""Return some of the next lines and their number, without taking them. Their ends are \n.

        The last line of a file may have no end. No lines are returned at the end of the range.
        """
        while self._at >= len(self._ends) and not self.finished:
            self._load()
        count = min(most_lines, len(self._ends) - self._at)
        if not count:
            return b"", 0
        found = bytes(self._rest[self._begin_of(self._at) : self._begin_of(self._at + count)])
        if b"\r" in found:
            found = found.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        return found, count

    def take(self, count: int) -> None:
        """Go on behind some lines."""
        self._at += count
        self.line += count

    def go_to(self, offset: int, line: int) -> None:
        """Go to the beginning of another line."""
        self.__init__(  # type: ignore[misc]  # the file is opened again, at the line
            self._address, start=self._start, end=self._end, position=(offset, line)
        )

    def position(self) -> tuple[int, int] | None:
        """Return the offset and the number of the next line; None if the first line is not found yet."""
        return (self._offset + self._begin_of(self._at), self.line) if self._aligned else None

    @property
    def finished(self) -> bool:
        """Whether all lines are taken."""
        if self._at < len(self._ends):
            return False
        behind = self._end is not None and self._aligned and self._offset + self._begin_of(self._at) >= self._end
        return behind or (self._is_whole and self._begin_of(self._at) >= len(self._rest))

    def _begin_of(self, line: int) -> int:
        return self._ends[line - 1] if line else 0

    def _load(self) -> None:
        """Read until there are whole lines."""
        if self._pieces is None:
            self._open()
        taken = self._begin_of(self._at)
        del self._rest[:taken]
        self._offset, self._ends, self._at = self._offset + taken, [], 0
        whole = 0
        searched = len(self._rest)
        while not self._is_whole and (not whole or len(self._rest) < _BLOCK_BYTES):
            assert self._pieces is not None
            piece = self._pieces.read()
            if not piece:
                self._is_whole = True
                break
            self._rest += piece
            whole = UTF8.last_line_end(self._rest, max(0, searched - 1)) or whole
            searched = len(self._rest)
        if self._is_whole:
            whole = len(self._rest)
        self._divide(bytes(self._rest[:whole]))

    def _open(self) -> None:
        if not self._aligned and self._start:
            self._offset -= 1  # a line that begins exactly with the range follows a line end
        self._pieces = open_pieces(self._address, self._offset)
        if not self._aligned and not self._start:
            while len(self._rest) < len(_MARK) and (piece := self._pieces.read()):
                self._rest += piece
            if self._rest.startswith(_MARK):
                del self._rest[: len(_MARK)]
                self._offset = len(_MARK)
            self._aligned = True

    def _divide(self, whole: bytes) -> None:
        """Note where lines end; of those that begin in the range."""
        import numpy as np

        if b"\r" in whole:
            ends = np.cumsum(np.fromiter(map(len, whole.splitlines(keepends=True)), np.int64))
        else:
            ends = np.flatnonzero(np.frombuffer(whole, np.uint8) == ord("\n")) + 1
            if len(whole) and (not len(ends) or ends[-1] < len(whole)):
                ends = np.append(ends, len(whole))
        if not self._aligned and len(ends):  # the first line began before the range, and another reader reads it
            first = int(ends[0])
            del self._rest[:first]
            self._offset, ends, self._aligned = self._offset + first, ends[1:] - first, True
        if self._end is not None and len(ends):
            begins = self._offset + np.concatenate(([0], ends[:-1]))
            ends = ends[: int(np.searchsorted(begins, self._end))]
        found: Any = ends.tolist()
        self._ends = found
