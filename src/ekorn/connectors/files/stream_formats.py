"""Formats of files for `FileSource`: record by record (`StreamFormat`), or many records at a time (`BulkFormat`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from ekorn.connectors.files.file_bytes import is_packed
from ekorn.connectors.files.text_lines import TextLineReader, checked_charset, text_type
from ekorn.functions.source_contract import Source, SplitReader
from ekorn.types.type_information import TypeInformation

__all__ = ["BulkFormat", "FileFormat", "InputFormat", "StreamFormat"]


class FileFormat(ABC):
    """Reads the records of files."""

    @abstractmethod
    def can_split(self, path: str) -> bool:
        """Return whether several readers may read parts of this file."""

    @abstractmethod
    def create_reader(self, path: str, start: int, end: int | None, position: Any | None) -> SplitReader:
        """Open the records that begin in a range of bytes of a file, at the start or at the position of a reader."""

    @abstractmethod
    def get_produced_type(self) -> TypeInformation | None:
        """Return the type of the records."""


class StreamFormat(FileFormat):
    """Reads the records of a file, one after the other."""

    @staticmethod
    def text_line_format(charset_name: str = "UTF-8") -> StreamFormat:
        r"""Read lines of text. A line ends with \n, \r\n or \r, or at the end of the file; a record has no line end.

        Files that end in .gz, .gzip, .bz2, .xz, .deflate or .zst are decompressed.

        Args:
            charset_name: The charset of the files. Bytes that are not valid in it fail the job.
        """
        # Flink: replaces invalid bytes by a replacement character, so a wrong charset loses text without an error.
        return _TextLineFormat(checked_charset(charset_name))


class BulkFormat(FileFormat):
    """Reads the records of a file in batches."""


class InputFormat(ABC):
    """Input that `env.create_input` reads to its end."""

    @abstractmethod
    def create_source(self) -> Source:
        """Return the source of the records."""

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
