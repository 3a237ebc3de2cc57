"""Where a file sink keeps its part files: on a local file system (`part_files.py`) or by URL (`remote_parts.py`).

The parts of bulk formats are here too: a part file with the writer of a format above it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import IO, Any, Protocol, cast

from ekorn.connectors.files.part_files import PartFile, PendingFile, publish, remove_quietly
from ekorn.connectors.formats.schemas import BulkWriter, BulkWriterFactory, ColumnBulkWriter
from ekorn.errors import SinkFilesMissing

__all__ = ["BulkPart", "LocalParts", "PartStore", "PartStream", "WrittenPart"]


class WrittenPart(Protocol):
    """The part being written in one bucket, as a writer uses it; it is also a rolling policy's `PartFileInfo`."""

    saved: bool
    """Whether a checkpoint may refer to the part, which then must not be deleted."""

    def get_bucket_id(self) -> str:
        """Return the bucket of the part."""

    def get_creation_time(self) -> int:
        """Return the time at which the part was begun, in milliseconds."""

    def get_size(self) -> int:
        """Return the number of bytes written to the part."""

    def get_last_update_time(self) -> int:
        """Return the time at which a record was last written to the part, in milliseconds."""

    def write(self, data: bytes, now_ms: int) -> None:
        """Append bytes."""

    def flush(self) -> None:
        """Write what is buffered."""

    def make_durable(self) -> None:
        """Make all written bytes durable, so that a checkpoint may refer to the part."""

    def pending(self) -> Any:
        """Return the part as a checkpoint keeps it: plain data without credentials."""

    def delete(self) -> None:
        """Remove the file. No checkpoint refers to the part."""


class PartStore(Protocol):
    """One kind of storage below the base path of a sink."""

    ends_at_checkpoints: bool
    """Whether a part cannot continue after a checkpoint, because files of the storage cannot be appended to."""

    def begin(self, bucket_id: str, name: str, hidden_name: str, now_ms: int) -> WrittenPart:
        """Begin a part in the directory of a bucket: written as `hidden_name`, later visible as `name`."""

    def publish(self, files: Iterable[Any]) -> None:
        """Make parts visible and durable. A part that is visible already stays unchanged."""

    def is_visible(self, file: Any) -> bool:
        """Return whether a part is visible."""

    def check_restored(self, file: Any) -> None:
        """Raise `SinkFilesMissing` unless the bytes of a part that a checkpoint refers to exist."""

    def bytes_of(self, file: Any) -> int | None:
        """Return how many bytes of a part that is not visible yet are there; None if it is gone."""

    def open_pending(self, file: Any) -> IO[bytes]:
        """Open a part that is not visible yet, for reading."""

    def address_of(self, file: Any) -> str:
        """Return the address of a part that is not visible yet, for readers of formats."""

    def bucket_of(self, file: Any) -> str:
        """Return the bucket of a part."""

    def remove_hidden(self, file: Any) -> None:
        """Remove a part that another one replaces, if it is still there."""


class LocalParts:
    """Parts on a local file system."""

    ends_at_checkpoints = False

    def __init__(self, base_path: str) -> None:
        self._base_path = base_path

    def begin(self, bucket_id: str, name: str, hidden_name: str, now_ms: int) -> PartFile:
        directory = os.path.join(self._base_path, bucket_id)
        return PartFile(bucket_id, os.path.join(directory, hidden_name), os.path.join(directory, name), now_ms)

    def publish(self, files: Iterable[PendingFile]) -> None:
        publish(files)

    def is_visible(self, file: PendingFile) -> bool:
        return os.path.exists(file["visible"])

    def check_restored(self, file: PendingFile) -> None:
        hidden, length, found = file["hidden"], file["bytes"], self.bytes_of(file)
        if found is None:
            raise missing_part(hidden)
        if found < length:
            raise SinkFilesMissing(
                f"cannot restore the file sink: {hidden!r} has {found} bytes, but {length} were written when the "
                "checkpoint was taken; restore the file from a copy"
            )

    def bytes_of(self, file: PendingFile) -> int | None:
        try:
            return os.path.getsize(file["hidden"])
        except FileNotFoundError:
            return None

    def open_pending(self, file: PendingFile) -> IO[bytes]:
        return open(file["hidden"], "rb")

    def address_of(self, file: PendingFile) -> str:
        return file["hidden"]

    def bucket_of(self, file: PendingFile) -> str:
        directory = os.path.relpath(os.path.dirname(file["visible"]), self._base_path)
        return "" if directory == "." else directory

    def remove_hidden(self, file: PendingFile) -> None:
        remove_quietly(file["hidden"])


def missing_part(hidden: str) -> SinkFilesMissing:
    """Return the error for a part that a restored checkpoint refers to and that does not exist."""
    # Flink: refuses such a restore too.
    return SinkFilesMissing(
        f"cannot restore the file sink: {hidden!r} is missing, which was being written when the checkpoint was "
        "taken; a checkpoint cannot be restored after a later one has made its files visible: restore the latest "
        "one, or restore this one without the state of the sink, under a new uid and another base path"
    )


class BulkPart:
    """A part whose records are written by a `BulkWriter`. It ends before a checkpoint can refer to it."""

    def __init__(self, part: WrittenPart, factory: BulkWriterFactory, now_ms: int) -> None:
        self._part = part
        self._stream = PartStream(part, now_ms)
        self._writer: BulkWriter = factory.create(cast(IO[bytes], self._stream))

    @property
    def saved(self) -> bool:
        return self._part.saved

    def get_bucket_id(self) -> str:
        return self._part.get_bucket_id()

    def get_creation_time(self) -> int:
        return self._part.get_creation_time()

    def get_size(self) -> int:
        return self._part.get_size()

    def get_last_update_time(self) -> int:
        return self._stream.now_ms

    def add(self, value: Any, now_ms: int) -> None:
        """Add a record."""  # hot
        self._stream.now_ms = now_ms
        self._writer.add_element(value)

    def add_columns(self, data: Any, now_ms: int) -> None:
        """Add the rows of a record batch."""
        self._stream.now_ms = now_ms
        cast(ColumnBulkWriter, self._writer).add_columns(data)

    def finish(self) -> None:
        """Write the end of the format."""
        self._writer.finish()

    def flush(self) -> None:
        self._part.flush()

    def make_durable(self) -> None:
        self._part.make_durable()

    def pending(self) -> Any:
        return self._part.pending()

    def delete(self) -> None:
        self._stream.dropped = True
        self._part.delete()


class PartStream:
    """The part as a file that a format writes to. After the part is deleted, writes go nowhere.

    A writer that was never finished may write the end of its format when it is garbage, long after the part is gone.
    """

    closed = False

    def __init__(self, part: WrittenPart, now_ms: int) -> None:
        self._part = part
        self.now_ms = now_ms
        self.dropped = False

    def write(self, data: Any) -> int:
        found = bytes(data)
        if not self.dropped:
            self._part.write(found, self.now_ms)
        return len(found)

    def tell(self) -> int:
        return self._part.get_size()

    def flush(self) -> None:
        """Leave flushing to the sink."""

    def close(self) -> None:
        """Leave closing to the sink."""

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False
