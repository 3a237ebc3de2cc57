"""`CsvColumns`: CSV files as streams of columns.

Arrow splits many lines into texts, and the texts of a column are converted at once. Where the lines are not of the
plain kind that both parsers read alike, and where a text has another form than the usual one, the lines are read by
the reader of rows. So the rows and the errors are those of `CsvReaderFormat`, and so are the positions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ekorn.columns.columns_type import ColumnsTypeInfo
from ekorn.connectors.files.file_bytes import is_packed
from ekorn.connectors.files.line_blocks import LineBlocks
from ekorn.connectors.files.stream_formats import BulkFormat
from ekorn.connectors.formats.csv_fields import CsvFields
from ekorn.connectors.formats.csv_files import CsvRowReader
from ekorn.connectors.formats.csv_schema import CsvSchema
from ekorn.connectors.formats.csv_values import column_of_texts
from ekorn.errors import ConfigurationError, RecordTypeError
from ekorn.extras import need
from ekorn.functions.source_contract import Batch, Malformed, SplitReader
from ekorn.storage.locations import shown
from ekorn.types.type_information import TypeInformation

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

__all__ = ["CsvColumns"]

_FEW = 64  # lines that are not halved any more
_NEWLINE = ord("\n")


class CsvColumns(BulkFormat):
    """Reads the columns of CSV files, compressed or not, as a stream of columns.

    FileSource.for_bulk_file_format(CsvColumns(schema), "/data/in").build()
    """

    def __init__(self, schema: CsvSchema, *, single_line_records: bool = False) -> None:
        """Set the columns and the form of the files.

        Args:
            schema: The columns and the form.
            single_line_records: Whether no value holds a line end, so that large files can be divided into ranges.
                Without quotes in the schema this is known. A value that holds a line end is then malformed.
        """
        need("columns", "CsvColumns")
        if not isinstance(schema, CsvSchema):
            raise TypeError(f"CsvColumns takes a CsvSchema, got {schema!r}")
        self._schema = schema
        self._single_lines = single_line_records or schema.dialect.quote is None
        schema.columns()  # a column that CSV cannot represent is refused here
        self.get_produced_type()

    def can_split(self, path: str) -> bool:
        """Return whether every line is a record, and the file is not compressed."""
        return self._single_lines and not is_packed(path)

    def create_reader(self, path: str, start: int, end: int | None, position: Any | None) -> SplitReader:
        """Open the records that begin in a range of bytes."""
        return _CsvColumnsReader(path, self._schema, start=start, end=end, position=position, single=self._single_lines)

    def get_produced_type(self) -> TypeInformation:
        """Return the columns."""
        from ekorn.columns.row_columns import RowColumns

        return ColumnsTypeInfo(RowColumns(self._schema.row_type).schema)

    def __repr__(self) -> str:
        return f"CsvColumns({self._schema!r})"


class _BlockLines(SplitReader):
    """The lines of blocks, for the reader of rows."""

    def __init__(self, path: str, blocks: LineBlocks) -> None:
        self._path = path
        self.blocks = blocks

    def read(self, max_records: int) -> Batch:
        found: list[str] = []
        while len(found) < max_records:
            content, count = self.blocks.look(max_records - len(found))
            if not count:
                break
            found += self._decoded(content).removesuffix("\n").split("\n")
            self.blocks.take(count)
        return Batch(found)

    def _decoded(self, content: bytes) -> str:
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            raise ConfigurationError(f"cannot read {shown(self._path)!r} as UTF-8: {error}") from None

    def position(self) -> int | None:
        position = self.blocks.position()
        return None if position is None else position[0]

    @property
    def finished(self) -> bool:
        return self.blocks.finished


class _CsvColumnsReader(CsvRowReader):
    """Reads columns. The reader of rows is its base, and reads the lines that are not read by the batch."""

    _lines: Any

    def __init__(self, path: str, schema: CsvSchema, **more: Any) -> None:
        from ekorn.columns.row_columns import RowColumns

        self._blocks: LineBlocks | None = None
        self._position = more["position"]
        super().__init__(path, schema, **more)
        self._row_columns = RowColumns(schema.row_type)
        self._arrow = _ArrowCsv(schema, self._columns, self._row_columns.schema)

    def _open(self, offset: int | None) -> Any:
        if self._blocks is None:
            self._blocks = LineBlocks(self._path, start=self._start, end=self._end, position=self._position)
            return _BlockLines(self._path, self._blocks)
        assert offset is not None, "the offset of a line that was read"
        self._blocks.go_to(offset, self._line)
        return self._lines

    def read(self, max_records: int) -> Batch:
        assert self._blocks is not None, "the base has opened it"
        if self._at_head:
            self._read_head()
        content, count = self._blocks.look(max_records)
        while count:
            count = self._arrow.whole_records(content, count, single=self._single)
            found = self._arrow.read(content, count) if count else None
            if found is not None:
                self._blocks.take(count)
                first, self._line = self._line, self._line + count
                return self._batch_of(found, first, count)
            if count <= _FEW:
                break
            content, count = self._blocks.look(count // 2)
        return self._by_rows(max(1, count or 1))

    def _batch_of(self, data: pa.RecordBatch, first: int, lines: int) -> Batch:
        from ekorn.columns.column_batch import ColumnBatch
        from ekorn.columns.origin import Origin

        place = f"{shown(self._path)!r}" + (f" after byte {self._start}" if self._start else "")
        origin = Origin(place, first + 1, lines, unit="line")
        return Batch([ColumnBatch(data, origin=origin if data.num_rows == lines else origin.some())])

    def _by_rows(self, lines: int) -> Batch:
        """Read some lines, or as many more as their last record has, as rows."""
        first = self._line
        batch = super().read(lines)
        malformed = list(batch.malformed)
        try:
            data = self._row_columns.batch(batch.values)
        except RecordTypeError:  # of values that text has and the columns have not
            data = self._fitting(batch.values, malformed)
        if not data.num_rows:
            return Batch([], malformed=malformed)
        found = self._batch_of(data, first, self._line - first)
        return found._replace(malformed=malformed)

    def _fitting(self, rows: list[Any], malformed: list[Malformed]) -> pa.RecordBatch:
        fitting = []
        for row in rows:
            try:
                self._row_columns.batch([row])
                fitting.append(row)
            except RecordTypeError as error:
                malformed.append(Malformed(row, error))
        return self._row_columns.batch(fitting)


class _ArrowCsv:
    """Reads records with Arrow, if Arrow reads them as the reader of rows does."""

    def __init__(self, schema: CsvSchema, fields: CsvFields, columns: pa.Schema) -> None:
        dialect = schema.dialect
        self._dialect = dialect
        self._schema = columns
        self._quote = None if dialect.quote is None else dialect.quote.encode()
        self._is_plain = all(len(each.encode()) == 1 for each in (dialect.separator, dialect.quote or '"'))
        self._separator = dialect.separator.encode()
        special = [b"\0", *([dialect.escape.encode()] if dialect.escape else [])]
        self._special = special
        self._converts = [column_of_texts(schema, fields, number) for number in range(len(schema.row_type))]

    def whole_records(self, content: bytes, count: int, *, single: bool) -> int:
        """Return how many of the lines are whole records; 0 if that is not certain."""
        import numpy as np

        if self._quote is None or self._quote not in content:
            return count
        array = np.frombuffer(content, np.uint8)
        quotes = np.flatnonzero(array == self._quote[0])
        ends = np.flatnonzero(array == _NEWLINE)
        if len(ends) < count:
            ends = np.append(ends, len(array))
        even = np.flatnonzero(np.searchsorted(quotes, ends) % 2 == 0)
        if not len(even) or (single and len(even) < int(even[-1]) + 1):
            return 0
        lines = int(even[-1]) + 1
        inside = quotes[: int(np.searchsorted(quotes, ends[lines - 1]))]
        return lines if self._well_formed(array, inside) else 0

    def _well_formed(self, array: np.ndarray[Any, Any], quotes: np.ndarray[Any, Any]) -> bool:
        """Return whether quotes enclose whole fields, and are doubled inside of them."""
        import numpy as np

        outside = np.zeros(256, bool)
        outside[[self._separator[0], _NEWLINE, array[quotes[0]] if len(quotes) else 0]] = True
        begins, ends = quotes[::2], quotes[1::2]
        before = array[np.maximum(begins - 1, 0)]
        behind = array[np.minimum(ends + 1, len(array) - 1)]
        good = (outside[before] | (begins == 0)).all() and (outside[behind] | (ends == len(array) - 1)).all()
        return bool(good)

    def read(self, content: bytes, count: int) -> pa.RecordBatch | None:
        """Return the rows of some whole records; None if the reader of rows has to read them."""
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        lines = content if content.count(b"\n") <= count else _first_lines(content, count)
        if not self._is_plain or any(each in lines for each in self._special):
            return None
        if lines.startswith(b"\n") or b"\n\n" in lines:  # an empty line, of which Arrow makes a row of nulls
            return None
        if self._dialect.comments and (lines.startswith(b"#") or b"\n#" in lines):
            return None
        names = self._schema.names
        quoted = self._quote is not None and self._quote in lines
        try:
            table = arrow_csv.read_csv(
                pa.BufferReader(lines),
                read_options=arrow_csv.ReadOptions(
                    use_threads=False, block_size=len(lines) + 1, column_names=[str(n) for n in range(len(names))]
                ),
                parse_options=arrow_csv.ParseOptions(
                    delimiter=self._dialect.separator,
                    quote_char=self._dialect.quote if quoted else False,
                    double_quote=True,
                    newlines_in_values=quoted,
                    ignore_empty_lines=False,
                ),
                convert_options=arrow_csv.ConvertOptions(
                    column_types={str(n): pa.string() for n in range(len(names))},
                    null_values=[],
                    strings_can_be_null=False,
                ),
            )
            columns = [table.column(number).combine_chunks() for number in range(len(names))]
            return pa.RecordBatch.from_arrays(
                [convert(each) for convert, each in zip(self._converts, columns, strict=True)],
                schema=self._schema,
            )
        except (ValueError, TypeError):  # Arrow's errors and those of conversions
            return None


def _first_lines(content: bytes, count: int) -> bytes:
    import numpy as np

    ends = np.flatnonzero(np.frombuffer(content, np.uint8) == _NEWLINE)
    return content[: int(ends[count - 1]) + 1] if count <= len(ends) else content
