"""`AvroColumns`: Avro messages, decoded by the batch, with or without a schema registry.

fastavro reads the records of a batch from one buffer, without the logical types of times, and Arrow makes the columns:
a time is a number in both. If a message does not end where its record ends, the batch is read message by message.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import TYPE_CHECKING, Any

from ekorn.connectors.formats.avro_codec import parsed, read_datum
from ekorn.connectors.formats.message_columns import (
    DecodedMessages,
    MessageColumns,
    MessageDecoder,
    ReadColumn,
    list_column,
    struct_column,
)
from ekorn.connectors.formats.schema_registry import HttpSchemaRegistry, SchemaRegistryClient
from ekorn.errors import ConfigurationError, RecordFormatError, preview
from ekorn.extras import need
from ekorn.types.avro_schema import AvroSchema
from ekorn.types.data_type import DataType
from ekorn.types.data_types import DataTypes, RowField, RowType

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["AvroColumns"]

_MAGIC = 0
_HEAD = struct.Struct(">BI")
_READ_AS_NUMBERS = frozenset(
    {
        "date", "time-millis", "time-micros", "timestamp-millis", "timestamp-micros",
        "local-timestamp-millis", "local-timestamp-micros",
    }
)  # fmt: skip
_LOGICAL: dict[str, Callable[[], DataType]] = {
    "date": DataTypes.DATE,
    "time-millis": lambda: DataTypes.TIME(3),
    "time-micros": lambda: DataTypes.TIME(6),
    "timestamp-millis": lambda: DataTypes.TIMESTAMP(3),
    "timestamp-micros": lambda: DataTypes.TIMESTAMP(6),
    "local-timestamp-millis": lambda: DataTypes.TIMESTAMP(3),
    "local-timestamp-micros": lambda: DataTypes.TIMESTAMP(6),
}
_PRIMITIVE: dict[str, Callable[[], DataType]] = {
    "boolean": DataTypes.BOOLEAN,
    "int": DataTypes.INT,
    "long": DataTypes.BIGINT,
    "float": DataTypes.FLOAT,
    "double": DataTypes.DOUBLE,
    "bytes": DataTypes.BYTES,
    "fixed": DataTypes.BYTES,
    "string": DataTypes.STRING,
    "enum": DataTypes.STRING,
}


class AvroColumns(MessageColumns):
    """Avro records as columns: `KafkaSource` decodes the values of many messages at once.

    Without a registry a message is a record in Avro's binary form, as `AvroRowDeserializationSchema` reads it. With a
    registry a message names the schema of its writer, as `ConfluentRegistryAvroDeserializationSchema` reads it, and
    records of other schemas are resolved to this one. Timestamps show the wall clock of UTC.

    Example:
        >>> schema = '{"type": "record", "name": "Order", "fields": [{"name": "amount", "type": "long"}]}'
        >>> AvroColumns(schema).row_type.field_names()
        ['amount']
    """

    def __init__(self, avro_schema_string: str, registry: str | SchemaRegistryClient | None = None) -> None:
        """Set the columns.

        Args:
            avro_schema_string: The schema of the records, as JSON. A union is of one type and null.
            registry: The URL of a schema registry, or a client of one; None for messages without the id of a schema.
        """
        need("columns", "AvroColumns")
        self._schema = AvroSchema.parse_string(avro_schema_string)
        self._registry = HttpSchemaRegistry(registry) if isinstance(registry, str) else registry
        columns = _Columns(self._schema)
        columns.read_column()  # a type without a column is refused here
        self.row_type = columns.row_type

    def decoder(self) -> MessageDecoder:
        """Return the function that decodes messages."""
        return _AvroDecoder(self._schema, self._registry)


class _AvroDecoder:
    def __init__(self, schema: AvroSchema, registry: SchemaRegistryClient | None) -> None:
        from ekorn.columns.row_columns import RowColumns

        columns = _Columns(schema)
        self._column = columns.read_column()
        self._schema = RowColumns(columns.row_type).schema
        self._wanted = parsed(without_times(schema.json))
        self._registry = registry
        self._head = 0 if registry is None else _HEAD.size
        self._written: dict[int, Any] = {}  # schemas of writers, by id; a schema never changes its id

    def __call__(self, messages: list[bytes]) -> DecodedMessages:
        refused: list[tuple[int, Exception]] = []
        records: list[Any] = []
        kept: list[int] = []
        for first, part in self._by_schema(messages):
            found = self._read_joined(part)
            if found is not None:
                records += found
                kept.extend(range(first, first + len(part)))
                continue
            for number, message in enumerate(part, first):
                try:
                    records.append(self._read(message))
                except RecordFormatError as error:
                    refused.append((number, error))
                else:
                    kept.append(number)
        return DecodedMessages(self._batch(records), None if len(kept) == len(messages) else kept, refused)

    def _by_schema(self, messages: list[bytes]) -> Iterator[tuple[int, list[bytes]]]:
        """Yield runs of messages with the same schema, each with the number of its first message."""
        if self._registry is None:
            yield 0, messages
            return
        first, size = 0, _HEAD.size
        for number in range(1, len(messages) + 1):
            if number == len(messages) or messages[number][:size] != messages[first][:size]:
                yield first, messages[first:number]
                first = number

    def _read_joined(self, messages: list[bytes]) -> list[Any] | None:
        """Return the records of messages of one schema; None if one of them is not a record."""
        import numpy as np
        from fastavro import schemaless_reader

        try:
            written, wanted = self._schemas(messages[0]) if messages else (self._wanted, None)
        except RecordFormatError:
            return None
        size = self._head
        buffer = BytesIO(b"".join(messages if not size else [message[size:] for message in messages]))
        records, ends = [], []
        tell = buffer.tell
        try:
            for _ in messages:  # hot
                records.append(schemaless_reader(buffer, written, wanted))
                ends.append(tell())
        except Exception:  # fastavro raises errors of many classes; the message at fault is found one by one
            return None
        lengths = np.fromiter(map(len, messages), np.int64, len(messages)) - size
        return records if np.array_equal(np.cumsum(lengths), ends) else None

    def _read(self, message: bytes) -> Any:
        buffer = BytesIO(message)
        written, wanted = self._schemas(message)
        buffer.seek(self._head)
        record = read_datum(buffer, written, wanted)
        left = len(message) - buffer.tell()
        if left:
            raise RecordFormatError("Avro", f"there are {left} bytes after the record", preview(message))
        return record

    def _schemas(self, message: bytes) -> tuple[Any, Any]:
        """Return the schema in which a message is written, and the schema to which it is resolved, or None."""
        if self._registry is None:
            return self._wanted, None
        if len(message) < _HEAD.size:
            raise _refused("it is shorter than the id of a schema", message)
        magic, schema_id = _HEAD.unpack_from(message)
        if magic != _MAGIC:
            raise _refused(f"it starts with the byte {magic}, not with {_MAGIC}", message)
        written = self._written.get(schema_id)
        if written is None:
            found = self._registry.find(schema_id)
            if found is None:
                raise _refused(f"the registry has no schema {schema_id}", message)
            written = self._written[schema_id] = parsed(without_times(found.json))
        return written, None if written == self._wanted else self._wanted

    def _batch(self, records: list[Any]) -> pa.RecordBatch:
        import pyarrow as pa

        structs = pa.array(records, self._column.type)
        if self._column.convert is not None:
            structs = self._column.convert(structs)
        return pa.RecordBatch.from_arrays(structs.flatten(), schema=self._schema)


def _refused(reason: str, message: bytes) -> RecordFormatError:
    return RecordFormatError("Avro with a schema registry", reason, preview(message))


def without_times(document: Any) -> Any:
    """Return a schema document that has numbers in place of dates and times."""
    if isinstance(document, dict):
        logical = document.get("logicalType")
        skipped = ("logicalType",) if isinstance(logical, str) and logical in _READ_AS_NUMBERS else ()
        return {
            key: each if key == "default" else without_times(each)
            for key, each in document.items()
            if key not in skipped
        }
    return [without_times(each) for each in document] if isinstance(document, list) else document


class _Columns:
    """The data types and the columns of a schema of records."""

    def __init__(self, schema: AvroSchema) -> None:
        self._names: dict[str, Any] = {}
        self._root = parsed(schema.json)
        self._define(self._root)
        found = self._type(self._root, ())
        if not isinstance(found, RowType):
            raise ConfigurationError(f"columns need an Avro schema of records, got {preview(schema.json)}")
        self.row_type = found

    def _define(self, node: Any) -> None:
        """Collect the named types of a schema, which later parts refer to by name."""
        if isinstance(node, list):
            for each in node:
                self._define(each)
        elif isinstance(node, dict):
            if "name" in node and "type" in node:
                self._names[node["name"]] = node
            for key in ("items", "values", "type"):
                if isinstance(node.get(key), dict | list):
                    self._define(node[key])
            for field in node.get("fields", ()):
                self._define(field["type"])

    def _resolved(self, node: Any) -> Any:
        node = self._names.get(node, node) if isinstance(node, str) else node
        if isinstance(node, list):
            branches = [each for each in node if each != "null"]
            if len(branches) != 1:
                raise ConfigurationError(
                    f"columns cannot represent the union {preview(node)}; use a union of one type and null"
                )
            return self._resolved(branches[0])
        return node

    def _type(self, node: Any, inside: tuple[str, ...]) -> DataType:
        node = self._resolved(node)
        if isinstance(node, str):
            if node not in _PRIMITIVE:
                raise ConfigurationError(f"columns cannot represent the Avro type {node!r}; use another type")
            return _PRIMITIVE[node]()
        logical = node.get("logicalType")
        if logical in _LOGICAL:
            return _LOGICAL[logical]()
        if logical == "decimal":
            return DataTypes.DECIMAL(node["precision"], node.get("scale", 0))
        match node["type"]:
            case "record" | "error":
                if node["name"] in inside:
                    raise ConfigurationError(f"there are no columns for the Avro record {node['name']!r} in itself")
                deeper = (*inside, node["name"])
                return RowType([RowField(each["name"], self._type(each["type"], deeper)) for each in node["fields"]])
            case "array":
                return DataTypes.ARRAY(self._type(node["items"], inside))
            case "map":
                return DataTypes.MAP(DataTypes.STRING().not_null(), self._type(node["values"], inside))
        return self._type(node["type"], inside)

    def read_column(self) -> ReadColumn:
        """Return the column of structs that fastavro's records become."""
        return self._column(self._root)

    def _column(self, node: Any) -> ReadColumn:
        import pyarrow as pa

        from ekorn.columns.arrow_columns import arrow_column

        node = self._resolved(node)
        kind = node["type"] if isinstance(node, dict) else None
        if kind in ("record", "error"):
            return struct_column([(each["name"], self._column(each["type"]), True) for each in node["fields"]])
        if kind == "array":
            return list_column(self._column(node["items"]))
        arrow_type = arrow_column(self._type(node, ()), utc=True).type
        if kind == "map":
            value = self._column(node["values"])
            if value.convert is not None:
                raise ConfigurationError("columns cannot represent Avro maps of dates and times; use another type")
            return ReadColumn(arrow_type)
        logical = node.get("logicalType") if isinstance(node, dict) else None
        if logical in _READ_AS_NUMBERS:
            number = pa.int32() if kind == "int" else pa.int64()
            return ReadColumn(number, lambda array: array.cast(arrow_type))
        return ReadColumn(arrow_type)
