"""Files by path or URL, divided so that every subtask has something to read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ekorn.batch.inputs.bounded_source import records_of
from ekorn.connectors.files.stream_formats import FileFormat
from ekorn.errors import ConfigurationError
from ekorn.storage.input_files import InputFile, list_files
from ekorn.storage.locations import shown

__all__ = ["FileInput"]

_RECURSIVE = "recursive.file.enumeration"
_SMALLEST_RANGE = 1 << 20
_LARGEST_RANGE = 64 << 20


class FileInput:
    """The records of files and of the files in directories.

    Files whose names begin with '.' or '_' are left out, and so are subdirectories, unless the parameter
    `recursive.file.enumeration` of the operator is true.

    Args:
        file_format: Reads the records of a file.
        addresses: Files and directories.
        skips_malformed: Whether content that is not a record is passed over. Otherwise it fails the job.
    """

    def __init__(self, file_format: FileFormat, addresses: Sequence[str], *, skips_malformed: bool = False) -> None:
        self._format = file_format
        self._addresses = tuple(addresses)
        self._skips_malformed = skips_malformed

    def splits(self, parallelism: int, parameters: Mapping[str, str]) -> Sequence[FileRange]:
        """Return ranges of files. A file of a format that can be divided has several if it is large.

        Raises:
            ConfigurationError: A path does not exist.
        """
        recursive = parameters.get(_RECURSIVE, "false").lower() == "true"
        files = [file for address in self._addresses for file in _files_below(address, recursive=recursive)]
        share = sum(file.size_bytes for file in files) // parallelism
        range_bytes = min(max(share, _SMALLEST_RANGE), _LARGEST_RANGE)
        ranges: list[FileRange] = []
        for file in files:
            count = file.size_bytes // range_bytes if self._format.can_split(shown(file.address)) else 1
            for number in range(max(count, 1)):
                end = (number + 1) * range_bytes if number + 1 < count else None
                ranges.append(FileRange(self._format, file.address, number * range_bytes, end, self._skips_malformed))
        return ranges


@dataclass(frozen=True)
class FileRange:
    """The records that begin in a range of bytes of a file; the end is None for all up to the end of the file."""

    file_format: FileFormat
    address: str = field(repr=False)  # may hold credentials
    start: int
    end: int | None
    skips_malformed: bool

    def read(self) -> Iterator[Any]:
        """Yield the records."""
        reader = self.file_format.create_reader(self.address, self.start, self.end, None)
        return records_of(reader, skips_malformed=self.skips_malformed)


def _files_below(address: str, *, recursive: bool) -> list[InputFile]:
    try:
        return list_files(address, recursive=recursive, skip=lambda name: name.startswith((".", "_")))
    except FileNotFoundError:
        raise ConfigurationError(f"cannot read {shown(address)!r}: there is no such file or directory") from None
