"""Parts of bulk formats: a part file with the writer of a format above it."""

from __future__ import annotations

from typing import IO, Any, cast

from ekorn.connectors.files.part_store import WrittenPart
from ekorn.connectors.formats.schemas import BulkWriter, BulkWriterFactory

__all__ = ["BulkPart"]


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
