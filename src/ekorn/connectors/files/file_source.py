"""`FileSource`: reads the records of files, once or with the files that appear later."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

from ekorn.connectors.files.file_addresses import input_address
from ekorn.connectors.files.file_bytes import need_unpacker
from ekorn.connectors.files.stream_formats import BulkFormat, FileFormat, StreamFormat
from ekorn.errors import ConfigurationError
from ekorn.functions.source_contract import Batch, Boundedness, Source, Split, SplitReader
from ekorn.storage.input_files import InputFile, list_files
from ekorn.storage.locations import join, shown
from ekorn.types.time import Duration, millis_of
from ekorn.types.type_information import TypeInformation

__all__ = ["FileEnumeratorProvider", "FileSource", "FileSourceBuilder", "FileSplitAssignerProvider", "OpenFiles"]

_RANGE_BYTES = 64 * 1024 * 1024


class FileEnumeratorProvider:
    """Divides files into splits.

    Directories are read with their subdirectories, in the order of the names. Files and directories whose names begin
    with '.' or '_' are left out.
    """

    def __init__(self, range_bytes: int | None) -> None:
        self._range_bytes = range_bytes

    @staticmethod
    def default_splittable_file_enumerator() -> FileEnumeratorProvider:
        """Divide large files into ranges that are read at the same time, and therefore not in the order of the lines.

        A source that monitors its directories does not divide files.
        """
        return FileEnumeratorProvider(_RANGE_BYTES)

    @staticmethod
    def default_non_splittable_file_enumerator() -> FileEnumeratorProvider:
        """Read each file with one reader, in order. This is the default for formats that are read record by record."""
        return FileEnumeratorProvider(None)

    def splits(self, paths: Sequence[str], file_format: FileFormat) -> list[Split]:
        """Return the splits of all present files: (path, first byte, byte behind the last one or None)."""
        found: dict[str, Split] = {}
        for path in paths:
            for file in _files_below(path):
                name = shown(file.address)  # splits become part of checkpoints, which hold no credentials
                if self._range_bytes is None or not file_format.can_split(name):
                    found[name] = Split(name, (name, 0, None))
                else:
                    found |= {split.id: split for split in _ranges(name, file.size_bytes, self._range_bytes)}
        return list(found.values())


class FileSplitAssignerProvider:
    """Assigns splits to subtasks. All files are equally near to all subtasks, so there is one assigner only."""

    @staticmethod
    def locality_aware_split_assigner() -> FileSplitAssignerProvider:
        """Return Flink's default assigner."""
        return FileSplitAssignerProvider()


class FileSourceBuilder:
    """Builds a `FileSource`; created by `FileSource.for_record_stream_format` and `for_bulk_file_format`."""

    def __init__(self, file_format: FileFormat, paths: Sequence[str], enumerator: FileEnumeratorProvider) -> None:
        self._format = file_format
        self._paths = paths
        self._interval_ms: int | None = None
        self._enumerator = enumerator

    def monitor_continuously(self, discovery_interval: Duration | timedelta | int) -> FileSourceBuilder:
        """Read the present files, then look for new files at this interval, without end.

        A file is identified by its path and read once: move it into the directory when it is complete. Files that
        were read are remembered as long as they are there, so move or delete them in time.
        """
        interval_ms = millis_of(discovery_interval)
        if interval_ms <= 0:
            raise ValueError(f"monitor_continuously() takes an interval greater than 0, got {discovery_interval!r}")
        self._interval_ms = interval_ms
        return self

    def process_static_file_set(self) -> FileSourceBuilder:
        """Read the files that exist when the job starts, then end. This is the default."""
        self._interval_ms = None
        return self

    def set_file_enumerator(self, file_enumerator: FileEnumeratorProvider) -> FileSourceBuilder:
        """Choose whether large files are divided into ranges."""
        if not isinstance(file_enumerator, FileEnumeratorProvider):
            raise TypeError(f"set_file_enumerator() takes a FileEnumeratorProvider, got {file_enumerator!r}")
        self._enumerator = file_enumerator
        return self

    def set_split_assigner(self, split_assigner: FileSplitAssignerProvider) -> FileSourceBuilder:
        """Choose how splits are assigned to subtasks; see `FileSplitAssignerProvider`."""
        if not isinstance(split_assigner, FileSplitAssignerProvider):
            raise TypeError(f"set_split_assigner() takes a FileSplitAssignerProvider, got {split_assigner!r}")
        return self

    def build(self) -> FileSource:
        """Return the source."""
        return FileSource(self._format, self._paths, self._enumerator, self._interval_ms)


class FileSource(Source):
    """Reads the records of files, given by local paths or by URLs such as `s3://bucket/in`.

        FileSource.for_record_stream_format(StreamFormat.text_line_format(), "/data/in").build()

    The subtasks look up the paths when the job runs, so every machine must see the same files under the same paths.
    """

    def __init__(
        self,
        file_format: FileFormat,
        paths: Sequence[str],
        enumerator: FileEnumeratorProvider,
        interval_ms: int | None,
    ) -> None:
        """Create the source from the settings of a `FileSourceBuilder`."""
        self._format = file_format
        self._open_files = OpenFiles()
        self._paths = tuple(paths)
        self._enumerator = enumerator
        self._interval_ms = interval_ms

    @staticmethod
    def for_record_stream_format(stream_format: StreamFormat, *paths: str | os.PathLike[str]) -> FileSourceBuilder:
        """Begin to build a source of files and of directories with their subdirectories."""
        if not isinstance(stream_format, StreamFormat):
            raise TypeError(
                "for_record_stream_format() takes a format such as StreamFormat.text_line_format(), "
                f"followed by paths, got {stream_format!r}"
            )
        enumerator = FileEnumeratorProvider.default_non_splittable_file_enumerator()
        return FileSourceBuilder(stream_format, _addresses(paths, "for_record_stream_format()"), enumerator)

    @staticmethod
    def for_bulk_file_format(bulk_format: BulkFormat, *paths: str | os.PathLike[str]) -> FileSourceBuilder:
        """Begin to build a source of files that are read in batches; large files are divided."""
        if not isinstance(bulk_format, BulkFormat):
            raise TypeError(
                "for_bulk_file_format() takes a format such as ParquetColumnarRowInputFormat(row_type), "
                f"followed by paths, got {bulk_format!r}"
            )
        enumerator = FileEnumeratorProvider.default_splittable_file_enumerator()
        return FileSourceBuilder(bulk_format, _addresses(paths, "for_bulk_file_format()"), enumerator)

    @property
    def boundedness(self) -> Boundedness:
        """Return BOUNDED unless the source monitors its directories."""
        return Boundedness.BOUNDED if self._interval_ms is None else Boundedness.CONTINUOUS_UNBOUNDED

    @property
    def discovery_interval_ms(self) -> int | None:
        """Return the interval at which the source looks for new files."""
        return self._interval_ms

    @property
    def forgets_vanished_splits(self) -> bool:
        """Return whether files that are gone are forgotten: in a source that monitors its directories."""
        return self._interval_ms is not None

    def get_produced_type(self) -> TypeInformation | None:
        """Return the type of the format's records."""
        return self._format.get_produced_type()

    def discover_splits(self, parallelism: int) -> Sequence[Split]:
        """Return the splits of the present files, in the order of the given paths and of the names below each."""
        enumerator = self._enumerator
        if self._interval_ms is not None:
            # A file that grew since it was last seen would be divided now, and its lines would be read twice.
            enumerator = FileEnumeratorProvider.default_non_splittable_file_enumerator()
        return enumerator.splits(self._paths, self._format)

    def create_reader(self, split: Split, position: Any | None) -> SplitReader:
        """Open one file, or a range of it."""
        name, start, end = split.what
        reader = self._format.create_reader(self._address_of(name), start, end, position)
        return self._open_files.limited(reader)

    def _address_of(self, name: str) -> str:
        """Return the address of a file by its shown name: with the credentials of the path that the file is below."""
        for path in self._paths:
            root = shown(path)
            if name == root:
                return path
            if name.startswith(root.rstrip("/") + "/"):
                return join(path, name[len(root.rstrip("/")) + 1 :])
        return name

    def __repr__(self) -> str:
        return f"FileSource({self._format!r}, {', '.join(repr(shown(path)) for path in self._paths)})"


def _addresses(paths: Sequence[str | os.PathLike[str]], taken_by: str) -> list[str]:
    if not paths:
        raise ConfigurationError(f"{taken_by} takes at least one path after the format")
    return [need_unpacker(input_address(path, taken_by)) for path in paths]


def _files_below(path: str) -> list[InputFile]:
    try:
        return list_files(path, skip=lambda name: name.startswith((".", "_")))
    except FileNotFoundError:
        raise ConfigurationError(
            f"cannot read {shown(path)!r}: there is no such file or directory on the machine that runs the source"
        ) from None


def _ranges(name: str, size_bytes: int, range_bytes: int) -> Iterator[Split]:
    """Divide a file into ranges of bytes. A line is read with the range in which it begins."""
    if size_bytes < 2 * range_bytes:
        yield Split(name, (name, 0, None))
        return
    count = size_bytes // range_bytes
    for number in range(count):
        start = number * range_bytes
        end = start + range_bytes if number + 1 < count else None
        yield Split(f"{name}:{start}", (name, start, end))


_MOST = 16


class OpenFiles:
    """The readers of one source in one process that hold resources."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._holders: set[int] = set()

    def limited(self, reader: SplitReader) -> SplitReader:
        """Return a reader that waits while too many others are open; a reader that holds nothing is returned itself."""
        return _Limited(reader, self) if reader.holds_file else reader

    def take(self, holder: int) -> bool:
        """Return whether a reader may be open."""
        if holder not in self._holders and len(self._holders) >= self._most:
            return False
        self._holders.add(holder)
        return True

    def release(self, holder: int) -> None:
        """Let another reader be open."""
        self._holders.discard(holder)

    def __getstate__(self) -> int:
        return self._most

    def __setstate__(self, most: int) -> None:
        self.__init__(most)  # type: ignore[misc]  # what is open belongs to the process


class _Limited(SplitReader):
    def __init__(self, reader: SplitReader, open_files: OpenFiles) -> None:
        self._reader = reader
        self._open_files = open_files

    def read(self, max_records: int) -> Batch:
        if self._reader.finished or not self._open_files.take(id(self)):
            return Batch([])
        batch = self._reader.read(max_records)
        if self._reader.finished:
            self.close()
        return batch

    def position(self) -> Any:
        return self._reader.position()

    @property
    def finished(self) -> bool:
        return self._reader.finished

    def close(self) -> None:
        self._reader.close()
        self._open_files.release(id(self))
