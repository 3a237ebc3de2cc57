"""Exports keyed state as Parquet files, one for each part of the savepoint."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from typing import Any

from ekorn.columns.arrow_columns import arrow_column, load_arrow, nullable
from ekorn.errors import StateError
from ekorn.state_processor.reading.state_rows import StateTable
from ekorn.types.data_types import RowType

__all__ = ["arrow_batches", "export_parquet"]

_BATCH_ROWS = 10_000


def export_parquet(table: StateTable, directory: str | os.PathLike[str], row_type: RowType | None = None) -> int:
    """Write a table of state to a new local directory; return the number of rows.

    Args:
        table: The table.
        directory: The directory, with a file `part-00000.parquet` and so on for each part.
        row_type: The types of the columns; by default those that were declared, or that the first rows have.

    Raises:
        StateError: The directory has files already, or a value does not fit its column.
    """
    arrow = load_arrow("an export")
    import pyarrow.parquet

    columns = row_type or table.row_type()
    schema = _arrow_schema(arrow, columns)
    count = 0
    with _new_directory(directory) as path_of:
        for part in range(table.part_count):
            with pyarrow.parquet.ParquetWriter(path_of(f"part-{part:05}.parquet"), schema) as writer:
                for batch in arrow_batches(table, part, columns):
                    writer.write_batch(batch)
                    count += batch.num_rows
    return count


@contextmanager
def _new_directory(directory: str | os.PathLike[str]) -> Iterator[Callable[[str], str]]:
    """Give paths in an empty directory. After a failure it is empty again, because half a table looks complete."""
    os.makedirs(directory, exist_ok=True)
    if os.listdir(directory):
        raise StateError(f"{os.fspath(directory)!r} already contains files: an export writes to a new directory")
    paths: list[str] = []

    def path_of(name: str) -> str:
        paths.append(os.path.join(directory, name))
        return paths[-1]

    try:
        yield path_of
    except BaseException:
        for path in paths:
            with suppress(FileNotFoundError):
                os.remove(path)
        raise


def _arrow_schema(arrow: Any, row_type: RowType) -> Any:
    return arrow.schema([arrow.field(f.name, arrow_column(f.data_type, utc=True).type) for f in row_type])


def arrow_batches(table: StateTable, part: int, row_type: RowType) -> Iterator[Any]:
    """Yield the rows of a part as record batches of Arrow."""
    arrow = load_arrow("an export")
    schema = _arrow_schema(arrow, row_type)
    converters = [nullable(arrow_column(t, utc=True).to_arrow) for t in row_type.field_types()]
    rest = table.rows(part, row_type)
    while rows := list(islice(rest, _BATCH_ROWS)):
        arrays = [
            arrow.array([convert(row[number]) for row in rows], field.type)
            for number, (convert, field) in enumerate(zip(converters, schema, strict=True))
        ]
        yield arrow.record_batch(arrays, schema=schema)
