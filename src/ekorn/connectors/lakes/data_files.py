"""Parquet files below a table's location that no reader sees until a commit names them."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any, BinaryIO, NotRequired, Protocol, TypedDict, TypeVar

from ekorn.connectors.formats.arrow_writer import ArrowWriterFactory
from ekorn.connectors.formats.schemas import BulkWriterFactory
from ekorn.connectors.lakes.data_folders import DataFolder
from ekorn.connectors.lakes.table_partitions import PartitionKey, Partitions, part_of, rows_by_key
from ekorn.functions.sink_contract import SinkWriter, WrittenBatch
from ekorn.types.data_types import RowType

__all__ = ["DataFile", "DataFileWriter", "PartitionedWriter", "with_column_writers"]

_MOST_OPEN = 100  # the most files of different partitions that are open at the same time


class DataFile(TypedDict):
    """A finished file. Checkpoints hold it as a plain dict."""

    path: str
    size_bytes: int
    row_count: int
    partition: NotRequired[list[Any]]  # the values of the partition columns, for tables that have some


class _ColumnSink(Protocol):
    _factory: ArrowWriterFactory


S = TypeVar("S", bound=_ColumnSink)


def with_column_writers(sink: S, row_type: RowType) -> S | None:
    """Return a sink of a table for batches of columns; None if it is to be given rows."""
    factory = sink._factory.for_columns(row_type)
    if factory is None:
        return None
    by_columns = copy.copy(sink)
    by_columns._factory = factory
    return by_columns


class DataFileWriter(SinkWriter[Any, DataFile]):
    """Writes the rows of one subtask, to one file per checkpoint. Failed attempts leave files that no commit names."""

    def __init__(self, folder: DataFolder, factory: BulkWriterFactory, subtask_index: int) -> None:
        self._folder = folder
        self._factory = factory
        self._subtask_index = subtask_index
        self._name = ""
        self._stream: BinaryIO | None = None
        self._writer: Any = None
        self._row_count = 0

    def write(self, value: Any, timestamp: int | None) -> None:
        """Write one row."""
        if self._stream is None:
            self._begin()
        self._writer.add_element(value)
        self._row_count += 1

    def write_batch(self, batch: WrittenBatch) -> None:
        """Write a batch of columns."""
        self.write_columns(batch.data)

    def write_columns(self, data: Any) -> None:
        """Write the rows of a record batch."""
        if self._stream is None:
            self._begin()
        self._writer.add_columns(data)
        self._row_count += data.num_rows

    def _begin(self) -> None:
        self._name = f"part-{self._subtask_index:05}-{uuid.uuid4()}.parquet"
        self._stream = self._folder.create(self._name)
        self._writer = self._factory.create(self._stream)

    def prepare_commit(self) -> Sequence[DataFile]:
        """End the file and make it durable."""
        if self._stream is None:
            return ()
        self._writer.finish()
        size_bytes = self._folder.complete(self._stream)
        prepared: DataFile = {
            "path": self._folder.path_of(self._name),
            "size_bytes": size_bytes,
            "row_count": self._row_count,
        }
        self._stream, self._writer, self._row_count = None, None, 0
        return [prepared]

    def close(self) -> None:
        """Remove the file that no checkpoint names."""
        if self._stream is not None:
            self._writer = None  # dropped before its stream, because pyarrow's writer ends the file when it is dropped
            self._folder.discard(self._name, self._stream)
            self._stream = None


class PartitionedWriter(SinkWriter[Any, DataFile]):
    """Writes the rows of one subtask, to one file per checkpoint and partition."""

    def __init__(
        self,
        partitions: Partitions,
        new_writer: Callable[[], DataFileWriter],
        new_check: Callable[[], Callable[[Any], Any]] | None = None,
    ) -> None:
        """Begin without files.

        Args:
            partitions: The partitioning.
            new_writer: Returns the writer of a partition.
            new_check: Returns the function that raises an error if a row of a record batch cannot be written.
        """
        self._partitions = partitions
        self._new_writer = new_writer
        self._new_check = new_check
        self._check: Callable[[Any], Any] | None = None
        self._writers: dict[PartitionKey, DataFileWriter] = {}  # the writer that has been open longest comes first
        self._prepared: list[DataFile] = []

    def write(self, value: Any, timestamp: int | None) -> None:
        """Write one row."""
        key, row = part_of(value, self._partitions)
        self._writer_of(key).write(row, timestamp)

    def _writer_of(self, key: PartitionKey) -> DataFileWriter:
        writer = self._writers.get(key)
        if writer is None:
            if len(self._writers) == _MOST_OPEN:
                self._end(next(iter(self._writers)))
            writer = self._writers[key] = self._new_writer()
        return writer

    def write_batch(self, batch: WrittenBatch) -> None:
        """Write the rows of each partition to its file."""
        if self._check is None:
            assert self._new_check is not None, "a sink of columns has one"
            self._check = self._new_check()
        parts = rows_by_key(batch, self._partitions)
        self._check(batch.data)  # before the rows of any partition are written
        for key, rows in parts.items():
            self._writer_of(key).write_columns(batch.data if rows is None else batch.data.take(rows))

    def _end(self, key: PartitionKey) -> None:
        for file in self._writers.pop(key).prepare_commit():
            file["partition"] = list(key)
            self._prepared.append(file)

    def prepare_commit(self) -> Sequence[DataFile]:
        """End the files and make them durable."""
        for key in list(self._writers):
            self._end(key)
        prepared, self._prepared = self._prepared, []
        return prepared

    def close(self) -> None:
        """Remove the files that are not ended."""
        with ExitStack() as all_of_them:  # closes all, also if one cannot be removed
            for writer in self._writers.values():
                all_of_them.callback(writer.close)
            self._writers.clear()
