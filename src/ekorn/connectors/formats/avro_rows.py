"""Avro messages: one row in one message, in Avro's binary form without a schema."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any

from ekorn.connectors.formats.avro_codec import AvroRows, encode_datum, parsed, read_datum
from ekorn.connectors.formats.schemas import ColumnEncoder, DeserializationSchema, SerializationSchema
from ekorn.errors import ConfigurationError, RecordFormatError, preview
from ekorn.types.avro_schema import AvroSchema
from ekorn.types.data_types import ArrayType, RowType, TimestampType
from ekorn.types.row import Row
from ekorn.types.type_information import TypeInformation

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["AvroRowDeserializationSchema", "AvroRowSerializationSchema"]


class _AvroRowSchema:
    """Both directions: a schema, and its converters, which are made again in the process that uses them."""

    def __init__(self, record_class: str | None, avro_schema_string: str | None, name: str) -> None:
        if record_class is not None:
            raise ConfigurationError(
                f"{name} cannot use the Java class {record_class!r}; give the schema: avro_schema_string='...'"
            )
        if avro_schema_string is None:
            raise ConfigurationError(f"{name} needs a schema: avro_schema_string='...'")
        self._schema = AvroSchema.parse_string(avro_schema_string)
        self._prepare()

    def _prepare(self) -> None:
        self._rows = AvroRows(self._schema)
        self._parsed = parsed(self._schema.json)

    def __getstate__(self) -> AvroSchema:
        return self._schema

    def __setstate__(self, schema: AvroSchema) -> None:
        self._schema = schema
        self._prepare()


class AvroRowDeserializationSchema(_AvroRowSchema, DeserializationSchema[Row]):
    """Reads rows from Avro records."""

    def __init__(self, record_class: str | None = None, avro_schema_string: str | None = None) -> None:
        """Create the schema.

        Args:
            record_class: A Java class; refused, because there is no JVM here.
            avro_schema_string: The schema of the records, as JSON.
        """
        super().__init__(record_class, avro_schema_string, "AvroRowDeserializationSchema")

    def deserialize(self, message: bytes) -> Row | None:
        """Return the row of a message.

        Raises:
            RecordFormatError: The message is not a record of the schema.
        """
        buffer = BytesIO(message)
        row = self._rows.to_row(read_datum(buffer, self._parsed, None))
        left = len(message) - buffer.tell()
        if left:
            raise RecordFormatError("Avro", f"there are {left} bytes after the record", preview(message))
        return row

    def get_produced_type(self) -> TypeInformation:
        """Return the type of the rows."""
        return self._rows.type_info()


class AvroRowSerializationSchema(_AvroRowSchema, SerializationSchema[Any]):
    """Writes rows as Avro records."""

    def __init__(self, record_class: str | None = None, avro_schema_string: str | None = None) -> None:
        """Create the schema.

        Args:
            record_class: A Java class; refused, because there is no JVM here.
            avro_schema_string: The schema of the records, as JSON.
        """
        super().__init__(record_class, avro_schema_string, "AvroRowSerializationSchema")

    def serialize(self, value: Any) -> bytes:
        """Return the message of a row.

        Raises:
            RecordFormatError: The row does not fit the schema.
        """
        return encode_datum(self._parsed, self._rows.to_dict(value))

    def column_encoder(self, row_type: RowType) -> ColumnEncoder | None:
        """Return the function that writes all rows of a batch, if their columns have the names of the schema."""
        names = self._rows.field_names()
        if not set(names) <= set(row_type.field_names()):
            return None
        from ekorn.columns.arrow_columns import arrow_column
        from ekorn.columns.row_columns import RowColumns

        chosen = RowType([row_type[name] for name in names])
        columns, to_dict, schema = RowColumns(chosen), self._rows.to_dict, self._parsed
        plain = all(
            arrow_column(each, utc=True).from_arrow is None and not isinstance(each, TimestampType | ArrayType)
            for each in chosen.field_types()
        )

        def encode(batch: pa.RecordBatch) -> list[bytes | None]:
            if plain:
                return [encode_datum(schema, each) for each in batch.select(names).to_pylist()]
            return [encode_datum(schema, to_dict(row)) for row in columns.rows(batch)]

        return encode
