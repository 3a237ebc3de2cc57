"""Avro files: `AvroInputFormat` reads generic records, which are dicts, and `AvroBulkWriters` writes them."""

from __future__ import annotations

import os
from io import BytesIO
from typing import IO, Any

from ekorn.connectors.files.file_source import FileEnumeratorProvider, FileSource
from ekorn.connectors.files.stream_formats import BulkFormat, InputFormat
from ekorn.connectors.formats.avro_codec import parsed, read_datum, without_logical_types
from ekorn.connectors.formats.avro_container import Block, Container, ContainerWriter
from ekorn.connectors.formats.schemas import BulkWriterFactory
from ekorn.errors import ConfigurationError, RecordFormatError
from ekorn.functions.source_contract import Batch, Source, SplitReader
from ekorn.storage.locations import shown
from ekorn.types.avro_schema import AvroSchema, GenericRecordAvroTypeInfo

__all__ = ["AvroBulkWriters", "AvroInputFormat", "AvroReaderFormat"]


class AvroReaderFormat(BulkFormat):
    """Reads generic records from Avro files of any schema that resolves to the given one.

    FileSource.for_bulk_file_format(AvroReaderFormat.for_generic_record(schema), "/data/in").build()
    """

    def __init__(self, schema: AvroSchema) -> None:
        """Create the format; `AvroReaderFormat.for_generic_record` is the way of programs."""
        self._schema = schema

    @staticmethod
    def for_generic_record(schema: AvroSchema) -> AvroReaderFormat:
        """Read records of a schema; records that were written with another one are resolved to it."""
        return AvroReaderFormat(checked_avro_schema(schema, "for_generic_record()"))

    def can_split(self, path: str) -> bool:
        """Return True: blocks are found by their marks."""
        return True

    def create_reader(self, path: str, start: int, end: int | None, position: Any | None) -> SplitReader:
        """Open the blocks whose marks begin in a range of bytes."""
        return _AvroReader(path, self._schema, start, end, position)

    def get_produced_type(self) -> GenericRecordAvroTypeInfo:
        """Return the type of the records."""
        return GenericRecordAvroTypeInfo(self._schema)

    def __repr__(self) -> str:
        return "AvroReaderFormat.for_generic_record(...)"


class AvroInputFormat(InputFormat):
    """Reads generic records from an Avro file or a directory of them, for `env.create_input`.

    env.create_input(AvroInputFormat("/data/in.avro", schema))
    """

    def __init__(self, path: str | os.PathLike[str], schema: AvroSchema) -> None:
        """Set the file or directory, and the schema of the records."""
        self._path = path
        self._schema = checked_avro_schema(schema, "AvroInputFormat")

    def get_produced_type(self) -> GenericRecordAvroTypeInfo:
        """Return the type of the records."""
        return GenericRecordAvroTypeInfo(self._schema)

    def create_source(self) -> Source:
        """Return the source that reads the files; large files are divided at their marks."""
        builder = FileSource.for_bulk_file_format(AvroReaderFormat(self._schema), self._path)
        return builder.set_file_enumerator(FileEnumeratorProvider.default_splittable_file_enumerator()).build()


class _AvroReader(SplitReader):
    """The position is the offset of a block, and the number of its records that were read."""

    def __init__(self, path: str, schema: AvroSchema, start: int, end: int | None, position: Any | None) -> None:
        self._path = path
        self._wanted = parsed(without_logical_types(schema.json))
        self._start = start
        self._end = end
        self._offset: int | None
        self._skip: int
        self._offset, self._skip = position if position is not None else (None, 0)
        self._container: Container | None = None
        self._block: Block | None = None
        self._buffer = BytesIO()
        self._taken = 0  # records of the block that were returned
        self._ended = False

    def read(self, max_records: int) -> Batch:
        if self._container is None:
            self._container = Container(self._path)
            self._resolves = None if self._container.schema == self._wanted else self._wanted
            if self._offset is None:
                self._offset = self._container.find_block(self._start)
        if self._block is None and not self._load(self._container):
            return Batch([])
        assert self._block is not None
        count = min(max_records, self._block.record_count - self._taken)
        buffer, written, wanted = self._buffer, self._container.schema, self._resolves
        try:
            values = [read_datum(buffer, written, wanted) for _ in range(count)]  # hot
        except RecordFormatError as error:
            raise ConfigurationError(
                f"cannot read {shown(self._path)!r} as Avro: a record of the block at byte {self._offset} "
                f"does not fit the schema: {error.reason}"
            ) from None
        self._taken += count
        if self._taken >= self._block.record_count:
            self._offset, self._taken, self._block = self._block.next_offset, 0, None
            self._ended = self._is_behind(self._offset)
        return Batch(values)

    def _load(self, container: Container) -> bool:
        """Read the next block with records; return whether there is one."""
        assert self._offset is not None
        while not self._is_behind(self._offset):
            block = container.read_block(self._offset)
            if block is None:
                break
            if block.record_count:
                self._block, self._buffer, self._taken = block, BytesIO(block.data), 0
                for _ in range(self._skip):
                    read_datum(self._buffer, container.schema, None)
                self._taken, self._skip = self._skip, 0
                return True
            self._offset = block.next_offset
        self._ended = True
        return False

    def _is_behind(self, offset: int) -> bool:
        return self._end is not None and offset - 16 >= self._end  # the mark before the block decides

    def position(self) -> tuple[int, int] | None:
        return None if self._offset is None else (self._offset, self._taken if self._block else self._skip)

    @property
    def finished(self) -> bool:
        return self._ended


class AvroBulkWriters:
    """Writes generic records, which are dicts, to Avro files.

    FileSink.for_bulk_format("/data/out", AvroBulkWriters.for_generic_record(schema)).build()
    """

    @staticmethod
    def for_generic_record(schema: AvroSchema) -> BulkWriterFactory:
        """Write records of a schema."""
        return _AvroWriterFactory(checked_avro_schema(schema, "for_generic_record()"))


class _AvroWriterFactory(BulkWriterFactory):
    bytes_can_be_joined = False

    def __init__(self, schema: AvroSchema) -> None:
        self._schema = schema

    def create(self, stream: IO[bytes]) -> ContainerWriter:
        return ContainerWriter(stream, self._schema.json)

    def __repr__(self) -> str:
        return "AvroBulkWriters.for_generic_record(...)"


def checked_avro_schema(schema: Any, taken_by: str) -> AvroSchema:
    """Return an Avro schema, or raise a TypeError that shows how one is made."""
    if not isinstance(schema, AvroSchema):
        raise TypeError(f"{taken_by} takes an AvroSchema, such as AvroSchema.parse_string('...'), got {schema!r}")
    return schema
