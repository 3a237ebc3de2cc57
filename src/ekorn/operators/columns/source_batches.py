"""Checks the batches of columns that a source gives."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ekorn.columns.batch_parts import BatchRow, RefusedRows, by_parts
from ekorn.columns.column_batch import ColumnBatch
from ekorn.columns.columns_type import ColumnsTypeInfo
from ekorn.columns.declared import as_declared
from ekorn.errors import ColumnValueError, InvalidProgramError, preview


def checked_batches(
    values: Iterable[Any], declared: Any, split_id: str, refused: RefusedRows | None
) -> list[ColumnBatch]:
    """Return the batches of a split, cut by rows and bytes.

    Args:
        values: What the source gave.
        declared: The type of the stream.
        split_id: The split.
        refused: Gets the rows whose values do not fit; if None, they fail the job.

    Raises:
        InvalidProgramError: The source gave something else than batches of the declared columns.
        ColumnValueError: A value does not fit its declared type.
    """
    assert isinstance(declared, ColumnsTypeInfo), "a source of columns"

    def converted(batch: ColumnBatch) -> list[ColumnBatch]:
        giver = "the source gave" if batch.origin is not None else f"the source gave for split {split_id!r}"
        data = as_declared(batch.data, declared.schema, giver)
        return [batch if data is batch.data else batch.with_data(data)]

    batches: list[ColumnBatch] = []
    for value in values:
        if not isinstance(value, ColumnBatch):
            raise InvalidProgramError(
                f"the source gave {preview(value, 80)} ({type(value).__name__}) for split {split_id!r}, where "
                f"{declared!r} is declared; a source of columns gives batches of columns"
            )
        if refused is not None:
            checked = by_parts(value, converted, refused)
        else:
            checked = iter(_named(value, converted))
        for batch in checked:
            batches += batch.bounded()
    return batches


def _named(batch: ColumnBatch, convert: Callable[[ColumnBatch], list[ColumnBatch]]) -> list[ColumnBatch]:
    try:
        return convert(batch)
    except ColumnValueError as error:
        if error.row_in_batch is not None:
            _failed_row_of_batch = BatchRow(batch, error.row_in_batch)  # `Blame` reads the variable
        raise
