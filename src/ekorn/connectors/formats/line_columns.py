"""Reads files of JSON lines as columns: many lines at a time, each decoded as a message of Kafka would be."""

from __future__ import annotations

from typing import Any

from ekorn.connectors.files.line_blocks import LineBlocks
from ekorn.connectors.formats.message_columns import MessageDecoder
from ekorn.errors import MalformedRecordError, RecordFormatError, preview
from ekorn.functions.source_contract import Batch, Malformed, SplitReader
from ekorn.storage.locations import shown

__all__ = ["LineColumnsReader", "line_place"]


class LineColumnsReader(SplitReader):
    """Reads the lines that begin in a range of bytes. The position is the offset and the number of the next line."""

    def __init__(self, path: str, decode: MessageDecoder, *, start: int, end: int | None, position: Any | None) -> None:
        self._path = path
        self._start = start
        self._decode = decode
        self._blocks = LineBlocks(path, start=start, end=end, position=position)

    def read(self, max_records: int) -> Batch:
        from ekorn.columns.column_batch import ColumnBatch
        from ekorn.columns.origin import Origin

        content, count = self._blocks.look(max_records)
        if not count:
            return Batch([])
        lines = content.removesuffix(b"\n").split(b"\n")
        first = self._blocks.line + 1
        data, kept, refused = self._decode(lines)
        malformed = [Malformed(lines[at], self._placed(first + at, lines[at], error)) for at, error in refused]
        self._blocks.take(count)
        if not data.num_rows:
            return Batch([], malformed=malformed)
        place = f"{shown(self._path)!r}" + (f" after byte {self._start}" if self._start else "")
        origin = Origin(place, first, count, unit="line")
        if kept is not None:
            origin = origin.some()
        return Batch([ColumnBatch(data, origin=origin)], malformed=malformed)

    def _placed(self, line: int, text: bytes, error: Exception) -> Exception:
        reason = error.reason if isinstance(error, RecordFormatError) else str(error)
        return MalformedRecordError(line_place(self._path, line, self._start), reason, preview(text))

    def position(self) -> tuple[int, int] | None:
        return self._blocks.position()

    @property
    def finished(self) -> bool:
        return self._blocks.finished


def line_place(path: str, line: int, start: int) -> str:
    """Return where a line is, for errors; its number counts from the beginning of a range."""
    since = f" after byte {start}" if start else ""
    return f"line {line}{since} of {shown(path)!r}"
