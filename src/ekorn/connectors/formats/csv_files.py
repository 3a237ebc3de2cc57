"""CSV files: `CsvReaderFormat` reads rows, `CsvBulkWriters` writes them.

A record may span lines, inside quotes. The position of a reader is the offset of the next record's first line and the
number of lines before it, so errors name a line also after a restore. A line that is not a record does not end the
file: reading continues behind it, also if a quote in it is never closed.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import IO, Any

from ekorn.connectors.files.file_bytes import is_packed
from ekorn.connectors.files.stream_formats import StreamFormat
from ekorn.connectors.files.text_lines import TextLineReader
from ekorn.connectors.formats.csv_dialect import CsvText
from ekorn.connectors.formats.csv_fields import CsvFields
from ekorn.connectors.formats.csv_schema import CsvSchema
from ekorn.connectors.formats.schemas import BulkWriterFactory
from ekorn.errors import ConfigurationError, MalformedRecordError, RecordFormatError, preview
from ekorn.functions.source_contract import Batch, Malformed, SplitReader
from ekorn.storage.locations import shown
from ekorn.types.data_types import RowType
from ekorn.types.type_information import TypeInformation

__all__ = ["CsvBulkWriters", "CsvReaderFormat", "CsvRowReader"]

_CHARSET = "utf-8-sig"  # a byte-order mark at the beginning of a file belongs to no column
_MOST_CHARS = 16 << 20  # the longest record that spans lines; beyond it, its quote counts as never closed


class CsvReaderFormat(StreamFormat):
    """Reads rows from CSV files, compressed or not.

    FileSource.for_record_stream_format(CsvReaderFormat.for_schema(schema), "/data/in").build()
    """

    def __init__(self, schema: CsvSchema, *, single_lines: bool = False) -> None:
        """Create the format; `CsvReaderFormat.for_schema` is the way of programs."""
        self._schema = schema
        self._single_lines = single_lines or schema.dialect.quote is None

    @staticmethod
    def for_schema(schema: CsvSchema) -> CsvReaderFormat:
        """Read files with the columns and the form of a schema."""
        if not isinstance(schema, CsvSchema):
            raise TypeError(f"for_schema() takes a CsvSchema, got {schema!r}")
        return CsvReaderFormat(schema)

    def with_single_line_records(self) -> CsvReaderFormat:
        """Declare that no value holds a line end, so that large files can be divided into ranges.

        Without quotes in the schema this is known. A value that holds a line end is then malformed.
        """
        return CsvReaderFormat(self._schema, single_lines=True)

    def can_split(self, path: str) -> bool:
        """Return whether every line is a record, and the file is not compressed."""
        return self._single_lines and not is_packed(path)

    def create_reader(self, path: str, start: int, end: int | None, position: Any | None) -> SplitReader:
        """Open the records that begin in a range of bytes."""
        return CsvRowReader(path, self._schema, start=start, end=end, position=position, single=self._single_lines)

    def get_produced_type(self) -> TypeInformation:
        """Return the type of the rows."""
        return self._schema.get_type_info()

    def __repr__(self) -> str:
        return f"CsvReaderFormat.for_schema({self._schema!r})"


class CsvRowReader(SplitReader):
    """Reads the records that begin in a range of bytes."""

    def __init__(
        self, path: str, schema: CsvSchema, *, start: int, end: int | None, position: Any | None, single: bool
    ) -> None:
        self._path = path
        self._schema = schema
        self._dialect = schema.dialect
        self._columns: CsvFields = schema.columns()
        self._start = start
        self._end = end
        self._single = single
        self._at_head = position is None and start == 0
        self._line: int  # lines before the next record
        offset, self._line = position if position is not None else (None, 0)
        self._lines = self._open(offset)
        self._fed_out = False  # whether the last feed ended before the record did
        self._is_whole = True  # whether the last record that was fed is whole

    def _open(self, offset: int | None) -> TextLineReader:
        return TextLineReader(self._path, _CHARSET, start=self._start, end=self._end, position=offset)

    def read(self, max_records: int) -> Batch:
        if self._at_head:
            self._read_head()
        anchor = self._lines.position()
        lines: list[str] = self._lines.read(max_records).values
        batch = Batch([], None, [])
        at, count = 0, len(lines)
        while at < count:
            if self._dialect.is_comment(lines[at]):
                at += 1
                continue
            at, reason = self._read_run(lines, at, count, batch)
            if reason is None:
                continue
            # A quote that is never closed makes only its own line malformed, not the rest of the file.
            self._refuse(lines[at : at + 1], at, reason, batch)
            at += 1
            if len(lines) > count:
                self._lines = self._open(anchor)
                self._lines.read(at)
                break
        self._line += at
        return batch

    def _read_run(self, lines: list[str], at: int, count: int, batch: Batch) -> tuple[int, str | None]:
        """Read records from a line on; return the line behind them, and why the record at that line has no end."""
        begin = at
        rows = self._dialect.records(self._feed(lines, at))
        append, read = batch.values.append, self._columns.read
        one_by_one = self._dialect.comments
        try:
            for texts in rows:  # hot
                self._is_whole = True
                first, at = at, begin + rows.line_num
                try:
                    append(read(texts or [""]))
                except ValueError as error:
                    self._refuse(lines[first:at], first, str(error), batch)
                if at >= count or one_by_one:
                    return at, None
        except csv.Error as error:
            if self._fed_out:
                return at, str(error)
            end = begin + rows.line_num
            self._refuse(lines[at:end], at, str(error), batch)
            return end, None
        return at, None

    def _feed(self, lines: list[str], at: int) -> Iterator[str]:
        """Yield lines. Lines after the batch are requested only inside a record, and are added to the batch."""
        self._fed_out, self._is_whole = False, True
        left = _MOST_CHARS
        while True:
            if self._single and not self._is_whole:
                self._fed_out = True
                return
            if at == len(lines):
                more = [] if self._single or left < 0 else self._lines.read(1).values
                if not more:
                    self._fed_out = True
                    return
                lines += more
                left -= len(more[0])
            self._is_whole = False
            yield lines[at] + "\n"
            at += 1

    def _refuse(self, lines: list[str], first: int, reason: str, batch: Batch) -> None:
        text = "\n".join(lines)
        since = f" after byte {self._start}" if self._start else ""
        place = f"line {self._line + first + 1}{since} of {shown(self._path)!r}"
        error = MalformedRecordError(place, reason, preview(text))
        assert isinstance(batch.malformed, list)
        batch.malformed.append(Malformed(text, error))

    def _read_head(self) -> None:
        self._at_head = False
        if self._schema.use_header:
            header = self._next_line()
            if header is not None and self._schema.strict_headers:
                self._check_header(header)
        if self._schema.skip_first_data_row:
            self._next_line()

    def _next_line(self) -> str | None:
        """Return the next line that is not a comment, or None at the end of the file."""
        while found := self._lines.read(1).values:
            self._line += 1
            line: str = found[0]
            if not self._dialect.is_comment(line):
                return line
        return None

    def _check_header(self, header: str) -> None:
        try:
            names = self._dialect.split(header)
        except ValueError as error:
            raise ConfigurationError(f"cannot read the header of {shown(self._path)!r}: {error}") from None
        if names != self._columns.names:
            raise ConfigurationError(
                f"the header of {shown(self._path)!r} is {names}, but the schema has the columns "
                f"{self._columns.names}; correct one of them, or leave out set_strict_headers()"
            )

    def position(self) -> tuple[int, int] | None:
        offset = self._lines.position()
        return None if offset is None or self._at_head else (offset, self._line)

    @property
    def finished(self) -> bool:
        return not self._at_head and self._lines.finished


# -------------------------------------------------------------------------------------------------------------- writing


class CsvBulkWriters:
    """Writes rows to CSV files.

    FileSink.for_bulk_format("/data/out", CsvBulkWriters.for_schema(schema)).build()
    """

    @staticmethod
    def for_schema(schema: CsvSchema) -> BulkWriterFactory:
        """Write files with the columns and the form of a schema."""
        if not isinstance(schema, CsvSchema):
            raise TypeError(f"for_schema() takes a CsvSchema, got {schema!r}")
        return _CsvWriterFactory(schema)


class _CsvWriterFactory(BulkWriterFactory):
    def __init__(self, schema: CsvSchema) -> None:
        self._schema = schema
        self._found: RowType | None = None  # the columns of the batches that the writers are given
        self.bytes_can_be_joined = not schema.use_header

    def for_columns(self, row_type: RowType) -> _CsvWriterFactory | None:
        from ekorn.connectors.formats.csv_texts import csv_records

        if csv_records(self._schema, row_type) is None:
            return None
        factory = _CsvWriterFactory(self._schema)
        factory._found = row_type
        return factory

    def create(self, stream: IO[bytes]) -> _CsvWriter:
        return _CsvWriter(self._schema, stream, self._found)

    def __repr__(self) -> str:
        return f"CsvBulkWriters.for_schema({self._schema!r})"


class _CsvWriter:
    def __init__(self, schema: CsvSchema, stream: IO[bytes], found: RowType | None) -> None:
        self._dialect = schema.dialect
        self._columns = schema.columns()
        self._stream = stream
        if found is not None:
            from ekorn.columns.row_columns import RowColumns
            from ekorn.connectors.formats.csv_texts import csv_records

            self._records, self._rows = csv_records(schema, found), RowColumns(found).rows
        if schema.use_header:
            stream.write(self._dialect.join(map(CsvText, self._columns.names)).encode())

    def add_element(self, element: Any) -> None:
        self._stream.write(self._record(element))

    def _record(self, element: Any) -> bytes:
        try:
            texts = self._columns.write(element)
        except ValueError as error:
            raise RecordFormatError("CSV", str(error), preview(element)) from None
        return self._dialect.join(texts).encode()

    def add_columns(self, data: Any) -> None:
        assert self._records is not None, "`for_columns` said so"
        try:
            content: Any = self._records(data)
        except ValueError:  # also Arrow's errors; the rows are written one by one, or one of them is at fault
            content = b"".join([self._record(row) for row in self._rows(data)])
        self._stream.write(content)

    def flush(self) -> None:
        pass  # every record is written at once

    def finish(self) -> None:
        pass
