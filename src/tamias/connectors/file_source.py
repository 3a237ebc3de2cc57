"""A source of the records in files: a directory's files now, or those that appear in it too."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

from tamias.connectors.file_bytes import is_packed
from tamias.connectors.local_path import local_path
from tamias.connectors.text_lines import TextLineReader, checked_charset, text_type
from tamias.errors import ConfigurationError
from tamias.functions.source_contract import Boundedness, Source, Split, SplitReader
from tamias.types.time import Duration, millis_of
from tamias.types.type_information import TypeInformation

__all__ = ["FileEnumeratorProvider", "FileSource", "FileSourceBuilder", "FileSplitAssignerProvider", "StreamFormat"]

_RANGE_BYTES = 64 * 1024 * 1024


class StreamFormat(ABC):
    """How the records of a file are read, one after the other."""

    @staticmethod
    def text_line_format(charset_name: str = "UTF-8") -> StreamFormat:
        r"""Lines of text. A line ends with \n, \r\n or \r, or with the file; its end is not part of the record.

        Files ending in .gz, .gzip, .bz2, .xz or .deflate are unpacked.

        Args:
            charset_name: what the files are written in. Bytes that are not of that charset fail the job.
        """
        # Flink: puts a replacement character for such bytes, so that text read with the wrong charset is lost quietly.
        return _TextLineFormat(checked_charset(charset_name))

    @abstractmethod
    def can_split(self, path: str) -> bool:
        """Whether several readers may read parts of this file."""

    @abstractmethod
    def create_reader(self, path: str, start: int, end: int | None, position: Any | None) -> SplitReader:
        """Open the records that begin in a range of bytes of a file, at a position taken by an earlier reader."""

    @abstractmethod
    def get_produced_type(self) -> TypeInformation | None:
        """The type of the records."""


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
    """How files become splits. Either way directories are read with all that is below them, in order of the names,
    without the files and directories whose names begin with '.' or '_'."""

    def __init__(self, range_bytes: int | None) -> None:
        self._range_bytes = range_bytes

    @staticmethod
    def default_splittable_file_enumerator() -> FileEnumeratorProvider:
        """Large files are cut into ranges that are read at the same time, and so not in the order of their lines.

        A source that monitors its directories does not cut them.
        """
        return FileEnumeratorProvider(_RANGE_BYTES)

    @staticmethod
    def default_non_splittable_file_enumerator() -> FileEnumeratorProvider:
        """Each file is read by one reader, in order. This is what a source does if nothing else is set."""
        return FileEnumeratorProvider(None)

    def splits(self, paths: Sequence[str], stream_format: StreamFormat) -> list[Split]:
        """The splits of all files there are now: (path, first byte, byte behind the last one or None)."""
        found: dict[str, Split] = {}
        for path in paths:
            for file in _files_below(path):
                if self._range_bytes is None or not stream_format.can_split(file):
                    found[file] = Split(file, (file, 0, None))
                else:
                    found |= {split.id: split for split in _ranges(file, self._range_bytes)}
        return list(found.values())


class FileSplitAssignerProvider:
    """Which subtask reads which split. Local files are equally near to all, so there is nothing to choose from."""

    @staticmethod
    def locality_aware_split_assigner() -> FileSplitAssignerProvider:
        """Flink's default."""
        return FileSplitAssignerProvider()


class FileSourceBuilder:
    """Builds a `FileSource`; made by `FileSource.for_record_stream_format`."""

    def __init__(self, stream_format: StreamFormat, paths: Sequence[str]) -> None:
        self._format = stream_format
        self._paths = paths
        self._interval_ms: int | None = None
        self._enumerator = FileEnumeratorProvider.default_non_splittable_file_enumerator()

    def monitor_continuously(self, discovery_interval: Duration | timedelta | int) -> FileSourceBuilder:
        """Read the files there are, then look for new ones in this interval, without end.

        A file is known by its path and read once: move it into the directory when it is complete.
        """
        interval_ms = millis_of(discovery_interval)
        if interval_ms <= 0:
            raise ValueError(f"monitor_continuously() takes an interval above 0, got {discovery_interval!r}")
        self._interval_ms = interval_ms
        return self

    def process_static_file_set(self) -> FileSourceBuilder:
        """Read the files there are when the job starts, and end. This is the default."""
        self._interval_ms = None
        return self

    def set_file_enumerator(self, file_enumerator: FileEnumeratorProvider) -> FileSourceBuilder:
        """Choose whether large files are cut into ranges."""
        if not isinstance(file_enumerator, FileEnumeratorProvider):
            raise TypeError(f"set_file_enumerator() takes a FileEnumeratorProvider, got {file_enumerator!r}")
        self._enumerator = file_enumerator
        return self

    def set_split_assigner(self, split_assigner: FileSplitAssignerProvider) -> FileSourceBuilder:
        """Choose which subtask reads what; see `FileSplitAssignerProvider`."""
        if not isinstance(split_assigner, FileSplitAssignerProvider):
            raise TypeError(f"set_split_assigner() takes a FileSplitAssignerProvider, got {split_assigner!r}")
        return self

    def build(self) -> FileSource:
        """The source."""
        return FileSource(self._format, self._paths, self._enumerator, self._interval_ms)


class FileSource(Source):
    """The records in files.

        FileSource.for_record_stream_format(StreamFormat.text_line_format(), "/data/in").build()

    Paths are looked up by the subtasks when the job runs, so every machine needs to see the same files under them.
    """

    def __init__(
        self,
        stream_format: StreamFormat,
        paths: Sequence[str],
        enumerator: FileEnumeratorProvider,
        interval_ms: int | None,
    ) -> None:
        """Take what a `FileSourceBuilder` gathered."""
        self._format = stream_format
        self._paths = tuple(paths)
        self._enumerator = enumerator
        self._interval_ms = interval_ms

    @staticmethod
    def for_record_stream_format(stream_format: StreamFormat, *paths: str | os.PathLike[str]) -> FileSourceBuilder:
        """Start to build a source of files and of directories with all that is below them."""
        if not isinstance(stream_format, StreamFormat):
            raise TypeError(
                "for_record_stream_format() takes a format such as StreamFormat.text_line_format() "
                f"and then paths, got {stream_format!r}"
            )
        if not paths:
            raise ConfigurationError("for_record_stream_format() takes at least one path behind the format")
        return FileSourceBuilder(stream_format, [local_path(path, "for_record_stream_format()") for path in paths])

    @property
    def boundedness(self) -> Boundedness:
        """Bounded unless it monitors its directories."""
        return Boundedness.BOUNDED if self._interval_ms is None else Boundedness.CONTINUOUS_UNBOUNDED

    @property
    def discovery_interval_ms(self) -> int | None:
        """How often to look for new files."""
        return self._interval_ms

    def get_produced_type(self) -> TypeInformation | None:
        """The type of the format's records."""
        return self._format.get_produced_type()

    def discover_splits(self, parallelism: int) -> Sequence[Split]:
        """The files there are now, in order of the paths given and the names below each."""
        enumerator = self._enumerator
        if self._interval_ms is not None:
            # A file that grew since it was last seen would be cut otherwise, and what was read be read again.
            enumerator = FileEnumeratorProvider.default_non_splittable_file_enumerator()
        return enumerator.splits(self._paths, self._format)

    def create_reader(self, split: Split, position: Any | None) -> SplitReader:
        """A reader of one file or of a range of it."""
        path, start, end = split.what
        return self._format.create_reader(path, start, end, position)

    def __repr__(self) -> str:
        return f"FileSource({self._format!r}, {', '.join(map(repr, self._paths))})"


def _files_below(path: str) -> Iterator[str]:
    """A file itself, or the files below a directory that are not hidden, in order of their paths' parts."""
    if os.path.isfile(path):
        yield path
    elif os.path.isdir(path):
        yield from _walk(path, ())
    else:
        raise ConfigurationError(
            f"cannot read {path!r}: there is no such file or directory on the machine that runs the source"
        )


def _walk(directory: str, parents: tuple[str, ...]) -> Iterator[str]:
    identity = os.path.realpath(directory)
    if identity in parents:
        return  # a link to a directory above it
    for name in sorted(os.listdir(directory)):
        if name.startswith((".", "_")):
            continue
        path = os.path.join(directory, name)
        if os.path.isdir(path):
            yield from _walk(path, (*parents, identity))
        elif os.path.isfile(path):
            yield path


def _ranges(path: str, range_bytes: int) -> Iterator[Split]:
    """A file in ranges of bytes. Lines do not end there: a line is read with the range it begins in."""
    size = os.path.getsize(path)
    if size < 2 * range_bytes:
        yield Split(path, (path, 0, None))
        return
    count = size // range_bytes
    for number in range(count):
        start = number * range_bytes
        end = start + range_bytes if number + 1 < count else None
        yield Split(f"{path}:{start}", (path, start, end))
