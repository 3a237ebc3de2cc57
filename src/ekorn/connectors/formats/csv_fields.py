"""The columns of CSV: between the texts of a record and the fields of a row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ekorn.connectors.formats.csv_dialect import CsvText
from ekorn.connectors.formats.text_values import text_parser, text_writer
from ekorn.errors import ConfigurationError
from ekorn.types import data_types as dt
from ekorn.types.data_type import DataType, NumericType
from ekorn.types.java_text import timestamp_text
from ekorn.types.row import Row, make_row

__all__ = ["CsvFields"]

Read = Callable[[str], Any]
Write = Callable[[Any], CsvText | None]


class CsvFields:
    """Converts records of one row type.

    Args:
        row_type: The columns.
        null_literal: The text that means None, or None for no such text.
        array_separators: The text between the elements of an array column, by name of the column.
        extra_columns: Whether a record may have more columns than the row type; they are left out.
        lenient: Whether a value that cannot be read, or is absent, becomes None.
        java_timestamps: Whether timestamps are written as `java.sql.Timestamp` writes them, with at least one decimal.
    """

    def __init__(
        self,
        row_type: dt.RowType,
        *,
        null_literal: str | None,
        array_separators: Mapping[str, str],
        extra_columns: bool = False,
        lenient: bool = False,
        java_timestamps: bool = False,
    ) -> None:
        self.names = row_type.field_names()
        self._null_literal = null_literal
        self._extra_columns = extra_columns
        self._lenient = lenient
        self._java_timestamps = java_timestamps
        separators = [array_separators.get(field.name, ";") for field in row_type]
        self._readers = [self._reader(field.data_type, sep) for field, sep in zip(row_type, separators, strict=True)]
        self._writers = [self._writer(field.data_type, sep) for field, sep in zip(row_type, separators, strict=True)]

    def read(self, texts: Sequence[str]) -> Row:
        """Return the row of a record.

        Raises:
            ValueError: The number of columns is wrong, or a column cannot be read; the message names the column.
        """
        readers = self._readers
        if len(texts) != len(readers):
            texts = self._fitting(texts)
        values: list[Any] = []
        append = values.append
        try:
            for read, text in zip(readers, texts, strict=False):  # hot
                append(read(text))
        except ValueError as error:
            if not self._lenient:
                raise ValueError(f"column {self.names[len(values)]!r}: {error}") from None
            values = [self._read_leniently(each, text) for each, text in zip(readers, texts, strict=False)]
        values += [None] * (len(readers) - len(values))
        return make_row(values, self.names)

    def write(self, row: Row) -> list[CsvText | None]:
        """Return the texts of a row.

        Raises:
            ValueError: A field cannot be written; the message names the column.
        """
        found = row.get_fields_by_names(self.names) if isinstance(row, Row) else row
        if len(found) != len(self._writers):
            raise ValueError(f"expected {len(self._writers)} fields, found {len(found)}")
        texts: list[CsvText | None] = []
        try:
            for write, value in zip(self._writers, found, strict=True):
                texts.append(None if value is None else write(value))
        except (AttributeError, TypeError, ValueError) as error:
            raise ValueError(f"column {self.names[len(texts)]!r}: {error}") from None
        return texts

    def value_of(self, position: int) -> Read:
        """Return the function that reads one field. It raises a ValueError for a text without a value."""
        return self._readers[position]

    def text_of(self, position: int) -> Callable[[Any], str | None]:
        """Return the function that writes one field, without quotes; None stays None."""
        write = self._writers[position]

        def text(value: Any) -> str | None:
            written = None if value is None else write(value)
            return None if written is None else written.text

        return text

    def _fitting(self, texts: Sequence[str]) -> Sequence[str]:
        if len(texts) > len(self._readers) and self._extra_columns:
            return texts[: len(self._readers)]
        if len(texts) < len(self._readers) and self._lenient:
            return texts
        raise ValueError(f"expected {len(self._readers)} columns, found {len(texts)}")

    @staticmethod
    def _read_leniently(read: Read, text: str) -> Any:
        try:
            return read(text)
        except ValueError:
            return None  # the user asked for None; the line is not malformed then

    # ---------------------------------------------------------------------------------------------------- by data type

    def _reader(self, data_type: DataType, separator: str) -> Read:
        read = self._value_reader(data_type, separator)
        null = self._null_literal
        return read if null is None else lambda text: None if text == null else read(text)

    def _value_reader(self, data_type: DataType, separator: str) -> Read:
        match data_type:
            case dt.ArrayType():
                read = self._reader(data_type.element_type, "")
                return lambda text: [read(each) for each in _parts(text, separator)]
            case dt.RowType():  # Flink: nested rows are written as arrays
                return self._nested_reader(data_type, separator)
            case dt.MapType() | dt.MultisetType():
                raise ConfigurationError(f"CSV cannot represent {data_type}; use columns, or an array column")
        return text_parser(data_type)

    def _nested_reader(self, row_type: dt.RowType, separator: str) -> Read:
        readers = [self._reader(each, "") for each in row_type.field_types()]
        names = row_type.field_names()

        def read(text: str) -> Row:
            parts = _parts(text, separator)
            if len(parts) != len(readers):
                raise ValueError(f"expected {len(readers)} fields between {separator!r}, found {len(parts)}")
            return make_row([each(part) for each, part in zip(readers, parts, strict=True)], names)

        return read

    def _writer(self, data_type: DataType, separator: str) -> Write:
        match data_type:
            case dt.ArrayType():
                write = self._writer(data_type.element_type, "")
                return lambda value: self._joined(separator, (write,) * len(value), value)
            case dt.RowType():
                writers = [self._writer(each, "") for each in data_type.field_types()]
                return lambda value: self._joined(separator, writers, value)
            case dt.MapType() | dt.MultisetType():
                raise ConfigurationError(f"CSV cannot represent {data_type}; use columns, or an array column")
            case dt.TimestampType() if self._java_timestamps:
                return lambda value: CsvText(timestamp_text(value))
        to_text = text_writer(data_type)
        may_be_quoted = not isinstance(data_type, NumericType | dt.BooleanType)
        return lambda value: CsvText(to_text(value), may_be_quoted)

    def _joined(self, separator: str, writers: Sequence[Write], values: Any) -> CsvText:
        null = self._null_literal or ""
        texts = [None if value is None else write(value) for write, value in zip(writers, values, strict=True)]
        return CsvText(separator.join(null if each is None else each.text for each in texts))


def _parts(text: str, separator: str) -> list[str]:
    if not text:
        return []
    return text.split(separator) if separator else [text]
