"""`CsvSchema`: the columns and the form of CSV files, by the names of PyFlink's builder."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ekorn.connectors.formats.csv_dialect import CsvDialect
from ekorn.connectors.formats.csv_fields import CsvFields
from ekorn.types.composite_types import RowTypeInfo
from ekorn.types.data_type import DataType, NumericType
from ekorn.types.data_type_info import row_type_info
from ekorn.types.data_types import DataTypes, RowField, RowType

__all__ = ["CsvSchema", "CsvSchemaBuilder"]

_DEFAULT_ARRAY_SEPARATOR = ";"


class CsvSchema:
    """The columns and the form of CSV files; see `CsvSchema.builder`.

    >>> schema = CsvSchema.builder().add_number_column("id").add_string_column("name").set_use_header().build()
    >>> schema.get_type_info()
    RowTypeInfo(id: Long, name: String)
    """

    def __init__(
        self,
        row_type: RowType,
        dialect: CsvDialect | None = None,
        *,
        array_separators: dict[str, str] | None = None,
        use_header: bool = False,
        strict_headers: bool = False,
        skip_first_data_row: bool = False,
        any_property_name: str | None = None,
    ) -> None:
        """Create the schema from the settings of a `CsvSchemaBuilder`."""
        self.row_type = row_type
        self.dialect = dialect or CsvDialect()
        self.array_separators = array_separators or {}
        self.use_header = use_header
        self.strict_headers = strict_headers
        self.skip_first_data_row = skip_first_data_row
        self.any_property_name = any_property_name

    @staticmethod
    def builder() -> CsvSchemaBuilder:
        """Begin with no columns, a comma between columns, and '"' around texts."""
        return CsvSchemaBuilder()

    def get_type_info(self) -> RowTypeInfo:
        """Return the type of the rows."""
        return row_type_info(self.row_type)

    def columns(self) -> CsvFields:
        """Return the converter between texts and rows."""
        return CsvFields(
            self.row_type,
            null_literal=self.dialect.null_literal,
            array_separators=self.array_separators,
            extra_columns=self.any_property_name is not None,
        )

    def size(self) -> int:
        """Return the number of columns."""
        return len(self.row_type)

    def __len__(self) -> int:
        return self.size()

    def __repr__(self) -> str:
        return f"CsvSchema({', '.join(f'{field.name}: {field.data_type}' for field in self.row_type)})"


class CsvSchemaBuilder:
    """Builds a `CsvSchema`."""

    def __init__(self) -> None:
        self._fields: list[RowField] = []
        self._separators: dict[str, str] = {}  # the separators of array columns that have their own
        self._array_separator = _DEFAULT_ARRAY_SEPARATOR
        self._dialect = CsvDialect()
        self._flags: dict[str, Any] = {}

    # --------------------------------------------------------------------------------------------------------- columns

    def add_string_column(self, name: str) -> CsvSchemaBuilder:
        """Add a column of texts."""
        return self._add(name, DataTypes.STRING())

    def add_boolean_column(self, name: str) -> CsvSchemaBuilder:
        """Add a column of truth values."""
        return self._add(name, DataTypes.BOOLEAN())

    def add_number_column(self, name: str, number_type: NumericType | None = None) -> CsvSchemaBuilder:
        """Add a column of numbers; without a type, of integers of 64 bits."""
        if number_type is not None and not isinstance(number_type, NumericType):
            raise TypeError(f"add_number_column() takes a type of numbers such as DataTypes.INT(), got {number_type!r}")
        return self._add(name, number_type or DataTypes.BIGINT())

    def add_array_column(
        self, name: str, separator: str = ";", element_type: DataType | None = None
    ) -> CsvSchemaBuilder:
        """Add a column of arrays, with `separator` between the elements; without a type, of texts."""
        self._add(name, DataTypes.ARRAY(element_type or DataTypes.STRING()))
        if separator != _DEFAULT_ARRAY_SEPARATOR:
            self._separators[name] = separator
        return self

    def add_columns_from(self, schema: CsvSchema) -> CsvSchemaBuilder:
        """Add the columns of another schema."""
        for field in schema.row_type:
            self._add(field.name, field.data_type)
        self._separators |= schema.array_separators
        return self

    def clear_columns(self) -> CsvSchemaBuilder:
        """Remove all columns."""
        self._fields.clear()
        self._separators.clear()
        return self

    def size(self) -> int:
        """Return the number of columns."""
        return len(self._fields)

    def __len__(self) -> int:
        return self.size()

    # ---------------------------------------------------------------------------------------------------------- arrays

    def set_array_element_separator(self, separator: str) -> CsvSchemaBuilder:
        """Set the text between elements in array columns without a separator of their own."""
        self._array_separator = separator
        return self

    def disable_array_element_separator(self) -> CsvSchemaBuilder:
        """Take the text of an array column without a separator of its own for one element."""
        self._array_separator = ""
        return self

    def remove_array_element_separator(self, index: int) -> CsvSchemaBuilder:
        """Take the text of the array column at a position for one element."""
        self._separators[self._fields[index].name] = ""
        return self

    # ------------------------------------------------------------------------------------------------------------ form

    def set_column_separator(self, char: str) -> CsvSchemaBuilder:
        """Set the character between columns."""
        return self._dialect_with(separator=_char("set_column_separator", char))

    def set_quote_char(self, char: str) -> CsvSchemaBuilder:
        """Set the character around texts with special characters."""
        return self._dialect_with(quote=_char("set_quote_char", char))

    def disable_quote_char(self) -> CsvSchemaBuilder:
        """Read and write no quotes."""
        return self._dialect_with(quote=None)

    def set_escape_char(self, char: str) -> CsvSchemaBuilder:
        """Set the character that takes the special meaning from the next one; by default there is none."""
        return self._dialect_with(escape=_char("set_escape_char", char))

    def disable_escape_char(self) -> CsvSchemaBuilder:
        """Read and write no escapes."""
        return self._dialect_with(escape=None)

    def set_line_separator(self, separator: str) -> CsvSchemaBuilder:
        r"""Set the end of written lines. Lines that are read end with \n, \r\n or \r."""
        return self._dialect_with(line_end=separator)

    def set_null_value(self, null_value: str) -> CsvSchemaBuilder:
        """Set the text that means None. Without it None is written as an empty column, and no text is read as None."""
        return self._dialect_with(null_literal=null_value)

    def set_allow_comments(self, allow: bool = True) -> CsvSchemaBuilder:
        """Choose whether lines that begin with '#' are left out."""
        return self._dialect_with(comments=bool(allow))

    def set_use_header(self, use: bool = True) -> CsvSchemaBuilder:
        """Choose whether the first line of a file holds the names of the columns."""
        return self._flag("use_header", use)

    def set_strict_headers(self, strict: bool = True) -> CsvSchemaBuilder:
        """Choose whether the names in the header must be those of the schema."""
        return self._flag("strict_headers", strict)

    def set_skip_first_data_row(self, skip: bool = True) -> CsvSchemaBuilder:
        """Choose whether the first row of a file, after the header, is left out."""
        return self._flag("skip_first_data_row", skip)

    def set_any_property_name(self, name: str) -> CsvSchemaBuilder:
        """Allow more columns than the schema has; they are left out."""
        return self._flag("any_property_name", name)

    def build(self) -> CsvSchema:
        """Return the schema."""
        separators = {
            field.name: self._separators.get(field.name, self._array_separator)
            for field in self._fields
            if field.data_type.type_name() == "ARRAY"
        }
        return CsvSchema(DataTypes.ROW(self._fields), self._dialect, array_separators=separators, **self._flags)

    def _add(self, name: str, data_type: DataType) -> CsvSchemaBuilder:
        self._fields.append(DataTypes.FIELD(name, data_type))
        return self

    def _dialect_with(self, **changes: Any) -> CsvSchemaBuilder:
        self._dialect = replace(self._dialect, **changes)
        return self

    def _flag(self, name: str, value: Any) -> CsvSchemaBuilder:
        self._flags[name] = value
        return self


def _char(call: str, char: str) -> str:
    if not isinstance(char, str) or len(char) != 1:
        raise ValueError(f"{call}() takes one character, got {char!r}")
    return char
