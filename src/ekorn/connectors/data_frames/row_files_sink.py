"""`RowFilesSink`: writes rows into Parquet files, each of them exactly once, on any storage.

A file is written whole at a checkpoint, or when it is large. A file is valid when its mark exists, and the mark is
published once the checkpoint that covers the file is complete. No file is renamed, so object stores work as well as
disks. Files without a mark belong to failed attempts and are never read (docs/formats/row-files.md).
"""

from __future__ import annotations

import contextlib
import io
import uuid
from collections.abc import Sequence
from typing import Any, TypedDict

from ekorn.columns.row_columns import RowColumns
from ekorn.connectors.data_frames.written_rows import Manifest, RowFile, columns_text, manifest_bytes, parse_manifest
from ekorn.connectors.formats.written_columns import written_columns
from ekorn.errors import RecordFormatError, RecordTypeError
from ekorn.faults import point
from ekorn.functions.sink_contract import Committer, Sink, SinkWriter, WriterContext, WrittenBatch
from ekorn.storage.file_store import FileStore, open_files
from ekorn.storage.locations import shown
from ekorn.types.data_types import RowType

__all__ = ["DATA", "MARKS", "PendingRows", "RowFilesSink", "marked_files"]

DATA = "data"
MARKS = "marks"
_BATCH_ROWS = 1024
_GROUP_BYTES = 8 << 20
_FILE_BYTES = 64 << 20


class PendingRows(TypedDict):
    """A file that waits for its checkpoint: plain data, which checkpoints keep."""

    name: str
    bytes: int


class RowFilesSink(Sink[Any]):
    """Writes rows, tuples or dicts into files below an address."""

    def __init__(self, address: str, row_type: RowType, *, file_bytes: int = _FILE_BYTES) -> None:
        self._address = address
        self._row_type = row_type
        self._file_bytes = file_bytes
        self._found: RowType | None = None  # the columns of the batches that the writers get

    def with_columns(self, row_type: RowType) -> RowFilesSink | None:
        """Return this sink for batches of columns; None if their types are not those of the files."""
        if written_columns(row_type, self._row_type, utc=True) is None:
            return None
        sink = RowFilesSink(self._address, self._row_type, file_bytes=self._file_bytes)
        sink._found = row_type
        return sink

    def create_writer(self, context: WriterContext, restored: Sequence[Any]) -> SinkWriter[Any, PendingRows]:
        """Create the writer of one subtask. It restores nothing: a file never spans a checkpoint."""
        writer = _RowFileWriter(open_files(self._address), self._row_type, context.subtask_index, self._file_bytes)
        if self._found is not None:
            writer.take_columns(self._found)
        return writer

    def create_committer(self) -> Committer[PendingRows]:
        """Create the committer, which publishes marks."""
        return _RowFileCommitter(open_files(self._address), columns_text(self._row_type))

    def __repr__(self) -> str:
        return f"RowFilesSink({shown(self._address)!r})"


def marked_files(files: FileStore, known: set[str] | frozenset[str] = frozenset()) -> list[RowFile]:
    """Return the files that have a mark, in the order of their names, without the known ones."""
    found: list[RowFile] = []
    for mark in files.list(MARKS):
        if mark.removesuffix(".json") in known or not mark.endswith(".json"):
            continue
        # A reader has added the file to a log and removed its mark since it was listed.
        with contextlib.suppress(FileNotFoundError):
            found += parse_manifest(files.read(f"{MARKS}/{mark}"), f"{files.url}/{MARKS}/{mark}").files
    return found


class _RowFileCommitter(Committer[PendingRows]):
    def __init__(self, files: FileStore, columns: str) -> None:
        self._files = files
        self._columns = columns

    def commit(self, committables: Sequence[PendingRows]) -> None:
        for pending in committables:
            point("row-file-mark")
            content = manifest_bytes(Manifest((RowFile(pending["name"], pending["bytes"]),), self._columns))
            with contextlib.suppress(FileExistsError):  # the file was committed before, and a restore commits it again
                self._files.publish(f"{MARKS}/{pending['name']}.json", content)


class _RowFileWriter(SinkWriter[Any, PendingRows]):
    def __init__(self, files: FileStore, row_type: RowType, subtask_index: int, file_bytes: int) -> None:
        self._files = files
        self._row_type = row_type
        self._columns = RowColumns(row_type)
        # The uid is new for every writer, so no attempt has used a name before.
        self._name_start = f"part-{subtask_index}-{uuid.uuid4()}-"
        self._counter = 0
        self._file_bytes = file_bytes
        self._records: list[Any] = []
        self._batches: list[Any] = []
        self._batch_bytes = 0
        self._target = io.BytesIO()
        self._writer: Any = None
        self._pending: list[PendingRows] = []

    def write(self, value: Any, timestamp: int | None) -> None:  # hot
        self._records.append(value)
        if len(self._records) >= _BATCH_ROWS:
            self._convert()

    def take_columns(self, found: RowType) -> None:
        """Be ready for batches of columns."""
        self._arrays, self._found = written_columns(found, self._row_type, utc=True), RowColumns(found)

    def write_batch(self, batch: WrittenBatch) -> None:
        import pyarrow

        assert self._arrays is not None, "`with_columns` has asked for the same"
        schema = self._columns.schema
        try:
            data = pyarrow.RecordBatch.from_arrays(self._arrays(batch.data), schema=schema)
            if any(not field.nullable and each.null_count for field, each in zip(schema, data.columns, strict=True)):
                raise ValueError("a null where none is allowed")
        except ValueError:  # Arrow's errors too
            data = self._by_rows(batch.data)
        self._keep(data)

    def _by_rows(self, data: Any) -> Any:
        try:
            return self._columns.batch(self._found.rows(data))
        except RecordTypeError as error:
            raise RecordFormatError("files for Spark", error.reason, error.value_preview) from None

    def _convert(self) -> None:
        if not self._records:
            return
        records, self._records = self._records, []
        self._keep(self._columns.batch(records))

    def _keep(self, batch: Any) -> None:
        self._batches.append(batch)
        self._batch_bytes += batch.nbytes
        if self._batch_bytes >= min(_GROUP_BYTES, self._file_bytes):
            self._write_group()
            if self._target.tell() >= self._file_bytes:
                self._end_file()

    def _write_group(self) -> None:
        import pyarrow
        import pyarrow.parquet

        if not self._batches:
            return
        if self._writer is None:
            self._writer = pyarrow.parquet.ParquetWriter(self._target, self._columns.schema, compression="snappy")
        self._writer.write_table(pyarrow.Table.from_batches(self._batches, schema=self._columns.schema))
        self._batches, self._batch_bytes = [], 0

    def _end_file(self) -> None:
        if self._writer is None:
            return
        self._writer.close()
        data = self._target.getvalue()
        name = f"{self._name_start}{self._counter}.parquet"
        self._counter += 1
        self._files.write(f"{DATA}/{name}", data)
        self._pending.append({"name": name, "bytes": len(data)})
        self._writer, self._target = None, io.BytesIO()

    def prepare_commit(self) -> list[PendingRows]:
        self._convert()
        self._write_group()
        self._end_file()
        pending, self._pending = self._pending, []
        return pending

    def close(self) -> None:
        for pending in self._pending:  # no checkpoint contains these files
            with contextlib.suppress(OSError):  # a file without a mark does no harm
                self._files.delete(f"{DATA}/{pending['name']}")
        self._pending, self._records, self._batches, self._writer = [], [], [], None
