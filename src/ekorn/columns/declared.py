"""Checks that batches have the columns that were declared, and converts those whose values fit them."""

from __future__ import annotations

import pyarrow as pa

from ekorn.columns.columns_type import schema_text
from ekorn.errors import ColumnValueError, InvalidProgramError, preview

__all__ = ["as_declared", "fitted"]


def as_declared(found: pa.RecordBatch, schema: pa.Schema, giver: str = "a batch function returned") -> pa.RecordBatch:
    """Return a batch with the columns of a schema, in its order.

    Args:
        found: The batch.
        schema: The declared columns.
        giver: What gave the batch, for errors.

    Raises:
        InvalidProgramError: A column is missing, is not declared, or has another type.
        ColumnValueError: A value does not fit the declared type.
    """
    if found.schema.equals(schema) and not _has_forbidden_nulls(found, schema):
        return found
    names = found.schema.names
    if len(set(names)) != len(names) or set(names) != set(schema.names):
        raise InvalidProgramError(
            f"{giver} the columns ({schema_text(found.schema)}), and ({schema_text(schema)}) are declared; give "
            "exactly the declared columns"
        )
    return pa.RecordBatch.from_arrays([fitted(found.column(f.name), f, giver) for f in schema], schema=schema)


def _has_forbidden_nulls(found: pa.RecordBatch, schema: pa.Schema) -> bool:
    pairs = zip(found.columns, schema, strict=True)
    return any(not field.nullable and column.null_count for column, field in pairs)


def fitted(column: pa.Array, field: pa.Field, giver: str) -> pa.Array:
    """Return a column in its declared type.

    Raises:
        InvalidProgramError: The column has another type.
        ColumnValueError: A value does not fit the declared type.
    """
    try:
        cast = column if column.type == field.type else column.cast(field.type)
    except pa.ArrowNotImplementedError as error:
        raise InvalidProgramError(
            f"{giver} column {field.name!r} as {column.type}, which does not fit the declared {field.type}: {error}; "
            "convert the column, or declare another type"
        ) from None
    except pa.ArrowInvalid as error:
        raise _misfit(column, field, giver, error) from None
    if not field.nullable and cast.null_count:
        at = next(number for number, valid in enumerate(cast.is_valid()) if not valid.as_py())
        refused = ColumnValueError(giver, field.name, f"{field.type} not null", "None", "it is not nullable")
        refused.row_in_batch = at
        raise refused
    return cast


def _misfit(column: pa.Array, field: pa.Field, giver: str, error: Exception) -> ColumnValueError:
    start, end = 0, len(column)
    while end - start > 1:
        half = (start + end) // 2
        start, end = (half, end) if _fits(column.slice(start, half - start), field.type) else (start, half)
    value = f"{preview(column[start].as_py(), 80)} ({column.type})"
    misfit = ColumnValueError(giver, field.name, str(field.type), value, str(error))
    misfit.row_in_batch = start
    return misfit


def _fits(column: pa.Array, kind: pa.DataType) -> bool:
    try:
        column.cast(kind)
    except pa.ArrowInvalid:
        return False
    return True
