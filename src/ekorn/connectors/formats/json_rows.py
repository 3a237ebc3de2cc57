"""JSON messages: one row in one message, for sources and sinks of bytes.

Types of rows may be given as JSON schemas (json-schema.org). They become the types that Flink's converter makes.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any, NoReturn

from ekorn.connectors.formats.json_values import JsonReader, JsonWriter
from ekorn.connectors.formats.schemas import ColumnEncoder, DeserializationSchema, SerializationSchema
from ekorn.connectors.formats.text_values import TimestampFormat
from ekorn.errors import ConfigurationError, RecordFormatError, preview
from ekorn.types import data_types as dt
from ekorn.types.composite_types import RowTypeInfo
from ekorn.types.data_type import DataType
from ekorn.types.data_type_info import AnyDecimalType, data_type_of
from ekorn.types.data_types import RowType
from ekorn.types.factory import Types
from ekorn.types.row import Row
from ekorn.types.type_information import TypeInformation

__all__ = ["JsonRowDeserializationSchema", "JsonRowSerializationSchema", "timestamp_standard", "type_of_json_schema"]


class JsonRowDeserializationSchema(DeserializationSchema[Row]):
    """Reads rows from JSON objects; see `JsonRowDeserializationSchema.builder`.

    >>> from ekorn.common import Types
    >>> names, types = ["id", "name"], [Types.INT(), Types.STRING()]
    >>> schema = JsonRowDeserializationSchema.builder().type_info(Types.ROW_NAMED(names, types)).build()
    >>> schema.deserialize(b'{"name": "hi", "id": 1}')
    Row(id=1, name='hi')
    """

    def __init__(self, type_info: RowTypeInfo, reader: JsonReader, *, ignore_parse_errors: bool) -> None:
        """Create the schema from the settings of a builder."""
        self._type_info = type_info
        self._read = reader.of(data_type_of(type_info, "JSON"))
        self._ignore_parse_errors = ignore_parse_errors
        # Decimal numbers keep their digits only if they are never floats; other types are faster with floats.
        self._decimals = "BigDecimal" in str(type_info)

    @staticmethod
    def builder() -> JsonRowDeserializationSchema.Builder:
        """Begin to build a schema; it needs a type."""
        return JsonRowDeserializationSchema.Builder()

    class Builder:
        """Builds a `JsonRowDeserializationSchema`."""

        def __init__(self) -> None:
            self._type_info: RowTypeInfo | None = None
            self._fail_on_missing_field = False
            self._ignore_parse_errors = False
            self._timestamps = TimestampFormat.ISO_8601

        def type_info(self, type_info: TypeInformation) -> JsonRowDeserializationSchema.Builder:
            """Set the type of the rows; the names of its fields are the names in the objects."""
            self._type_info = _checked_rows(type_info)
            return self

        def json_schema(self, json_schema: str) -> JsonRowDeserializationSchema.Builder:
            """Set the type of the rows by a JSON schema."""
            return self.type_info(type_of_json_schema(json_schema))

        def fail_on_missing_field(self) -> JsonRowDeserializationSchema.Builder:
            """Refuse objects that lack a field; otherwise the field becomes None."""
            self._fail_on_missing_field = True
            return self

        def ignore_parse_errors(self) -> JsonRowDeserializationSchema.Builder:
            """Set a field that cannot be read to None, and skip a message that is not a JSON object."""
            self._ignore_parse_errors = True
            return self

        def timestamp_format(self, standard: str) -> JsonRowDeserializationSchema.Builder:
            """Set the standard for the text of timestamps: "ISO-8601", the default, or "SQL"."""
            self._timestamps = timestamp_standard(standard)
            return self

        def build(self) -> JsonRowDeserializationSchema:
            """Return the schema."""
            if self._type_info is None:
                raise TypeError("JsonRowDeserializationSchema needs the type of its rows: call type_info()")
            if self._fail_on_missing_field and self._ignore_parse_errors:
                raise ConfigurationError(
                    "a JSON schema cannot both fail on missing fields and ignore parse errors; choose one of them"
                )
            reader = JsonReader(
                fail_on_missing_field=self._fail_on_missing_field,
                lenient=self._ignore_parse_errors,
                timestamps=self._timestamps,
            )
            return JsonRowDeserializationSchema(self._type_info, reader, ignore_parse_errors=self._ignore_parse_errors)

    def deserialize(self, message: bytes) -> Row | None:
        """Return the row of a message, or None to skip it.

        Raises:
            RecordFormatError: The message is not a record of the type, and parse errors are not ignored.
        """
        try:
            if self._decimals:
                value = json.loads(message, parse_float=Decimal, parse_constant=_refuse_constant)
            else:
                value = json.loads(message, parse_constant=_refuse_constant)
            if value is None:
                raise ValueError("expected an object, found null")
            return self._read(value)  # type: ignore[no-any-return]
        except ValueError as error:
            if self._ignore_parse_errors:
                return None
            raise RecordFormatError("JSON", str(error), preview(message)) from None

    def get_produced_type(self) -> TypeInformation:
        """Return the type of the rows."""
        return self._type_info


class JsonRowSerializationSchema(SerializationSchema[Any]):
    """Writes rows as JSON objects; see `JsonRowSerializationSchema.builder`.

    >>> from ekorn.common import Row, Types
    >>> schema = JsonRowSerializationSchema.builder().with_type_info(Types.ROW([Types.INT(), Types.STRING()])).build()
    >>> schema.serialize(Row(1, "hi"))
    b'{"f0":1,"f1":"hi"}'
    """

    def __init__(self, type_info: RowTypeInfo, timestamps: TimestampFormat) -> None:
        """Create the schema from the settings of a builder."""
        self._type_info = type_info
        self._timestamps = timestamps
        self._write = JsonWriter(timestamps).of(data_type_of(type_info, "JSON"))

    @staticmethod
    def builder() -> JsonRowSerializationSchema.Builder:
        """Begin to build a schema; it needs a type."""
        return JsonRowSerializationSchema.Builder()

    class Builder:
        """Builds a `JsonRowSerializationSchema`."""

        def __init__(self) -> None:
            self._type_info: RowTypeInfo | None = None
            self._timestamps = TimestampFormat.ISO_8601

        def with_type_info(self, type_info: TypeInformation) -> JsonRowSerializationSchema.Builder:
            """Set the type of the rows; the names of its fields are the names in the objects."""
            self._type_info = _checked_rows(type_info)
            return self

        def timestamp_format(self, standard: str) -> JsonRowSerializationSchema.Builder:
            """Set the standard for the text of timestamps: "ISO-8601", the default, or "SQL"."""
            self._timestamps = timestamp_standard(standard)
            return self

        def build(self) -> JsonRowSerializationSchema:
            """Return the schema."""
            if self._type_info is None:
                raise TypeError("JsonRowSerializationSchema needs the type of its rows: call with_type_info()")
            return JsonRowSerializationSchema(self._type_info, self._timestamps)

    def serialize(self, value: Any) -> bytes:
        """Return the message of a row.

        Raises:
            RecordFormatError: The row does not fit the type.
        """
        try:
            return self._write(value).encode()
        except (AttributeError, TypeError, ValueError) as error:
            raise RecordFormatError("JSON", str(error), preview(value)) from None

    def column_encoder(self, row_type: RowType) -> ColumnEncoder | None:
        """Return the function that writes all rows of a batch, if their columns are those of the type of the rows.

        There may be more columns. A decimal of rows has any digits, and has those of its column here.
        """
        wanted = data_type_of(self._type_info, "JSON")
        assert isinstance(wanted, RowType)
        if not _fits(wanted, row_type):
            return None
        import pyarrow as pa

        from ekorn.columns.row_columns import RowColumns
        from ekorn.connectors.formats.json_texts import row_texts

        chosen = RowType([row_type[name] for name in wanted.field_names()])
        texts_of, columns = row_texts(chosen, wanted.field_names(), self._timestamps), RowColumns(chosen)

        def encode(batch: pa.RecordBatch) -> list[bytes | None]:
            try:
                values: list[bytes | None] = texts_of(batch).cast(pa.binary()).to_pylist()
            except (ValueError, TypeError):  # a value without a form in JSON, or more than 2 GB of texts: row by row
                return [self.serialize(row) for row in columns.rows(batch)]
            return values

        return encode


def _fits(wanted: DataType, found: DataType) -> bool:
    """Return whether columns of a type are written as values of another type are."""
    match wanted, found:
        case RowType(), RowType():
            names = found.field_names()
            return all(f.name in names and _fits(f.data_type, found[f.name].data_type) for f in wanted)
        case dt.ArrayType(), dt.ArrayType():
            return _fits(wanted.element_type, found.element_type)
        case dt.MapType(), dt.MapType():
            return _fits(wanted.key_type, found.key_type) and _fits(wanted.value_type, found.value_type)
        case AnyDecimalType(), dt.DecimalType():
            return True
        case dt.IntegralType(), dt.IntegralType():
            return found.bits <= wanted.bits
        case (dt.TimestampType(), dt.TimestampType()) | (dt.TimeType(), dt.TimeType()):
            return True
        case (dt.LocalZonedTimestampType(), dt.LocalZonedTimestampType()):
            return True
    return wanted.nullable() == found.nullable()


def _checked_rows(type_info: TypeInformation) -> RowTypeInfo:
    if not isinstance(type_info, RowTypeInfo):
        raise TypeError(f"a JSON schema takes the type of rows, such as Types.ROW([Types.INT()]), got {type_info!r}")
    return type_info


def timestamp_standard(standard: str) -> TimestampFormat:
    """Return the standard of a name."""
    try:
        return TimestampFormat(standard)
    except ValueError:
        raise ConfigurationError(f"timestamp_format() takes 'SQL' or 'ISO-8601', got {standard!r}") from None


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


def type_of_json_schema(json_schema: str) -> TypeInformation:
    """Return the type that a JSON schema describes.

    >>> type_of_json_schema('{"type": "object", "properties": {"name": {"type": "string"}, "at": {"type": "integer"}}}')
    RowTypeInfo(name: String, at: BigDecimal)

    Raises:
        ConfigurationError: The text is not a schema, or uses a part of the standard that has no type here.
    """
    if not isinstance(json_schema, str):
        raise TypeError(f"a JSON schema is given as text, got {json_schema!r}")
    try:
        document = json.loads(json_schema)
    except ValueError as error:
        raise ConfigurationError(f"cannot read a JSON schema: {error} in {preview(json_schema)}") from None
    return _Converter(document).convert(document, "the schema", ())


class _Converter:
    def __init__(self, root: Any) -> None:
        self._root = root

    def convert(self, node: Any, where: str, inside: tuple[str, ...]) -> TypeInformation:
        """Return the type of one part of the schema; `inside` are the references that led here."""
        if not isinstance(node, dict):
            raise _refused(f"{where} is {preview(node)}")
        if "$ref" in node:
            return self._referred(node["$ref"], where, inside)
        if "oneOf" in node:
            return self._one_of(node["oneOf"], where, inside)
        for part in ("allOf", "anyOf", "not"):
            if part in node:
                raise _refused(f"{where} uses {part!r}, which has no corresponding type")
        kinds = node.get("type")
        if isinstance(kinds, list):
            return self._one_of([node | {"type": kind} for kind in kinds], where, inside)
        match kinds:
            case "object":
                return self._object(node, where, inside)
            case "array":
                return self._array(node, where, inside)
            case "string":
                return _string(node)
            case "number" | "integer":
                return Types.BIG_DEC()  # Flink: JSON's numbers have any precision
            case "boolean":
                return Types.BOOLEAN()
            case "null":
                return Types.PICKLED_BYTE_ARRAY()
        raise _refused(f"{where} has the type {kinds!r}")

    def _object(self, node: dict[str, Any], where: str, inside: tuple[str, ...]) -> TypeInformation:
        properties = node.get("properties")
        if not isinstance(properties, dict) or not properties:
            raise _refused(f"{where} is an object without properties")
        types = [self.convert(each, f"property {name!r}", inside) for name, each in properties.items()]
        return Types.ROW_NAMED(list(properties), types)

    def _array(self, node: dict[str, Any], where: str, inside: tuple[str, ...]) -> TypeInformation:
        items = node.get("items")
        if isinstance(items, list):
            raise _refused(f"{where} has items of different types; give them one type")
        return Types.OBJECT_ARRAY(self.convert(items, f"an item of {where}", inside))

    def _one_of(self, branches: Any, where: str, inside: tuple[str, ...]) -> TypeInformation:
        """Return the type of the branch that is not null."""
        known = [each for each in branches if not (isinstance(each, dict) and each.get("type") == "null")]
        if len(known) != 1:
            raise _refused(f"{where} has {len(known)} types; besides null, only one is allowed")
        return self.convert(known[0], where, inside)

    def _referred(self, reference: Any, where: str, inside: tuple[str, ...]) -> TypeInformation:
        if not isinstance(reference, str) or not reference.startswith("#"):
            raise _refused(f"{where} refers to {reference!r}; only parts of the same schema can be referenced")
        if reference in inside:
            raise _refused(f"{where} refers to itself through {reference!r}; types cannot be recursive")
        node = self._root
        for part in [each for each in reference[1:].split("/") if each]:
            if not isinstance(node, dict) or part not in node:
                raise _refused(f"{where} refers to {reference!r}, which is not in the schema")
            node = node[part]
        return self.convert(node, where, (*inside, reference))


def _string(node: dict[str, Any]) -> TypeInformation:
    by_format = {"date": Types.SQL_DATE, "time": Types.SQL_TIME, "date-time": Types.SQL_TIMESTAMP}
    if node.get("format") in by_format:
        return by_format[node["format"]]()
    if node.get("contentEncoding") == "base64":
        return Types.PRIMITIVE_ARRAY(Types.BYTE())
    return Types.STRING()


def _refused(reason: str) -> ConfigurationError:
    return ConfigurationError(f"cannot take a type from a JSON schema: {reason}")
