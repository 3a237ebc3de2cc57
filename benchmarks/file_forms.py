"""Rows per second of CPU time that readers and writers of files take, by rows and by columns, in one process.

    python -m benchmarks.file_forms

The rows have a text (one of 1,000 users) and a whole number. CPU time says nothing about disks, whose files lie in the
page cache here.
"""

from __future__ import annotations

import io
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.column_files import READ
from benchmarks.column_jobs import Pairs
from ekorn.columns.row_columns import RowColumns
from ekorn.datastream.columns import CsvColumns, JsonColumns, OrcColumns, ParquetColumns
from ekorn.datastream.formats.csv import CsvBulkWriters, CsvReaderFormat, CsvSchema
from ekorn.datastream.formats.json import JsonBulkWriters
from ekorn.datastream.formats.orc import OrcBulkWriters
from ekorn.datastream.formats.parquet import ParquetBulkWriters, ParquetColumnarRowInputFormat

KEYS, BATCHES, BATCH_ROWS, ROW_SHARE = 1_000, 30, 65_536, 20
CSV = CsvSchema(READ)
FORMATS: dict[str, tuple[Any, Any, Any]] = {  # writers, the reader of columns, the reader of rows
    "parquet": (ParquetBulkWriters.for_row_type(READ), ParquetColumns(READ), ParquetColumnarRowInputFormat(READ)),
    "orc": (OrcBulkWriters.for_row_type(READ), OrcColumns(READ), None),
    "csv": (CsvBulkWriters.for_schema(CSV), CsvColumns(CSV), CsvReaderFormat.for_schema(CSV)),
    "json": (JsonBulkWriters.for_row_type(READ), JsonColumns(READ), None),
}


class KeptBytes(io.BytesIO):
    def close(self) -> None:
        """Keep the content, although pyarrow closes what it has written to."""


def written(factory: Any, batches: list[pa.RecordBatch], *, as_rows: bool) -> bytes:
    """Return a file of some batches."""
    stream = KeptBytes()
    writer = (factory if as_rows else factory.for_columns(READ)).create(stream)
    for batch in batches:
        if as_rows:
            for row in RowColumns(READ).rows(batch):
                writer.add_element(row)
        else:
            writer.add_columns(batch)
    writer.finish()
    return stream.getvalue()


def read(file_format: Any, path: Path, most: int) -> None:
    """Read a file, or the first rows of it."""
    reader, count = file_format.create_reader(str(path), 0, None, None), 0
    while not reader.finished and count < most:
        values = reader.read(BATCH_ROWS).values
        count += sum(map(len, values)) if hasattr(file_format.get_produced_type(), "schema") else len(values)
    reader.close()


def show(what: str, rows: int, action: Callable[[], Any]) -> None:
    """Print the rows per second of CPU time."""
    begun = time.process_time()
    action()
    print(f"{what:24} {rows / (time.process_time() - begun) / 1e6:6.2f} M rows per second of CPU time", flush=True)


def main() -> None:
    pairs = Pairs(KEYS)
    batches = [pairs(number * BATCH_ROWS, BATCH_ROWS) for number in range(BATCHES)]
    rows, few = BATCHES * BATCH_ROWS, BATCHES * BATCH_ROWS // ROW_SHARE
    part = [batch.slice(0, BATCH_ROWS // ROW_SHARE) for batch in batches]
    with tempfile.TemporaryDirectory() as folder:
        for name, (writers, columns, by_rows) in FORMATS.items():
            path = Path(folder, name)
            path.write_bytes(written(writers, batches, as_rows=False))
            show(f"{name}: columns written", rows, lambda: written(writers, batches, as_rows=False))  # noqa: B023
            show(f"{name}: columns read", rows, lambda: read(columns, path, rows))  # noqa: B023
            show(f"{name}: rows written", few, lambda: written(writers, part, as_rows=True))  # noqa: B023
            if by_rows is not None:
                show(f"{name}: rows read", few, lambda: read(by_rows, path, few))  # noqa: B023


if __name__ == "__main__":
    main()
