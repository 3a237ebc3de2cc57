"""`ColumnsTypeInfo`: the type of a stream that travels as columns. An edge of this type carries batches of rows.

The form of a stream is part of its type, so there is one stream graph, and one chain, for both forms. To the engine a
batch is a record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ekorn.errors import preview
from ekorn.types.type_information import Column, Misfit, TypeInformation

if TYPE_CHECKING:
    import pyarrow as pa

    from ekorn.columns.column_batch import ColumnBatch

__all__ = ["ColumnsTypeInfo", "has_columns", "row_count"]


class ColumnsTypeInfo(TypeInformation):
    """Batches of rows as columns of Arrow."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema

    def is_immutable(self) -> bool:
        return True

    def _fit(self, column: Column) -> Column:
        for batch in column:
            found = batch.data.schema
            if found is not self.schema and not found.equals(self.schema):
                raise Misfit(f"expected the columns ({schema_text(self.schema)}), found ({schema_text(found)})")
        return column

    def text(self, value: Any) -> str:
        return preview(value)

    def _identity(self) -> tuple[Any, ...]:
        return (self.schema,)

    def __repr__(self) -> str:
        return f"Columns({schema_text(self.schema)})"


def schema_text(schema: pa.Schema) -> str:
    """Return the columns of a schema as text: names and types."""
    return ", ".join(f"{field.name}: {field.type}" for field in schema)


def has_columns(type_info: TypeInformation | None) -> bool:
    """Return whether a stream of a type travels as columns."""
    return isinstance(type_info, ColumnsTypeInfo)


def row_count(batches: list[ColumnBatch]) -> int:
    """Return the rows of some batches."""
    return sum(map(len, batches))
