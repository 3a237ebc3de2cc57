"""DataFrames of Spark as inputs and results: rows go between the JVM and workers as Arrow, not through the driver."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ekorn.batch.tasks.blobs import FIRST, REPORTS, encode
from ekorn.connectors.data_frames.parquet_rows import RowColumns
from ekorn.types.data_types import RowType

__all__ = ["blobs_of_frame", "frame_of_blobs", "passed_on"]


def blobs_of_frame(frame: Any, row_type: RowType) -> Any:
    """Return the RDD of a DataFrame's rows: elements whose only field is a blob."""
    return frame.mapInArrow(_RowsToBlobs(row_type), "blob binary").rdd


def passed_on(number: int, rows: Iterable[Any]) -> Iterator[bytes]:
    """Yield the blobs of what `blobs_of_frame` returns."""
    for row in rows:
        yield bytes(row[0])


def frame_of_blobs(session: Any, blobs: Any, row_type: RowType) -> Any:
    """Return the DataFrame of the records in an RDD of blobs."""
    from ekorn.engine.spark.data_frames.spark_schemas import spark_schema  # here: a program is drawn without PySpark

    stored = session.createDataFrame(blobs.map(_alone), "blob binary", verifySchema=False)
    return stored.mapInArrow(_BlobsToRows(row_type), spark_schema(row_type))


def _alone(blob: bytes) -> tuple[bytes]:
    return (blob,)


@dataclass(frozen=True)
class _RowsToBlobs:
    row_type: RowType

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        columns = RowColumns(self.row_type)
        for batch in batches:
            yield pa.RecordBatch.from_arrays([pa.array([encode(FIRST, columns.rows(batch))], pa.binary())], ["blob"])


@dataclass(frozen=True)
class _BlobsToRows:
    row_type: RowType

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        columns = RowColumns(self.row_type)
        for batch in batches:
            for blob in batch.column(0):
                data = blob.as_buffer()
                if data[0] != REPORTS:
                    yield columns.batch(pickle.loads(memoryview(data)[1:]))
