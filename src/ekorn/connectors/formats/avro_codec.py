"""Avro's binary form of single records: encoders and decoders of fastavro, and the types of rows of a schema."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from io import BytesIO
from typing import Any

from ekorn.errors import ConfigurationError, RecordFormatError, preview
from ekorn.extras import load
from ekorn.types.avro_schema import AvroSchema
from ekorn.types.factory import Types
from ekorn.types.row import Row, make_row
from ekorn.types.type_information import TypeInformation

__all__ = ["AvroRows", "encode_datum", "parsed", "read_datum", "without_logical_types"]

_LOGICAL = {
    "date": Types.SQL_DATE,
    "time-millis": Types.SQL_TIME,
    "time-micros": Types.SQL_TIME,
    "timestamp-millis": Types.SQL_TIMESTAMP,
    "timestamp-micros": Types.SQL_TIMESTAMP,
    "local-timestamp-millis": Types.SQL_TIMESTAMP,
    "local-timestamp-micros": Types.SQL_TIMESTAMP,
    "decimal": Types.BIG_DEC,
}
_PRIMITIVE = {
    "null": Types.PICKLED_BYTE_ARRAY,
    "boolean": Types.BOOLEAN,
    "int": Types.INT,
    "long": Types.LONG,
    "float": Types.FLOAT,
    "double": Types.DOUBLE,
    "bytes": lambda: Types.PRIMITIVE_ARRAY(Types.BYTE()),
    "fixed": lambda: Types.PRIMITIVE_ARRAY(Types.BYTE()),
    "string": Types.STRING,
    "enum": Types.STRING,
}


def parsed(document: Any) -> Any:
    """Return a schema in the form that fastavro takes.

    Raises:
        ConfigurationError: The document is not a schema, or fastavro is not installed.
    """
    load("avro", "Avro")
    from fastavro.schema import SchemaParseException, parse_schema

    try:
        return parse_schema(document, {})
    except SchemaParseException as error:
        raise ConfigurationError(f"cannot read an Avro schema: {error} in {preview(document)}") from None


def without_logical_types(document: Any) -> Any:
    """Return a schema document whose values are those of the underlying types, as generic records hold them."""
    if isinstance(document, dict):
        kept = {key: each for key, each in document.items() if key not in ("logicalType", "precision", "scale")}
        return {key: each if key == "default" else without_logical_types(each) for key, each in kept.items()}
    return [without_logical_types(each) for each in document] if isinstance(document, list) else document


def encode_datum(schema: Any, record: Any) -> bytes:
    """Return a record in binary form.

    Raises:
        RecordFormatError: The record does not fit the schema.
    """
    from fastavro import schemaless_writer

    buffer = BytesIO()
    try:
        schemaless_writer(buffer, schema, record)
    except Exception as error:  # fastavro raises errors of many classes, down to AttributeError
        reason = f"there is no field {error}" if isinstance(error, KeyError) else f"{type(error).__name__}: {error}"
        raise RecordFormatError("Avro", reason, preview(record)) from None
    return buffer.getvalue()


def read_datum(buffer: BytesIO, written: Any, wanted: Any | None) -> Any:
    """Read the next record, written with one schema, as a record of another.

    Raises:
        RecordFormatError: The bytes are not a record of the schema.
    """
    from fastavro import schemaless_reader

    start = buffer.tell()
    try:
        return schemaless_reader(buffer, written, wanted)
    except Exception as error:  # fastavro raises errors of many classes for bytes that are no record
        reason = f"{type(error).__name__}: {error}" if str(error) else "the bytes end inside the record"
        raise RecordFormatError("Avro", reason, preview(buffer.getvalue()[start:])) from None


class AvroRows:
    """Converts between rows and the dicts of fastavro, by a schema of records."""

    def __init__(self, schema: AvroSchema) -> None:
        self._names: dict[str, Any] = {}
        root = self._define(parsed(schema.json))
        if not isinstance(root, dict) or root["type"] not in ("record", "error"):
            raise ConfigurationError(f"rows need an Avro schema of records, got {preview(schema.json)}")
        self._root = root
        self.to_row: Callable[[Any], Row] = self._reader(root)
        self.to_dict: Callable[[Any], Any] = self._writer(root)

    def field_names(self) -> list[str]:
        """Return the names of the fields of the rows."""
        return [field["name"] for field in self._root["fields"]]

    def type_info(self) -> TypeInformation:
        """Return the type of the rows."""
        return self._type(self._root)

    def _define(self, node: Any) -> Any:
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
        return node

    def _resolved(self, node: Any) -> Any:
        node = self._names.get(node, node) if isinstance(node, str) else node
        if isinstance(node, list):
            branches = [each for each in node if each != "null"]
            return self._resolved(branches[0]) if len(branches) == 1 else node
        return node

    def _type(self, node: Any) -> TypeInformation:
        node = self._resolved(node)
        if isinstance(node, list):
            return Types.PICKLED_BYTE_ARRAY()
        if isinstance(node, str):
            return _PRIMITIVE[node]()
        if node.get("logicalType") in _LOGICAL:
            return _LOGICAL[node["logicalType"]]()
        match node["type"]:
            case "record" | "error":
                names = [field["name"] for field in node["fields"]]
                return Types.ROW_NAMED(names, [self._type(field["type"]) for field in node["fields"]])
            case "array":
                return Types.OBJECT_ARRAY(self._type(node["items"]))
            case "map":
                return Types.MAP(Types.STRING(), self._type(node["values"]))
        return _PRIMITIVE[node["type"]]()

    def _reader(self, node: Any) -> Callable[[Any], Any]:
        node = self._resolved(node)
        kind = node["type"] if isinstance(node, dict) else None
        if kind in ("record", "error"):
            fields = [(field["name"], self._reader(field["type"])) for field in node["fields"]]
            names = [name for name, _ in fields]
            return lambda value: (
                None if value is None else make_row([read(value[name]) for name, read in fields], names)
            )
        if kind == "array":
            read = self._reader(node["items"])
            return lambda value: None if value is None else [read(each) for each in value]
        if kind == "map":
            read = self._reader(node["values"])
            return lambda value: None if value is None else {key: read(each) for key, each in value.items()}
        return _without_zone

    def _writer(self, node: Any) -> Callable[[Any], Any]:
        node = self._resolved(node)
        kind = node["type"] if isinstance(node, dict) else None
        if kind in ("record", "error"):
            fields = [(field["name"], self._writer(field["type"])) for field in node["fields"]]
            names = [name for name, _ in fields]
            return lambda value: None if value is None else _as_dict(value, names, fields)
        if kind == "array":
            write = self._writer(node["items"])
            return lambda value: None if value is None else [write(each) for each in value]
        if kind == "map":
            write = self._writer(node["values"])
            return lambda value: None if value is None else {key: write(each) for key, each in value.items()}
        zoned = isinstance(node, dict) and str(node.get("logicalType")).startswith("timestamp-")
        return _with_zone if zoned else _unchanged


def _as_dict(value: Any, names: list[str], fields: list[tuple[str, Callable[[Any], Any]]]) -> dict[str, Any]:
    """Return the fields of a row by the names of the schema; a row of other names is taken by position."""
    if isinstance(value, dict):
        return {name: write(value[name]) for name, write in fields}
    if isinstance(value, Row) and value._names is not None and set(names) <= set(value._names):
        values = value.get_fields_by_names(names)
    else:
        values = list(value)
    if len(values) != len(fields):
        raise RecordFormatError("Avro", f"expected {len(fields)} fields, found {len(values)}", preview(value))
    return {name: write(each) for (name, write), each in zip(fields, values, strict=True)}


def _unchanged(value: Any) -> Any:
    return value


def _without_zone(value: Any) -> Any:
    # Flink: a SQL timestamp shows the wall clock of UTC.
    return value.replace(tzinfo=None) if isinstance(value, datetime.datetime) else value


def _with_zone(value: Any) -> Any:
    return value.replace(tzinfo=datetime.UTC) if isinstance(value, datetime.datetime) and not value.tzinfo else value
