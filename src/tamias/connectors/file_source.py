"""`FileSource`: reads the records of files, once or with the files that appear later."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

from tamias.connectors.file_addresses import input_address
from tamias.connectors.file_bytes import is_packed
from tamias.connectors.text_lines import TextLineReader, checked_charset, text_type
from tamias.errors import ConfigurationError
from tamias.functions.source_contract import Boundedness, Source, Split, SplitReader
from tamias.storage.input_files import InputFile, list_files
from tamias.storage.locations import join, shown
from tamias.types.time import Duration, millis_of
from tamias.types.type_information import TypeInformation

__all__ = ["FileEnumeratorProvider", "FileSource", "FileSourceBuilder", "FileSplitAssignerProvider", "StreamFormat"]

_RANGE_BYTES = 64 * 1024 * 1024


class StreamFormat(ABC):
    """Reads the records of a file, one after the other."""

    @staticmethod
    def text_line_format(charset_name: str = "UTF-8") -> StreamFormat:
        r"""Read lines of text. A line ends with \n, \r\n or \r, or at the end of the file; a record has no line end.

        Files that end in .gz, .gzip, .bz2, .xz or .deflate are decompressed.

        Args:
            charset_name: The charset of the files. Bytes that are not valid in it fail the job.
        """
        # Flink: puts a replacement character for invalid bytes, so that a wrong charset loses text without an error.
        return _TextLineFormat(checked_charset(charset_name))

    @abstractmethod
    def can_split(self, path: str) -> bool:
        """Return whether several readers may read parts of this file."""

    @abstractmethod
    def create_reader(self, path: str, start: int, end: int | None, position: Any | None) -> SplitReader:
        """Open the records that begin in a range of bytes of a file, at the start or at the position of a reader."""

    @abstractmethod
    def get_produced_type(self) -> TypeInformation | None:
        """Return the type of the records."""


class _TextLineFormat(StreamFormat):
    def __init__(self, charset: str) -> None:
        self._charset = charset

    def can_split(self, path: str) -> bool:
        return not is_packed(path)

    def create_reader(self, path: str, start: int, end: int | None, position: Any | None) -> SplitReader:
        return TextLineReader(path, self._charset, start=start, end=end, position=position)

    def get_produced_type(self) -> TypeInformation:
        return text_type()

    def __repr__(self) -> str:
        return f"StreamFormat.text_line_format({self._charset!r})"


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
        """Read each file with one reader, in order. This is the default."""
        return FileEnumeratorProvider(None)

    def splits(self, paths: Sequence[str], stream_format: StreamFormat) -> list[Split]:
        """Return the splits of all present files: (path, first byte, byte behind the last one or None)."""
        found: dict[str, Split] = {}
        for path in paths:
            for file in _files_below(path):
                name = shown(file.address)  # splits become part of checkpoints, which hold no credentials
                if self._range_bytes is None or not stream_format.can_split(name):
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
    """Builds a `FileSource`; created by `FileSource.for_record_stream_format`."""

    def __init__(self, stream_format: StreamFormat, paths: Sequence[str]) -> None:
        self._format = stream_format
        self._paths = paths
        self._interval_ms: int | None = None
        self._enumerator = FileEnumeratorProvider.default_non_splittable_file_enumerator()

    def monitor_continuously(self, discovery_interval: Duration | timedelta | int) -> FileSourceBuilder:
        """Read the present files, then look for new files at this interval, without end.

        A file is identified by its path and read once: move it into the directory when it is complete.
        """
        interval_ms = millis_of(discovery_interval)
        if interval_ms <= 0:
            raise ValueError(f"monitor_continuously() takes an interval above 0, got {discovery_interval!r}")
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
        stream_format: StreamFormat,
        paths: Sequence[str],
        enumerator: FileEnumeratorProvider,
        interval_ms: int | None,
    ) -> None:
        """Create the source from the settings of a `FileSourceBuilder`."""
        self._format = stream_format
        self._paths = tuple(paths)
        self._enumerator = enumerator
        self._interval_ms = interval_ms

    @staticmethod
    def for_record_stream_format(stream_format: StreamFormat, *paths: str | os.PathLike[str]) -> FileSourceBuilder:
        """Begin to build a source of files and of directories with their subdirectories."""
        if not isinstance(stream_format, StreamFormat):
            raise TypeError(
                "for_record_stream_format() takes a format such as StreamFormat.text_line_format() "
                f"and then paths, got {stream_format!r}"
            )
        if not paths:
            raise ConfigurationError("for_record_stream_format() takes at least one path after the format")
        return FileSourceBuilder(stream_format, [input_address(path, "for_record_stream_format()") for path in paths])

    @property
    def boundedness(self) -> Boundedness:
        """Return BOUNDED unless the source monitors its directories."""
        return Boundedness.BOUNDED if self._interval_ms is None else Boundedness.CONTINUOUS_UNBOUNDED

    @property
    def discovery_interval_ms(self) -> int | None:
        """Return the interval at which the source looks for new files."""
        return self._interval_ms

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
        return self._format.create_reader(self._address_of(name), start, end, position)

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
