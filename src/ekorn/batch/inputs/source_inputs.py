"""Inputs that bounded sources of the DataStream API read: files, databases, lakes, Kafka up to an offset."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ekorn.columns.arrow_columns import load_arrow
from ekorn.columns.row_columns import row_type_of_arrow
from ekorn.connectors.files.stream_formats import FileFormat
from ekorn.connectors.formats.avro_container import Container
from ekorn.errors import ConfigurationError, MalformedInputError, MalformedRecordError
from ekorn.functions.source_contract import Source, Split, SplitReader
from ekorn.storage.input_files import InputFile, list_files, open_input
from ekorn.storage.locations import shown
from ekorn.types.avro_schema import AvroSchema
from ekorn.types.data_types import RowType

__all__ = ["BoundedSourceInput", "FileInput", "records_of", "row_type_of_parquet", "schema_of_avro"]

_RECURSIVE = "recursive.file.enumeration"
_SMALLEST_RANGE = 1 << 20
_LARGEST_RANGE = 64 << 20
_RECORDS_AT_A_TIME = 2048
_PAUSE_SECONDS = 0.01


@dataclass(frozen=True, eq=False)
class BoundedSourceInput:
    """The records of a source that ends."""

    source: Source

    def splits(self, parallelism: int, parameters: Mapping[str, str]) -> Sequence[SourceSplit]:
        """Return the splits that the source has now."""
        connection = self.source.connect(0)
        try:
            found = connection.discover_splits(parallelism, first=True)
            return [SourceSplit(self.source, split) for split in found]
        finally:
            connection.close()


@dataclass(frozen=True, eq=False)
class SourceSplit:
    """One split of a source."""

    source: Source
    split: Split

    def read(self) -> Iterator[Any]:
        """Yield the records, over a connection of its own."""
        connection = self.source.connect(0)
        try:
            yield from records_of(connection.create_reader(self.split, None))
        finally:
            connection.close()


def records_of(reader: SplitReader, *, skips_malformed: bool = False) -> Iterator[Any]:
    """Yield all records of a reader, then close it.

    Args:
        reader: The reader.
        skips_malformed: Whether content that is not a record is skipped. Otherwise its error is raised.
    """
    try:
        while not reader.finished:
            batch = reader.read(_RECORDS_AT_A_TIME)
            if batch.malformed and not skips_malformed:
                raise _without_options_of_streams(batch.malformed[0].error)
            if not batch.values and not batch.malformed and not reader.finished:
                time.sleep(_PAUSE_SECONDS)  # the system has no records at the moment
            yield from batch.values
    finally:
        reader.close()


def _without_options_of_streams(error: Exception) -> Exception:
    """Return the error about malformed content with the advice for DataSet programs."""
    return MalformedInputError(*error.args) if isinstance(error, MalformedRecordError) else error


class FileInput:
    """The records of files and of the files in directories, divided so that every subtask has something to read.

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


def row_type_of_parquet(address: str) -> RowType:
    """Return the columns of a Parquet file, or of the first one in a directory."""
    load_arrow("Parquet")
    import pyarrow.parquet

    first = _first_file(address)
    with open_input(first) as stream:
        try:
            return row_type_of_arrow(pyarrow.parquet.read_schema(stream))
        except (pyarrow.ArrowInvalid, OSError) as error:
            raise ConfigurationError(f"cannot read {shown(first)!r} as Parquet: {error}") from None


def schema_of_avro(address: str) -> AvroSchema:
    """Return the schema of an Avro file, or of the first one in a directory."""
    return AvroSchema.parse_string(Container(_first_file(address)).document)


def _first_file(address: str) -> str:
    files = _files_below(address, recursive=True)
    if not files:
        raise ConfigurationError(f"{shown(address)!r} has no files, so its columns are unknown; give the type")
    return files[0].address
