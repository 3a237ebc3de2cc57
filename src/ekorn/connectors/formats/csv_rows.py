"""CSV messages: one row in one message, for sources and sinks of bytes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ekorn.connectors.formats.csv_dialect import CsvDialect
from ekorn.connectors.formats.csv_fields import CsvFields
from ekorn.connectors.formats.schemas import DeserializationSchema, SerializationSchema
from ekorn.errors import ConfigurationError, RecordFormatError, preview
from ekorn.types.composite_types import RowTypeInfo
from ekorn.types.data_type_info import data_type_of
from ekorn.types.data_types import RowType
from ekorn.types.row import Row
from ekorn.types.type_information import TypeInformation

__all__ = ["CsvRowDeserializationSchema", "CsvRowSerializationSchema"]


class _Builder:
    """The settings of both directions."""

    def __init__(self, type_info: TypeInformation) -> None:
        if not isinstance(type_info, RowTypeInfo):
            raise TypeError(f"a CSV schema takes the type of rows, such as Types.ROW([Types.INT()]), got {type_info!r}")
        self._type_info = type_info
        self._dialect = CsvDialect()
        self._array_separator = ";"

    def _columns(self, *, lenient: bool = False) -> CsvFields:
        row_type = data_type_of(self._type_info, "CSV")
        assert isinstance(row_type, RowType)
        return CsvFields(
            row_type,
            null_literal=self._dialect.null_literal,
            array_separators=dict.fromkeys(row_type.field_names(), self._array_separator),
            lenient=lenient,
            java_timestamps=True,
        )

    def _char(self, call: str, char: str) -> str:
        if not isinstance(char, str) or len(char) != 1:
            raise ValueError(f"{call}() takes one character, got {char!r}")
        return char


class CsvRowDeserializationSchema(DeserializationSchema[Row]):
    """Reads rows from CSV messages; see `CsvRowDeserializationSchema.Builder`."""

    def __init__(
        self, type_info: RowTypeInfo, columns: CsvFields, dialect: CsvDialect, *, ignore_parse_errors: bool
    ) -> None:
        """Create the schema from the settings of a builder."""
        self._type_info = type_info
        self._columns = columns
        self._dialect = dialect
        self._ignore_parse_errors = ignore_parse_errors

    class Builder(_Builder):
        """Builds a `CsvRowDeserializationSchema` for rows of a type.

        >>> from ekorn.common import Types
        >>> schema = CsvRowDeserializationSchema.Builder(Types.ROW([Types.INT(), Types.STRING()])).build()
        >>> schema.deserialize(b"1,hi")
        Row(f0=1, f1='hi')
        """

        def __init__(self, type_info: TypeInformation) -> None:
            super().__init__(type_info)
            self._ignore_parse_errors = False

        def set_field_delimiter(self, delimiter: str) -> CsvRowDeserializationSchema.Builder:
            """Set the character between columns; by default a comma."""
            self._dialect = replace(self._dialect, separator=self._char("set_field_delimiter", delimiter))
            return self

        def set_allow_comments(self, allow_comments: bool) -> CsvRowDeserializationSchema.Builder:
            """Choose whether messages that begin with '#' are left out."""
            self._dialect = replace(self._dialect, comments=allow_comments)
            return self

        def set_array_element_delimiter(self, delimiter: str) -> CsvRowDeserializationSchema.Builder:
            """Set the text between the elements of arrays and the fields of nested rows; by default ';'."""
            self._array_separator = delimiter
            return self

        def set_quote_character(self, c: str) -> CsvRowDeserializationSchema.Builder:
            """Set the character around texts."""
            self._dialect = replace(self._dialect, quote=self._char("set_quote_character", c))
            return self

        def set_escape_character(self, c: str) -> CsvRowDeserializationSchema.Builder:
            """Set the character that takes the special meaning from the next one."""
            self._dialect = replace(self._dialect, escape=self._char("set_escape_character", c))
            return self

        def set_null_literal(self, null_literal: str) -> CsvRowDeserializationSchema.Builder:
            """Set the text that means None."""
            self._dialect = replace(self._dialect, null_literal=null_literal)
            return self

        def set_ignore_parse_errors(self, ignore_parse_errors: bool) -> CsvRowDeserializationSchema.Builder:
            """Choose whether a column that cannot be read becomes None, and a message that is not CSV is skipped."""
            self._ignore_parse_errors = ignore_parse_errors
            return self

        def build(self) -> CsvRowDeserializationSchema:
            """Return the schema."""
            ignored = self._ignore_parse_errors
            columns = self._columns(lenient=ignored)
            return CsvRowDeserializationSchema(self._type_info, columns, self._dialect, ignore_parse_errors=ignored)

    def deserialize(self, message: bytes) -> Row | None:
        """Return the row of a message, or None to skip it.

        Raises:
            RecordFormatError: The message is not a record of the type, and parse errors are not ignored.
        """
        try:
            texts = self._dialect.split(bytes(message).decode())
            return None if texts is None else self._columns.read(texts)
        except ValueError as error:
            if self._ignore_parse_errors:
                return None
            raise RecordFormatError("CSV", str(error), preview(message)) from None

    def get_produced_type(self) -> TypeInformation:
        """Return the type of the rows."""
        return self._type_info


class CsvRowSerializationSchema(SerializationSchema[Any]):
    """Writes rows as CSV messages; see `CsvRowSerializationSchema.Builder`."""

    def __init__(self, columns: CsvFields, dialect: CsvDialect) -> None:
        """Create the schema from the settings of a builder."""
        self._columns = columns
        self._dialect = dialect

    class Builder(_Builder):
        r"""Builds a `CsvRowSerializationSchema` for rows of a type.

        >>> from ekorn.common import Row, Types
        >>> CsvRowSerializationSchema.Builder(Types.ROW([Types.INT(), Types.STRING()])).build().serialize(Row(1, "hi"))
        b'1,hi\n'
        """

        def set_field_delimiter(self, c: str) -> CsvRowSerializationSchema.Builder:
            """Set the character between columns; by default a comma."""
            self._dialect = replace(self._dialect, separator=self._char("set_field_delimiter", c))
            return self

        def set_line_delimiter(self, delimiter: str) -> CsvRowSerializationSchema.Builder:
            """Set the end of messages: a line end, or nothing."""
            if delimiter not in ("\n", "\r", "\r\n", ""):
                raise ConfigurationError(f"set_line_delimiter() takes a line end or '', got {delimiter!r}")
            self._dialect = replace(self._dialect, line_end=delimiter)
            return self

        def set_array_element_delimiter(self, delimiter: str) -> CsvRowSerializationSchema.Builder:
            """Set the text between the elements of arrays and the fields of nested rows; by default ';'."""
            self._array_separator = delimiter
            return self

        def disable_quote_character(self) -> CsvRowSerializationSchema.Builder:
            """Write no quotes."""
            self._dialect = replace(self._dialect, quote=None)
            return self

        def set_quote_character(self, c: str) -> CsvRowSerializationSchema.Builder:
            """Set the character around texts with special characters."""
            self._dialect = replace(self._dialect, quote=self._char("set_quote_character", c))
            return self

        def set_escape_character(self, c: str) -> CsvRowSerializationSchema.Builder:
            """Set the character that takes the special meaning from the next one."""
            self._dialect = replace(self._dialect, escape=self._char("set_escape_character", c))
            return self

        def set_null_literal(self, s: str) -> CsvRowSerializationSchema.Builder:
            """Set the text for None; by default an empty one."""
            self._dialect = replace(self._dialect, null_literal=s)
            return self

        def build(self) -> CsvRowSerializationSchema:
            """Return the schema."""
            return CsvRowSerializationSchema(self._columns(), self._dialect)

    def serialize(self, value: Any) -> bytes:
        """Return the message of a row.

        Raises:
            RecordFormatError: The row does not fit the type.
        """
        try:
            return self._dialect.join(self._columns.write(value)).encode()
        except ValueError as error:
            raise RecordFormatError("CSV", str(error), preview(value)) from None
