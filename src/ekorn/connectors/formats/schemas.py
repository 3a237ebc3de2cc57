"""Schemas: convert records to bytes and back, for sources and sinks of bytes."""

from __future__ import annotations

import codecs
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from ekorn.errors import ConfigurationError, RecordTypeError, preview
from ekorn.types.data_types import RowType
from ekorn.types.factory import Types
from ekorn.types.record_text import record_file_text
from ekorn.types.type_information import TypeInformation

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "BulkWriter",
    "BulkWriterFactory",
    "ByteArraySchema",
    "ColumnBulkWriter",
    "ColumnBulkWriterFactory",
    "ColumnEncoder",
    "DeserializationSchema",
    "Encoder",
    "RowFieldExtractorSchema",
    "SerializationSchema",
    "SimpleStringSchema",
]

T = TypeVar("T")
ColumnEncoder = Callable[["pa.RecordBatch"], "list[bytes | None]"]


class SerializationSchema(ABC, Generic[T]):
    """Turns a record into bytes."""

    @abstractmethod
    def serialize(self, value: T) -> bytes | None:
        """Return the bytes of a record."""

    def column_encoder(self, row_type: RowType) -> ColumnEncoder | None:
        """Return the function that makes the bytes of all rows of a record batch; None if the schema takes records.

        The bytes are those of `serialize`. The function raises a `RecordFormatError` for a row without bytes.
        """
        return None


class DeserializationSchema(ABC, Generic[T]):
    """Turns bytes into a record."""

    @abstractmethod
    def deserialize(self, message: bytes) -> T | None:
        """Return the record of these bytes, or None to skip the message."""

    def is_end_of_stream(self, next_element: T) -> bool:
        """Return whether this record ends the stream; such a record is not emitted."""
        return False

    def get_produced_type(self) -> TypeInformation | None:
        """Return the type of the records, or None if it is unknown."""
        return None


class SimpleStringSchema(SerializationSchema[Any], DeserializationSchema[str]):
    """Converts text in a charset. A record that is not text is written as text sinks write it.

    >>> SimpleStringSchema().serialize("a")
    b'a'
    """

    def __init__(self, charset: str = "UTF-8") -> None:
        self._charset = _known_charset(charset)
        self._type_info: TypeInformation | None = None

    @property
    def charset(self) -> str:
        """The charset of the text."""
        return self._charset

    def with_type(self, type_info: TypeInformation | None) -> SimpleStringSchema:
        """Return a schema that writes records of this declared type in their text form."""
        schema = SimpleStringSchema(self._charset)
        schema._type_info = type_info
        return schema

    def serialize(self, value: Any) -> bytes:
        return (value if type(value) is str else record_file_text(self._type_info, value)).encode(self._charset)

    def deserialize(self, message: bytes) -> str:
        # Flink: Java replaces bytes that are invalid in the charset, and does not fail.
        return bytes(message).decode(self._charset, errors="replace")

    def get_produced_type(self) -> TypeInformation:
        return Types.STRING()

    def __repr__(self) -> str:
        return f"SimpleStringSchema({self._charset!r})"


class ByteArraySchema(SerializationSchema[bytes], DeserializationSchema[bytes]):
    """Passes bytes through unchanged."""

    def serialize(self, value: bytes) -> bytes:
        return bytes(value)

    def deserialize(self, message: bytes) -> bytes:
        return bytes(message)

    def get_produced_type(self) -> TypeInformation:
        return Types.PRIMITIVE_ARRAY(Types.BYTE())

    def __repr__(self) -> str:
        return "ByteArraySchema()"


class RowFieldExtractorSchema(SerializationSchema[Any]):
    """Extracts one field of a row, which must hold bytes: for sinks that separate a key and a value."""

    def __init__(self, field_index: int) -> None:
        if field_index < 0:
            raise ValueError(f"Field index must be non-negative, got {field_index}")
        self._field_index = field_index

    def serialize(self, value: Any) -> bytes | None:
        if self._field_index >= len(value):
            raise RecordTypeError("a row", preview(value), f"it has no field {self._field_index}")
        field = value[self._field_index]
        if field is None:
            return None
        if not isinstance(field, bytes | bytearray):
            raise RecordTypeError(
                "a row of bytes", preview(value), f"field {self._field_index} is {preview(field, 80)}"
            )
        return bytes(field)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RowFieldExtractorSchema):
            return NotImplemented
        return self._field_index == other._field_index

    def __hash__(self) -> int:
        return hash((RowFieldExtractorSchema, self._field_index))

    def __repr__(self) -> str:
        return f"RowFieldExtractorSchema({self._field_index})"


class Encoder:
    """Writes records into a file, one after the other."""

    def __init__(self, charset: str = "UTF-8", type_info: TypeInformation | None = None) -> None:
        self._charset = _known_charset(charset)
        self._type_info = type_info

    @staticmethod
    def simple_string_encoder(charset_name: str = "UTF-8") -> Encoder:
        """Write each record as one line of text."""
        return Encoder(charset_name)

    def with_type(self, type_info: TypeInformation | None) -> Encoder:
        """Return an encoder that writes records of this declared type in their text form."""
        return Encoder(self._charset, type_info)

    def encode(self, value: Any) -> bytes:
        """Return the record as a line, with the line end."""
        return (record_file_text(self._type_info, value) + "\n").encode(self._charset)

    def __repr__(self) -> str:
        return f"Encoder.simple_string_encoder({self._charset!r})"


class BulkWriter(Protocol):
    """Collects the records of one file and writes them in a format that needs many records at once."""

    def add_element(self, element: Any) -> None:
        """Add one record."""
        ...

    def flush(self) -> None:
        """Write the records that the format can write now."""
        ...

    def finish(self) -> None:
        """Write the remaining records and the end of the format; leave the file open."""
        ...


class BulkWriterFactory(Protocol):
    """Creates a :class:`BulkWriter` for each file.

    A factory whose files have a beginning or an end of their own sets `bytes_can_be_joined = False`: a sink then
    refuses to merge its files byte by byte.
    """

    def create(self, stream: IO[bytes]) -> BulkWriter:
        """Create a writer for this open file."""
        ...


class ColumnBulkWriter(BulkWriter, Protocol):
    """A writer of rows that also takes rows as columns."""

    def add_columns(self, data: pa.RecordBatch) -> None:
        """Add the rows of a batch.

        Raises:
            RecordFormatError: A row cannot be written. No row of the batch is added then.
        """
        ...


class ColumnBulkWriterFactory(BulkWriterFactory, Protocol):
    """A factory for the sinks of columns."""

    def for_columns(self, row_type: RowType) -> ColumnBulkWriterFactory | None:
        """Return a factory whose writers are given batches of a row type; None if they are to be given rows.

        The files are those that the rows of the batches would give.
        """
        ...


def _known_charset(charset: str) -> str:
    try:
        codecs.lookup(charset)
    except LookupError:
        raise ConfigurationError(f"there is no charset named {charset!r}") from None
    return charset
