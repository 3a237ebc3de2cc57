"""Files of lines, each of which a function turns into a record; for CSV files, `CsvLines` is that function."""

from __future__ import annotations

import codecs
import csv
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ekorn.connectors.files.file_bytes import is_packed, open_pieces
from ekorn.connectors.files.stream_formats import StreamFormat
from ekorn.connectors.files.text_lines import TextLineReader
from ekorn.errors import ConfigurationError, MalformedRecordError, preview
from ekorn.functions.source_contract import Batch, Malformed, SplitReader
from ekorn.storage.locations import shown
from ekorn.types.type_information import TypeInformation

__all__ = ["CsvColumn", "CsvLines", "LineFormat"]

_NEWLINES = ("\n", "\r\n", "\r")


@dataclass(frozen=True)
class LineFormat(StreamFormat):
    """Reads records that are lines.

    Attributes:
        parse: Makes the record of a line. It raises a ValueError for a line that is no record.
        produced_type: The type of the records, if it is known.
        charset: The charset of the files.
        delimiter: The text between lines. A newline stands for the line ends of all systems.
        skips_first: Whether the first line of each file is left out.
        comment: Lines that begin with it are left out.
    """

    parse: Callable[[str], Any]
    produced_type: TypeInformation | None = None
    charset: str = "UTF-8"
    delimiter: str = "\n"
    skips_first: bool = False
    comment: str | None = None

    def can_split(self, path: str) -> bool:
        """Return whether lines end with newlines, and the file is not compressed."""
        return self.delimiter in _NEWLINES and not is_packed(path)

    def create_reader(self, path: str, start: int, end: int | None, position: Any | None) -> SplitReader:
        """Open the lines that begin in a range of bytes."""
        assert position is None, "a batch reads a file from its start"
        lines: SplitReader
        if self.delimiter in _NEWLINES:
            lines = TextLineReader(path, self.charset, start=start, end=end, position=None)
        else:
            lines = _DelimitedLines(path, self.charset, self.delimiter)
        return _RecordLines(self, path, start, lines)

    def get_produced_type(self) -> TypeInformation | None:
        """Return the type of the records."""
        return self.produced_type


class _RecordLines(SplitReader):
    """The records of the lines of a file, or of a range of it."""

    def __init__(self, line_format: LineFormat, path: str, start: int, lines: SplitReader) -> None:
        self._format = line_format
        self._path = path
        self._start = start
        self._lines = lines
        self._count = 0  # lines read so far
        self._at_head = line_format.skips_first and start == 0

    def read(self, max_records: int) -> Batch:
        lines: list[str] = self._lines.read(max_records).values
        first = self._count
        self._count += len(lines)
        parse, comment = self._format.parse, self._format.comment
        records: list[Any] = []
        malformed: list[Malformed] = []
        begin = 0
        if lines and self._at_head:
            self._at_head, begin = False, 1
        for number in range(begin, len(lines)):  # hot
            line = lines[number]
            if comment is not None and line.startswith(comment):
                continue
            try:
                records.append(parse(line))
            except ValueError as error:
                malformed.append(Malformed(line, self._error(first + number, line, error)))
        return Batch(records, None, malformed)

    def _error(self, number: int, line: str, error: ValueError) -> MalformedRecordError:
        since = f" after byte {self._start}" if self._start else ""
        return MalformedRecordError(f"line {number + 1}{since} of {shown(self._path)!r}", str(error), preview(line))

    def position(self) -> None:
        return None  # a batch job always reads a file from its start

    @property
    def finished(self) -> bool:
        return self._lines.finished


class _DelimitedLines(SplitReader):
    """The texts between delimiters. The last text need not end with a delimiter."""

    def __init__(self, path: str, charset: str, delimiter: str) -> None:
        self._path = path
        self._charset = charset
        self._delimiter = delimiter
        self._pieces = open_pieces(path)
        self._decode = codecs.getincrementaldecoder(charset)().decode
        self._rest = ""
        self._texts: list[str] = []
        self._ended = False

    def read(self, max_records: int) -> Batch:
        while not self._texts and not self._ended:
            self._load()
        texts, self._texts = self._texts[:max_records], self._texts[max_records:]
        return Batch(texts)

    def _load(self) -> None:
        piece = self._pieces.read()
        try:
            text = self._rest + self._decode(piece, not piece)
        except UnicodeDecodeError as error:
            raise ConfigurationError(
                f"cannot read {shown(self._path)!r} as {self._charset}: {error.reason}; give the charset of the file"
            ) from None
        *self._texts, self._rest = text.split(self._delimiter)
        if not piece:
            self._ended = True
            if self._rest:
                self._texts.append(self._rest)

    def position(self) -> None:
        return None  # a batch job always reads a file from its start

    @property
    def finished(self) -> bool:
        return self._ended and not self._texts


@dataclass(frozen=True)
class CsvColumn:
    """A column to read: its number in the file, and what converts its text."""

    index: int
    convert: Callable[[str], Any]


@dataclass(frozen=True)
class CsvLines:
    """Makes the record of a line: splits it into texts, and converts those of the chosen columns.

    A line may have more columns than are read, as in Flink. A value in quotes may hold the separator, and two quotes
    for one; it may not hold a line end.

    Attributes:
        columns: The columns to read, in the order of the record's fields.
        make: Makes the record of the values.
        separator: The text between columns.
        quote: The character that may enclose values; None for no quotes.
    """

    columns: Sequence[CsvColumn]
    make: Callable[[list[Any]], Any]
    separator: str = ","
    quote: str | None = None

    def __call__(self, line: str) -> Any:  # hot
        """Return the record of a line.

        Raises:
            ValueError: The line has too few columns, or a text is not a value of its column's type.
        """
        texts = line.split(self.separator) if self.quote is None or self.quote not in line else self._unquoted(line)
        try:
            return self.make([column.convert(texts[column.index]) for column in self.columns])
        except IndexError:
            needed = max(column.index for column in self.columns) + 1
            raise ValueError(f"expected {needed} columns, found {len(texts)}") from None
        except ValueError:
            for column in self.columns:  # find the column at fault
                try:
                    column.convert(texts[column.index])
                except ValueError as error:
                    raise ValueError(f"column {column.index}: {error}") from None
            raise

    def _unquoted(self, line: str) -> list[str]:
        if len(self.separator) == 1:
            csv.field_size_limit(sys.maxsize)
            try:
                (texts,) = csv.reader([line], delimiter=self.separator, quotechar=self.quote, strict=True)
            except csv.Error as error:
                raise ValueError(str(error)) from None
            return texts
        return self._split_long_separator(line)

    def _split_long_separator(self, line: str) -> list[str]:
        """Return the texts of a line whose separator has several characters, which the standard library cannot read."""
        quote, separator = self.quote, self.separator
        assert quote is not None
        texts, at = [], 0
        while True:
            if not line.startswith(quote, at):
                end = line.find(separator, at)
                texts.append(line[at:] if end < 0 else line[at:end])
            else:
                end = at + 1
                while True:
                    end = line.find(quote, end)
                    if end < 0:
                        raise ValueError("a quote is not closed")
                    if not line.startswith(quote, end + 1):
                        break
                    end += 2
                texts.append(line[at + 1 : end].replace(quote * 2, quote))
                end += 1
                if end < len(line) and not line.startswith(separator, end):
                    raise ValueError(f"{separator!r} expected after a value in quotes")
                end = end if end < len(line) else -1
            if end < 0:
                return texts
            at = end + len(separator)
