"""Avro messages with the id of their schema in a registry: Confluent's wire format.

A message is a zero byte, the id of the writer's schema in four bytes, and the record in Avro's binary form. The
registry is reached through a protocol, `SchemaRegistryClient`; `HttpSchemaRegistry` speaks to a server.
"""

from __future__ import annotations

import base64
import json
import struct
import urllib.error
import urllib.request
from io import BytesIO
from typing import Any, Protocol
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from ekorn.connectors.formats.avro_codec import encode_datum, parsed, read_datum, without_logical_types
from ekorn.connectors.formats.avro_files import checked_avro_schema
from ekorn.connectors.formats.schemas import DeserializationSchema, SerializationSchema
from ekorn.errors import ConfigurationError, RecordFormatError, SchemaRegistryError, preview
from ekorn.storage.retry import Patience
from ekorn.types.avro_schema import AvroSchema, GenericRecordAvroTypeInfo

__all__ = [
    "ConfluentRegistryAvroDeserializationSchema",
    "ConfluentRegistryAvroSerializationSchema",
    "HttpSchemaRegistry",
    "SchemaRegistryClient",
]

_MAGIC = 0
_HEAD = struct.Struct(">BI")
_CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"


class SchemaRegistryClient(Protocol):
    """A registry of schemas. An instance is sent to the slots, so it must be picklable."""

    def register(self, subject: str, schema: AvroSchema) -> int:
        """Return the id of a schema under a subject; register it if it is new.

        Raises:
            SchemaRegistryError: The registry refuses the schema, or cannot be reached.
        """

    def find(self, schema_id: int) -> AvroSchema | None:
        """Return the schema of an id, or None if the registry has none.

        Raises:
            SchemaRegistryError: The registry cannot be reached.
        """


class HttpSchemaRegistry:
    """A registry that is reached by HTTP. `user:password@` in the URL is sent as basic authentication.

    Calls are repeated for some seconds while the server cannot be reached or answers with an error of its own.
    """

    def __init__(self, url: str, *, timeout_s: float = 10.0, patience: Patience | None = None) -> None:
        """Set the address of the server."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigurationError(f"the address of a schema registry starts with http:// or https://, got {url!r}")
        user, at, host = parts.netloc.rpartition("@")
        self._headers = {"Content-Type": _CONTENT_TYPE, "Accept": _CONTENT_TYPE}
        if at:
            credentials = base64.b64encode(unquote(user).encode()).decode("ascii")
            self._headers["Authorization"] = f"Basic {credentials}"
        self._url = urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))
        self._timeout_s = timeout_s
        self._patience = patience

    def register(self, subject: str, schema: AvroSchema) -> int:
        """Return the id of a schema under a subject; register it if it is new."""
        body = json.dumps({"schema": json.dumps(schema.json), "schemaType": "AVRO"}).encode()
        answer = self._call(f"/subjects/{quote(subject, safe='')}/versions", body)
        if answer is None or not isinstance(answer.get("id"), int):
            raise SchemaRegistryError(self._url, f"it answered {preview(answer)} instead of an id for {subject!r}")
        return int(answer["id"])

    def find(self, schema_id: int) -> AvroSchema | None:
        """Return the schema of an id, or None if the registry has none."""
        answer = self._call(f"/schemas/ids/{schema_id}", None)
        if answer is None:
            return None
        if not isinstance(answer.get("schema"), str) or answer.get("schemaType", "AVRO") != "AVRO":
            raise SchemaRegistryError(self._url, f"schema {schema_id} is not Avro: {preview(answer)}")
        return AvroSchema.parse_string(answer["schema"])

    def _call(self, path: str, body: bytes | None) -> dict[str, Any] | None:
        """Return the answer of the server, or None if it does not know the path."""
        request = urllib.request.Request(self._url + path, data=body, headers=self._headers)
        try:
            patience = self._patience or Patience()  # not stored: its random source is not sent to slots
            return patience.call(lambda: self._once(request), _is_final)
        except urllib.error.HTTPError as error:
            if error.code == 404 and body is None:
                return None
            with error:
                raise SchemaRegistryError(self._url, f"{error.code}: {_message(error)}") from None
        except (OSError, ValueError) as error:
            raise SchemaRegistryError(self._url, str(error) or type(error).__name__) from None

    def _once(self, request: urllib.request.Request) -> dict[str, Any]:
        with urllib.request.urlopen(request, timeout=self._timeout_s) as answer:
            found = json.load(answer)
        if not isinstance(found, dict):
            raise ValueError(f"the answer is {preview(found)}")
        return found

    def __repr__(self) -> str:
        return f"HttpSchemaRegistry({self._url!r})"


def _is_final(error: Exception) -> bool:
    """Return whether another try would fail too: true for every answer except that of a failing server."""
    if isinstance(error, urllib.error.HTTPError):
        return error.code < 500 and error.code != 429
    return isinstance(error, ValueError)


def _message(error: urllib.error.HTTPError) -> str:
    text = error.read(2000).decode(errors="replace")
    try:
        return str(json.loads(text)["message"])
    except (ValueError, KeyError, TypeError):
        return preview(text)


class ConfluentRegistryAvroDeserializationSchema(DeserializationSchema[Any]):
    """Reads generic records, which are dicts, from messages that name their schema."""

    def __init__(self, schema: AvroSchema, client: SchemaRegistryClient) -> None:
        """Set the schema of the records, to which records of other schemas are resolved, and the registry."""
        self._schema = checked_avro_schema(schema, "ConfluentRegistryAvroDeserializationSchema")
        self._client = client
        self._wanted = parsed(without_logical_types(schema.json))
        self._written: dict[int, Any] = {}  # schemas of writers, by id; a schema never changes its id

    @staticmethod
    def for_generic(schema: AvroSchema, url: str | SchemaRegistryClient) -> ConfluentRegistryAvroDeserializationSchema:
        """Read records of a schema, with the registry at a URL."""
        return ConfluentRegistryAvroDeserializationSchema(schema, _client(url))

    def deserialize(self, message: bytes) -> Any:
        """Return the record of a message.

        Raises:
            RecordFormatError: The message is not of this form, or its schema is not known or does not resolve.
            SchemaRegistryError: The registry cannot be reached.
        """
        if len(message) < _HEAD.size:
            raise _refused("it is shorter than the id of a schema", message)
        magic, schema_id = _HEAD.unpack_from(message)
        if magic != _MAGIC:
            raise _refused(f"it starts with the byte {magic}, not with {_MAGIC}", message)
        buffer = BytesIO(message)
        buffer.seek(_HEAD.size)
        written = self._written.get(schema_id)
        if written is None:
            written = self._written[schema_id] = self._find(schema_id, message)
        return read_datum(buffer, written, None if written == self._wanted else self._wanted)

    def _find(self, schema_id: int, message: bytes) -> Any:
        found = self._client.find(schema_id)
        if found is None:
            raise _refused(f"the registry has no schema {schema_id}", message)
        return parsed(without_logical_types(found.json))

    def get_produced_type(self) -> GenericRecordAvroTypeInfo:
        """Return the type of the records."""
        return GenericRecordAvroTypeInfo(self._schema)


class ConfluentRegistryAvroSerializationSchema(SerializationSchema[Any]):
    """Writes generic records, which are dicts, as messages that name their schema."""

    def __init__(self, subject: str, schema: AvroSchema, client: SchemaRegistryClient) -> None:
        """Set the subject under which the schema is registered at the first record."""
        self._subject = subject
        self._schema = checked_avro_schema(schema, "ConfluentRegistryAvroSerializationSchema")
        self._client = client
        self._parsed = parsed(without_logical_types(schema.json))
        self._head: bytes | None = None

    @staticmethod
    def for_generic(
        subject: str, schema: AvroSchema, url: str | SchemaRegistryClient
    ) -> ConfluentRegistryAvroSerializationSchema:
        """Write records of a schema, with the registry at a URL."""
        return ConfluentRegistryAvroSerializationSchema(subject, schema, _client(url))

    def serialize(self, value: Any) -> bytes:
        """Return the message of a record.

        Raises:
            RecordFormatError: The record does not fit the schema.
            SchemaRegistryError: The registry refuses the schema, or cannot be reached.
        """
        if self._head is None:
            self._head = _HEAD.pack(_MAGIC, self._client.register(self._subject, self._schema))
        return self._head + encode_datum(self._parsed, value)


def _client(url: str | SchemaRegistryClient) -> SchemaRegistryClient:
    return HttpSchemaRegistry(url) if isinstance(url, str) else url


def _refused(reason: str, message: bytes) -> RecordFormatError:
    return RecordFormatError("Avro with a schema registry", reason, preview(message))
