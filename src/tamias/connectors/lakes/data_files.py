"""Parquet files below a table's location that no reader sees until a commit names them."""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence
from typing import IO, Any, TypedDict

from tamias.connectors.formats.schemas import BulkWriterFactory
from tamias.functions.sink_contract import SinkWriter


class DataFile(TypedDict):
    """A finished file. Checkpoints hold it as a plain dict."""

    path: str
    size_bytes: int
    row_count: int


class DataFileWriter(SinkWriter[Any, DataFile]):
    """Writes the rows of one subtask, to one file per checkpoint. Failed attempts leave files that no commit names."""

    def __init__(self, folder: str, factory: BulkWriterFactory, subtask_index: int) -> None:
        self._folder = folder
        self._factory = factory
        self._subtask_index = subtask_index
        self._path = ""
        self._stream: IO[bytes] | None = None
        self._writer: Any = None
        self._row_count = 0

    def write(self, value: Any, timestamp: int | None) -> None:
        """Write one row."""
        if self._stream is None:
            self._begin()
        self._writer.add_element(value)
        self._row_count += 1

    def _begin(self) -> None:
        os.makedirs(self._folder, exist_ok=True)
        self._path = os.path.join(self._folder, f"part-{self._subtask_index:05}-{uuid.uuid4()}.parquet")
        self._stream = open(self._path, "xb")  # noqa: SIM115 - it is closed at the next checkpoint
        self._writer = self._factory.create(self._stream)

    def prepare_commit(self) -> Sequence[DataFile]:
        """End the file and make it durable."""
        if self._stream is None:
            return ()
        self._writer.finish()
        self._stream.flush()
        os.fsync(self._stream.fileno())
        size_bytes = self._stream.tell()
        self._stream.close()
        _sync_folder(self._folder)
        prepared: DataFile = {"path": self._path, "size_bytes": size_bytes, "row_count": self._row_count}
        self._stream, self._writer, self._row_count = None, None, 0
        return [prepared]

    def close(self) -> None:
        """Remove the file that no checkpoint names."""
        if self._stream is not None:
            self._writer = None  # before its stream: pyarrow's writer ends the file when it is dropped
            self._stream.close()
            os.unlink(self._path)
            self._stream = None


def _sync_folder(folder: str) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
