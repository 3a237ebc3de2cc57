r"""`JsonColumns`: JSON messages, decoded by the batch.

Arrow parses the messages of a batch, joined with line ends. It is stricter than the row form in some places (a number
given as text, a decimal number with more digits than its column) and knows no maps. What Arrow refuses is therefore
read by the row form's reader, after the batch has been halved down to some messages. The results are those of the row
form, and the error of a message is too.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NoReturn

from ekorn.connectors.files.file_bytes import is_packed
from ekorn.connectors.files.stream_formats import BulkFormat
from ekorn.connectors.formats.json_values import JsonReader
from ekorn.connectors.formats.line_columns import LineColumnsReader
from ekorn.connectors.formats.message_columns import (
    DecodedMessages,
    MessageColumns,
    ReadColumn,
    list_column,
    row_type_of_columns,
    struct_column,
)
from ekorn.connectors.formats.text_columns import CLOCK, DAY, TimesOfTexts, bytes_of_texts
from ekorn.connectors.formats.text_values import TimestampFormat
from ekorn.errors import ConfigurationError, RecordFormatError, RecordTypeError, preview
from ekorn.functions.source_contract import SplitReader
from ekorn.types import data_types as dt
from ekorn.types.data_type import DataType
from ekorn.types.data_types import RowType

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["JsonColumns"]

_FEW = 16  # messages that are not halved any more, but read one by one
_OBJECT, _OBJECT_END = ord("{"), ord("}")


class JsonColumns(MessageColumns, BulkFormat):
    """JSON objects as columns: `KafkaSource` decodes many messages at once, and `FileSource` many lines of files.

    FileSource.for_bulk_file_format(JsonColumns(row_type), "/data/in").build()

    A field that an object lacks is null, and fields that are no columns are ignored. Values are read as
    `JsonRowDeserializationSchema` reads them. BYTES are text in base64. Objects with a MAP are read one by one.

    Example:
        >>> from ekorn.common import Types
        >>> JsonColumns(Types.ROW_NAMED(["customer", "amount"], [Types.STRING(), Types.LONG()])).row_type.field_names()
        ['customer', 'amount']
    """

    def __init__(self, row_type: Any, *, ignore_parse_errors: bool = False, timestamp_format: str = "ISO-8601") -> None:
        """Set the columns.

        Args:
            row_type: The columns: `DataTypes.ROW(...)` or `Types.ROW_NAMED(...)`.
            ignore_parse_errors: Whether a field that cannot be read becomes null, and a message that is not a JSON
                object is skipped. Otherwise such a message is an error of a record.
            timestamp_format: The standard for the text of timestamps: "ISO-8601" or "SQL".
        """
        self.row_type = row_type_of_columns(row_type, "JsonColumns")
        self._ignore_parse_errors = ignore_parse_errors
        try:
            self._timestamps = TimestampFormat(timestamp_format)
        except ValueError:
            raise ConfigurationError(f"timestamp_format is 'SQL' or 'ISO-8601', got {timestamp_format!r}") from None
        self._reader()  # a column that JSON cannot represent is refused here
        self.get_produced_type()

    def _reader(self) -> Callable[[Any], Any]:
        reader = JsonReader(fail_on_missing_field=False, lenient=self._ignore_parse_errors, timestamps=self._timestamps)
        return reader.of(self.row_type)

    def can_split(self, path: str) -> bool:
        """Return whether parts of a file of JSON lines can be read: if it is not compressed."""
        return not is_packed(path)

    def create_reader(self, path: str, start: int, end: int | None, position: Any | None) -> SplitReader:
        """Open the lines that begin in a range of bytes, each of which is an object."""
        return LineColumnsReader(path, self.decoder(), start=start, end=end, position=position)

    def decoder(self) -> _JsonDecoder:
        """Return the function that decodes messages."""
        return _JsonDecoder(
            self.row_type, self._reader(), self._timestamps, ignore_parse_errors=self._ignore_parse_errors
        )


class _JsonDecoder:
    def __init__(
        self,
        row_type: RowType,
        read: Callable[[Any], Any],
        timestamps: TimestampFormat,
        *,
        ignore_parse_errors: bool,
    ) -> None:
        from ekorn.columns.row_columns import RowColumns

        self._read = read
        self._columns = RowColumns(row_type)
        self._ignore_parse_errors = ignore_parse_errors
        self._decimals = "DecimalType" in repr(row_type)
        columns = [(field.name, _column(field.data_type, timestamps)) for field in row_type]
        self.arrow: _ArrowReader | None = None
        known = [(name, column) for name, column in columns if column is not None]
        if len(known) == len(columns):
            self.arrow = _ArrowReader(self._columns.schema, known)

    def __call__(self, messages: list[bytes]) -> DecodedMessages:
        import pyarrow as pa

        parts: list[pa.RecordBatch] = []
        kept: list[int] = []
        refused: list[tuple[int, Exception]] = []
        left = [(0, len(messages))]
        while left:
            first, end = left.pop()
            part = messages[first:end]
            data = None if self.arrow is None else self.arrow.read(part)
            if data is not None:
                parts.append(data)
                kept.extend(range(first, end))
            elif self.arrow is None or len(part) <= _FEW:
                self._one_by_one(part, first, parts, kept, refused)
            else:
                half = (first + end) // 2
                left += (half, end), (first, half)  # the first half comes next
        if len(parts) == 1 and len(kept) == len(messages):
            return DecodedMessages(parts[0])
        schema = self._columns.schema
        joined = pa.concat_batches(parts) if parts else pa.RecordBatch.from_pylist([], schema=schema)
        return DecodedMessages(joined, kept, refused)

    def _one_by_one(
        self,
        messages: list[bytes],
        first: int,
        parts: list[Any],
        kept: list[int],
        refused: list[tuple[int, Exception]],
    ) -> None:
        for number, message in enumerate(messages, first):
            try:
                row = self._row(message)
                if row is None:
                    continue
                parts.append(self._columns.batch([row]))
            except (RecordFormatError, RecordTypeError) as error:
                if not (self._ignore_parse_errors and isinstance(error, RecordFormatError)):
                    refused.append((number, error))
                continue
            kept.append(number)

    def _row(self, message: bytes) -> Any:
        """Return the row of a message, as the row form reads it."""
        try:
            if self._decimals:
                value = json.loads(message, parse_float=Decimal, parse_constant=_refuse_constant)
            else:
                value = json.loads(message, parse_constant=_refuse_constant)
            if value is None:
                raise ValueError("expected an object, found null")
            return self._read(value)
        except (ValueError, RecursionError) as error:
            raise RecordFormatError("JSON", str(error), preview(message)) from None


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


class _ArrowReader:
    """Reads messages with Arrow's reader of JSON lines."""

    def __init__(self, schema: pa.Schema, columns: list[tuple[str, ReadColumn]]) -> None:
        import pyarrow as pa
        from pyarrow import json as arrow_json

        self._json = arrow_json
        self._schema = schema
        self._convert = [column.convert for _, column in columns]
        read = [pa.field(n, c.type, nullable=f.nullable) for (n, c), f in zip(columns, schema, strict=True)]
        self._options = arrow_json.ParseOptions(explicit_schema=pa.schema(read), unexpected_field_behavior="ignore")

    def read(self, messages: list[bytes]) -> pa.RecordBatch | None:
        """Return the rows of some messages; None if Arrow does not read all of them as the row form does."""
        import numpy as np
        import pyarrow as pa

        joined = b"\n".join(messages)
        # Each message begins and ends like an object, and there are as many rows as messages: no object spans two
        # messages, because "}" is never followed by "{" inside one. So each message is exactly one row.
        ends = np.cumsum(np.fromiter(map(len, messages), np.int64, len(messages)) + 1) - 1
        starts = np.concatenate((ends[:1] * 0, ends[:-1] + 1))
        content = np.frombuffer(joined, np.uint8)
        if (starts >= ends).any() or (content[starts] != _OBJECT).any() or (content[ends - 1] != _OBJECT_END).any():
            return None
        if b"NaN" in joined or b"Inf" in joined:  # which Arrow takes for numbers
            return None
        try:
            joined.decode()  # Arrow takes any bytes for text
            table = self._json.read_json(
                pa.BufferReader(joined),
                read_options=self._json.ReadOptions(use_threads=False, block_size=len(joined) + 1),
                parse_options=self._options,
            )
            if table.num_rows != len(messages):
                return None
            arrays = [
                _one(table.column(number)) if convert is None else convert(_one(table.column(number)))
                for number, convert in enumerate(self._convert)
            ]
            return pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        except ValueError:  # Arrow's errors and those of the text and of conversions: read by the row form's reader
            return None


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


# ------------------------------------------------------------------------------------------------------------- columns


def _column(data_type: DataType, timestamps: TimestampFormat) -> ReadColumn | None:
    """Return the column that Arrow reads for a type; None for a type that Arrow does not read."""
    import pyarrow as pa

    from ekorn.columns.arrow_columns import arrow_column

    match data_type:
        case dt.CharType() | dt.VarCharType() | dt.BooleanType() | dt.IntegralType() | dt.DoubleType():
            return ReadColumn(arrow_column(data_type, utc=True).type)
        case dt.DecimalType():
            return ReadColumn(arrow_column(data_type, utc=True).type)
        case dt.FloatType():  # rounded to 64 bits first, as in the row form
            return ReadColumn(pa.float64(), lambda array: array.cast(pa.float32(), safe=False))
        case dt.BinaryType() | dt.VarBinaryType():
            return ReadColumn(pa.string(), bytes_of_texts)
        case dt.DateType():
            return ReadColumn(pa.string(), TimesOfTexts(rf"^{DAY}$", pa.date32()))
        case dt.TimeType():
            arrow_type = arrow_column(data_type, utc=True).type
            digits = 3 if data_type.precision <= 3 else 6
            return ReadColumn(pa.string(), TimesOfTexts(rf"^{CLOCK % digits}Z?$", arrow_type, "1970-01-01T"))
        case dt.TimestampType():
            arrow_type = arrow_column(data_type, utc=True).type
            digits = 3 if data_type.precision <= 3 else 6
            text = rf"^{DAY}{timestamps.between}{CLOCK % digits}Z?$"
            return ReadColumn(pa.string(), TimesOfTexts(text, arrow_type))
        case dt.LocalZonedTimestampType():
            text = rf"^{DAY}{timestamps.between}{CLOCK % 6}Z$"
            return ReadColumn(pa.string(), TimesOfTexts(text, pa.timestamp("us", "UTC")))
        case dt.ArrayType():
            element = _column(data_type.element_type, timestamps)
            return None if element is None else list_column(element)
        case dt.RowType():
            columns = [(f.name, _column(f.data_type, timestamps), f.data_type.is_nullable) for f in data_type]
            known = [(name, column, nullable) for name, column, nullable in columns if column is not None]
            return struct_column(known) if len(known) == len(columns) else None
    return None
