"""Compaction: a file sink merges small parts before they become visible.

With compaction, ended parts wait hidden, as part of the state of the sink. When there are enough of them in a bucket
they are written into one part, and that part is committed with the checkpoint. The parts it replaces are removed after
the commit, so a restore finds either them or the merged part.

Flink has a coordinator that merges parts of all subtasks. Here each subtask merges its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ekorn.connectors.files.part_store import PartStore
from ekorn.connectors.files.stream_formats import FileFormat
from ekorn.errors import CheckpointError, ConfigurationError, PendingFileLost
from ekorn.faults import point
from ekorn.storage.locations import shown

__all__ = [
    "Compaction",
    "ConcatFileCompactor",
    "FileCompactStrategy",
    "FileCompactor",
    "IdenticalFileCompactor",
    "RecordWiseFileCompactor",
]

_COPY_BYTES = 1 << 20


class FileCompactStrategy:
    """Decides when parts are merged; see `FileCompactStrategy.builder`."""

    def __init__(self, size_threshold: int | None, checkpoints: int | None, threads: int) -> None:
        """Create the strategy from the settings of a builder."""
        self.size_threshold = size_threshold
        self.checkpoints = checkpoints
        self.threads = threads

    @staticmethod
    def builder() -> FileCompactStrategy.Builder:
        """Begin with no condition; at least one must be set."""
        return FileCompactStrategy.Builder()

    class Builder:
        """Builds a `FileCompactStrategy`."""

        def __init__(self) -> None:
            self._size_threshold: int | None = None
            self._checkpoints: int | None = None
            self._threads = 1

        def set_size_threshold(self, size_threshold: int) -> FileCompactStrategy.Builder:
            """Merge the parts of a bucket when they have this many bytes together."""
            self._size_threshold = _above_zero("set_size_threshold", size_threshold)
            return self

        def enable_compaction_on_checkpoint(
            self, num_checkpoints_before_compaction: int
        ) -> FileCompactStrategy.Builder:
            """Merge the parts of a bucket at the latest after this many checkpoints."""
            self._checkpoints = _above_zero("enable_compaction_on_checkpoint", num_checkpoints_before_compaction)
            return self

        def set_num_compact_threads(self, num_compact_threads: int) -> FileCompactStrategy.Builder:
            """Set how many buckets are merged at the same time."""
            self._threads = _above_zero("set_num_compact_threads", num_compact_threads)
            return self

        def build(self) -> FileCompactStrategy:
            """Return the strategy."""
            if self._size_threshold is None and self._checkpoints is None:
                raise ConfigurationError(
                    "a FileCompactStrategy needs set_size_threshold() or enable_compaction_on_checkpoint()"
                )
            return FileCompactStrategy(self._size_threshold, self._checkpoints, self._threads)


class FileCompactor(ABC):
    """Merges parts."""

    @staticmethod
    def concat_file_compactor(file_delimiter: bytes | None = None) -> ConcatFileCompactor:
        """Put the bytes of parts one behind the other, with a delimiter between them."""
        return ConcatFileCompactor(file_delimiter)

    @staticmethod
    def identical_file_compactor() -> IdenticalFileCompactor:
        """Keep parts as they are: each becomes visible by itself."""
        return IdenticalFileCompactor()

    @abstractmethod
    def contents(self, files: Sequence[PartReader]) -> Iterator[Any]:
        """Yield what the merged part holds: bytes, or records if `record_wise`."""

    record_wise = False
    merges = True


class PartReader:
    """A part to be merged."""

    def __init__(self, store: PartStore, file: Any) -> None:
        self.bytes_valid: int = file["bytes"]
        self.address = store.address_of(file)
        self._store = store
        self._file = file

    def blocks(self) -> Iterator[bytes]:
        """Yield the valid bytes of the part. Bytes after them were written by a failed attempt."""
        left = self.bytes_valid
        with self._store.open_pending(self._file) as source:
            while left and (block := source.read(min(left, _COPY_BYTES))):
                left -= len(block)
                yield block
        if left:
            raise CheckpointError(f"cannot merge {self.address!r}: it is {left} bytes shorter than when it was written")


class ConcatFileCompactor(FileCompactor):
    """Puts the bytes of parts one behind the other: for formats without a beginning and an end, such as lines."""

    def __init__(self, file_delimiter: bytes | None = None) -> None:
        """Set the text between two parts."""
        self._delimiter = file_delimiter

    def contents(self, files: Sequence[PartReader]) -> Iterator[bytes]:
        for number, file in enumerate(files):
            if number and self._delimiter:
                yield self._delimiter
            yield from file.blocks()


class RecordWiseFileCompactor(FileCompactor):
    """Reads the records of parts and writes them again: for formats with a beginning and an end, such as Parquet.

    FileSink.for_bulk_format(base, ParquetBulkWriters.for_row_type(row_type)).enable_compact(
        strategy, RecordWiseFileCompactor(ParquetColumnarRowInputFormat(row_type)))
    """

    record_wise = True

    def __init__(self, file_format: FileFormat) -> None:
        """Set the format that reads what the sink writes."""
        if not isinstance(file_format, FileFormat):
            raise TypeError(f"RecordWiseFileCompactor takes a format such as CsvReaderFormat, got {file_format!r}")
        self._format = file_format

    def contents(self, files: Sequence[PartReader]) -> Iterator[Any]:
        for file in files:
            reader = self._format.create_reader(file.address, 0, file.bytes_valid, None)
            try:
                while not reader.finished:
                    batch = reader.read(1024)
                    for malformed in batch.malformed:
                        raise malformed.error
                    yield from batch.values
            finally:
                reader.close()


class IdenticalFileCompactor(FileCompactor):
    """Keeps parts as they are."""

    merges = False

    def contents(self, files: Sequence[PartReader]) -> Iterator[Any]:
        raise AssertionError("parts that stay as they are are not merged")


class Compaction:
    """The parts of one writer that wait to be merged.

    Args:
        strategy: When to merge.
        compactor: How to merge.
        store: Where the parts are.
        write_merged: Writes contents into a new part of a bucket, durably; returns the part as checkpoints keep it.
    """

    def __init__(
        self,
        strategy: FileCompactStrategy,
        compactor: FileCompactor,
        store: PartStore,
        write_merged: Callable[[str, Iterator[Any]], Any],
    ) -> None:
        self._strategy = strategy
        self._compactor = compactor
        self._store = store
        self._write_merged = write_merged
        self.held: list[Any] = []
        self._checkpoints = 0

    def take_due(self, added: Sequence[Any], *, all_now: bool) -> list[Any]:
        """Hold the parts that a checkpoint ended; return what it commits: merged parts, or nothing yet."""
        held_before = self.held
        self.held = [*held_before, *added]
        self._checkpoints += 1
        by_bucket: dict[str, list[Any]] = {}
        for file in self.held:
            by_bucket.setdefault(self._store.bucket_of(file), []).append(file)
        on_checkpoint = self._strategy.checkpoints is not None and self._checkpoints >= self._strategy.checkpoints
        due = {b: files for b, files in by_bucket.items() if all_now or on_checkpoint or self._is_large(files)}
        if on_checkpoint:
            self._checkpoints = 0
        for file in held_before:
            if self._store.bucket_of(file) in due:
                self._check(file)
        with ThreadPoolExecutor(self._strategy.threads) as threads:
            merged = [file for files in threads.map(self._merge, due.items()) for file in files]
        self.held = [file for bucket, files in by_bucket.items() if bucket not in due for file in files]
        return merged

    def _is_large(self, files: list[Any]) -> bool:
        threshold = self._strategy.size_threshold
        return threshold is not None and sum(file["bytes"] for file in files) >= threshold

    def _check(self, file: Any) -> None:
        """Raise `PendingFileLost` unless a part that an earlier checkpoint refers to is whole.

        No attempt would write it again, unlike the parts of this checkpoint.
        """
        found = self._store.bytes_of(file)
        if found is None or found < file["bytes"]:
            pending = f"the pending file {shown(self._store.address_of(file))!r}"
            raise PendingFileLost(file["visible"], pending, file["bytes"], found, waits=True)

    def _merge(self, bucket: tuple[str, list[Any]]) -> list[Any]:
        bucket_id, files = bucket
        if len(files) == 1 or not self._compactor.merges:
            return files
        point("sink-compact")
        readers = [PartReader(self._store, file) for file in files]
        merged = self._write_merged(bucket_id, self._compactor.contents(readers))
        return [merged | {"replaces": files}]


def _above_zero(call: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        raise ValueError(f"{call}() takes a whole number above 0, got {value!r}")
    return value
