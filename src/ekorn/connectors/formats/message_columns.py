"""`MessageColumns`: the base of formats that decode many messages at once, as a batch of columns.

A format reads the columns with Arrow where Arrow reads a type as the row form does, and converts them afterwards.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ekorn.columns.columns_type import ColumnsTypeInfo
from ekorn.extras import need
from ekorn.types.composite_types import RowTypeInfo
from ekorn.types.data_type_info import checked_row_type, data_type_of
from ekorn.types.data_types import RowType
from ekorn.types.type_information import TypeInformation

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["DecodedMessages", "MessageColumns", "MessageDecoder", "ReadColumn", "list_column", "struct_column"]


class DecodedMessages(NamedTuple):
    """The rows of some messages.

    `kept` has the numbers of the messages that became rows, or None if all did. `refused` has the number of each
    message that is not a record, with the error. A message in neither is skipped.
    """

    data: pa.RecordBatch
    kept: list[int] | None = None
    refused: Sequence[tuple[int, Exception]] = ()


class MessageDecoder(Protocol):
    """Decodes the values of messages. One is made for each reader, in the process that reads."""

    def __call__(self, messages: list[bytes]) -> DecodedMessages:
        """Return the rows of some messages."""
        ...


class MessageColumns(ABC):
    """A format of messages that are decoded by the batch."""

    row_type: RowType

    @abstractmethod
    def decoder(self) -> MessageDecoder:
        """Return the function that decodes messages."""

    def get_produced_type(self) -> TypeInformation:
        """Return the columns."""
        from ekorn.columns.row_columns import RowColumns

        return ColumnsTypeInfo(RowColumns(self.row_type).schema)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.row_type!r})"


def row_type_of_columns(given: Any, taken_by: str) -> RowType:
    """Return the columns that a program declares, as a row type or as the type of rows.

    Raises:
        TypeError: It is neither.
    """
    need("columns", taken_by)
    if isinstance(given, RowTypeInfo):
        given = data_type_of(given, taken_by)
    return checked_row_type(given, taken_by)


# ------------------------------------------------------------------------------------------- columns as they are read


class ReadColumn(NamedTuple):
    """The Arrow type that a parser reads, and the conversion of the array that it gives; None for none.

    A conversion raises a ValueError if a value is not one that it converts.
    """

    type: pa.DataType
    convert: Callable[[pa.Array], pa.Array] | None = None


def list_column(element: ReadColumn) -> ReadColumn:
    """Return the column of lists of a column."""
    import pyarrow as pa

    convert = element.convert
    if convert is None:
        return ReadColumn(pa.list_(element.type))

    def convert_lists(lists: pa.ListArray) -> pa.Array:
        values = convert(lists.values)
        return pa.ListArray.from_arrays(lists.offsets, values, mask=lists.is_null() if lists.null_count else None)

    return ReadColumn(pa.list_(element.type), convert_lists)


def struct_column(columns: Sequence[tuple[str, ReadColumn, bool]]) -> ReadColumn:
    """Return the column of structs of named columns, each with whether it may be null."""
    import pyarrow as pa

    read = pa.struct([pa.field(name, column.type, nullable=nullable) for name, column, nullable in columns])
    if all(column.convert is None for _, column, _ in columns):
        return ReadColumn(read)

    def convert(structs: pa.StructArray) -> pa.Array:
        arrays = []
        for number, (_, column, _) in enumerate(columns):
            field = structs.field(number)
            arrays.append(field if column.convert is None else column.convert(field))
        fields = [pa.field(name, a.type, nullable=n) for a, (name, _, n) in zip(arrays, columns, strict=True)]
        mask = structs.is_null() if structs.null_count else None
        return pa.StructArray.from_arrays(arrays, fields=fields, mask=mask)

    return ReadColumn(read, convert)
