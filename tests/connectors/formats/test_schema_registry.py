"""Avro messages with the id of their schema, against a registry on loopback."""

import base64
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import cloudpickle
import pytest

from ekorn.datastream.formats.avro import (
    AvroSchema,
    ConfluentRegistryAvroDeserializationSchema,
    ConfluentRegistryAvroSerializationSchema,
    HttpSchemaRegistry,
)
from ekorn.errors import ConfigurationError, RecordFormatError, SchemaRegistryError
from ekorn.storage.retry import Patience

OLD = AvroSchema.parse_string('{"type": "record", "name": "Hit", "fields": [{"name": "n", "type": "int"}]}')
NEW = AvroSchema.parse_string(
    '{"type": "record", "name": "Hit", "fields": [{"name": "n", "type": "long"},'
    ' {"name": "page", "type": "string", "default": "/"}]}'
)


class Registry(ThreadingHTTPServer):
    """Answers as Confluent's registry does."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.schemas = []
        self.requests = []
        self.troubles = []  # codes of the next answers
        self.expected = None  # the authorization that is demanded

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Registry

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        subject = self.path.split("/")[2]
        if subject == "refused":
            return self.answer(409, {"error_code": 409, "message": "incompatible with an earlier schema"})
        if body["schema"] not in self.server.schemas:
            self.server.schemas.append(body["schema"])
        return self.answer(200, {"id": self.server.schemas.index(body["schema"]) + 100})

    def do_GET(self):
        number = int(self.path.rsplit("/", 1)[1]) - 100
        if 0 <= number < len(self.server.schemas):
            return self.answer(200, {"schema": self.server.schemas[number]})
        return self.answer(404, {"error_code": 40403, "message": "Schema not found"})

    def answer(self, code, document):
        self.server.requests.append((self.command, self.path))
        if self.server.expected is not None and self.headers["Authorization"] != self.server.expected:
            code, document = 401, {"message": "Unauthorized"}
        if self.server.troubles:
            code, document = self.server.troubles.pop(0), {"message": "in trouble"}
        data = json.dumps(document).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        pass


@pytest.fixture
def registry():
    with Registry() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def client(registry, url=None, tries=3):
    return HttpSchemaRegistry(url or registry.url, patience=Patience(tries=tries, sleep=_no_pause))


def _no_pause(seconds):
    pass


def test_messages_have_confluents_wire_format(registry):
    schema = ConfluentRegistryAvroSerializationSchema.for_generic("hits-value", OLD, client(registry))
    assert schema.serialize({"n": 1}) == b"\x00\x00\x00\x00\x64\x02"
    assert schema.serialize({"n": -1}) == b"\x00\x00\x00\x00\x64\x01"
    assert registry.requests == [("POST", "/subjects/hits-value/versions")], "registered once"


def test_records_of_other_schemas_are_resolved_and_each_schema_is_asked_for_once(registry):
    message = ConfluentRegistryAvroSerializationSchema.for_generic("s", OLD, client(registry)).serialize({"n": 7})
    reader = ConfluentRegistryAvroDeserializationSchema.for_generic(NEW, registry.url)
    reader = cloudpickle.loads(cloudpickle.dumps(reader))
    for _ in range(3):
        assert reader.deserialize(message) == {"n": 7, "page": "/"}
    assert [each for each in registry.requests if each[0] == "GET"] == [("GET", "/schemas/ids/100")]


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (b"\x00\x00", "shorter than the id"),
        (b"\x01\x00\x00\x00\x64\x02", "starts with the byte 1, not with 0"),
        (b"\x00\x00\x00\x00\x07\x02", "the registry has no schema 7"),
    ],
)
def test_a_message_of_another_form_is_the_fault_of_the_record(registry, message, reason):
    with pytest.raises(RecordFormatError, match=reason):
        ConfluentRegistryAvroDeserializationSchema.for_generic(OLD, client(registry)).deserialize(message)


def test_a_schema_that_the_registry_refuses_is_an_error_with_its_words(registry):
    schema = ConfluentRegistryAvroSerializationSchema.for_generic("refused", OLD, client(registry))
    with pytest.raises(SchemaRegistryError, match="409: incompatible with an earlier schema"):
        schema.serialize({"n": 1})


def test_a_server_in_trouble_is_asked_again(registry):
    registry.troubles = [503, 429]
    assert client(registry).register("s", OLD) == 100
    registry.troubles = [503, 503, 503]
    with pytest.raises(SchemaRegistryError, match="503"):
        client(registry).register("s", OLD)


def test_a_registry_that_cannot_be_reached_is_not_the_fault_of_a_record(registry):
    gone = HttpSchemaRegistry("http://127.0.0.1:1", patience=Patience(tries=2, sleep=_no_pause))
    with pytest.raises(SchemaRegistryError, match=r"the schema registry at http://127\.0\.0\.1:1"):
        ConfluentRegistryAvroDeserializationSchema.for_generic(OLD, gone).deserialize(b"\x00\x00\x00\x00\x64\x02")


def test_credentials_are_sent_and_never_shown(registry):
    registry.expected = "Basic " + base64.b64encode(b"me:secret/word").decode()
    url = registry.url.replace("http://", "http://me:secret%2Fword@")
    assert client(registry, url).register("s", OLD) == 100
    assert "secret" not in repr(client(registry, url))
    with pytest.raises(SchemaRegistryError, match="401: Unauthorized") as refused:
        client(registry, registry.url.replace("http://", "http://me:canary@")).register("s", OLD)
    assert "canary" not in str(refused.value)


def test_addresses_that_are_no_urls_are_refused():
    with pytest.raises(ConfigurationError, match="starts with http"):
        ConfluentRegistryAvroDeserializationSchema.for_generic(OLD, "localhost:8081")
