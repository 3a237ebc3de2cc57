"""Avro: rows as messages, generic records in files, other codecs and schemas, damage."""

import datetime
import io
import json
from decimal import Decimal
from typing import Any

import cloudpickle
import fastavro
import pytest

from ekorn.common import Row, Types
from ekorn.datastream.connectors.file_system import FileEnumeratorProvider, FileSource
from ekorn.datastream.formats.avro import (
    AvroBulkWriters,
    AvroInputFormat,
    AvroReaderFormat,
    AvroRowDeserializationSchema,
    AvroRowSerializationSchema,
    AvroSchema,
)
from ekorn.errors import ConfigurationError, RecordFormatError
from tests.connectors.formats.files import read_file, read_source, write_file

ROW_SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "id", "type": "int"},
            {"name": "name", "type": ["null", "string"]},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "day", "type": {"type": "int", "logicalType": "date"}},
            {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
            {"name": "tags", "type": {"type": "array", "items": "string"}},
            {"name": "sizes", "type": {"type": "map", "values": "long"}},
            {"name": "inner", "type": {"type": "record", "name": "Inner", "fields": [{"name": "x", "type": "double"}]}},
        ],
    }
)
ROW = Row(
    id=1,
    name=None,
    at=datetime.datetime(2020, 1, 2, 3, 4, 5, 600_000),
    day=datetime.date(2020, 1, 2),
    price=Decimal("1.50"),
    tags=["a"],
    sizes={"k": 3},
    inner=Row(x=0.5),
)
SCHEMA = AvroSchema.parse_string(
    '{"type": "record", "name": "T", "fields": [{"name": "n", "type": "long"},'
    ' {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}}]}'
)
RECORDS = [{"n": number, "at": number * 1000} for number in range(50)]


def test_rows_are_written_and_read_as_messages():
    message = AvroRowSerializationSchema(avro_schema_string=ROW_SCHEMA).serialize(ROW)
    schema = AvroRowDeserializationSchema(avro_schema_string=ROW_SCHEMA)
    assert schema.deserialize(message) == ROW
    assert cloudpickle.loads(cloudpickle.dumps(schema)).deserialize(message) == ROW
    assert schema.get_produced_type() == Types.ROW_NAMED(
        ["id", "name", "at", "day", "price", "tags", "sizes", "inner"],
        [
            Types.INT(),
            Types.STRING(),
            Types.SQL_TIMESTAMP(),
            Types.SQL_DATE(),
            Types.BIG_DEC(),
            Types.OBJECT_ARRAY(Types.STRING()),
            Types.MAP(Types.STRING(), Types.LONG()),
            Types.ROW([Types.DOUBLE()]),
        ],
    )


def test_messages_have_avros_binary_form():
    schema = fastavro.parse_schema(json.loads(ROW_SCHEMA))
    message = AvroRowSerializationSchema(avro_schema_string=ROW_SCHEMA).serialize(ROW)
    record: Any = fastavro.schemaless_reader(io.BytesIO(message), schema, None)
    assert record["price"] == Decimal("1.50")


def test_rows_without_names_are_written_by_position():
    text = '{"type": "record", "name": "P", "fields": [{"name": "id", "type": "int"}, {"name": "w", "type": "string"}]}'
    message = AvroRowSerializationSchema(avro_schema_string=text).serialize(Row(1, "hi"))
    assert AvroRowDeserializationSchema(avro_schema_string=text).deserialize(message) == Row(id=1, w="hi")


@pytest.mark.parametrize("message", [b"", b"\x02", b"\x02\x02\xff", b"x" * 40])
def test_a_message_that_is_no_record_is_an_error_that_shows_it(message):
    with pytest.raises(RecordFormatError, match="is not a record in Avro"):
        AvroRowDeserializationSchema(avro_schema_string=ROW_SCHEMA).deserialize(message)


def test_bytes_behind_a_record_are_an_error():
    message = AvroRowSerializationSchema(avro_schema_string=ROW_SCHEMA).serialize(ROW)
    with pytest.raises(RecordFormatError, match="2 bytes after the record"):
        AvroRowDeserializationSchema(avro_schema_string=ROW_SCHEMA).deserialize(message + b"ab")


def test_java_classes_are_refused_with_what_to_give():
    with pytest.raises(ConfigurationError, match=r"avro_schema_string='\.\.\.'"):
        AvroRowSerializationSchema(record_class="com.example.Order")
    with pytest.raises(ConfigurationError, match="needs a schema"):
        AvroRowDeserializationSchema()


# ---------------------------------------------------------------------------------------------------------------- files


def test_files_are_avros_and_keep_logical_types_in_their_schema(tmp_path):
    path = write_file(tmp_path / "x.avro", AvroBulkWriters.for_generic_record(SCHEMA), RECORDS)
    with open(path, "rb") as file:
        reader: Any = fastavro.reader(file)
        first = next(reader)
    assert reader.writer_schema["fields"][1]["type"]["logicalType"] == "timestamp-millis"
    assert first["at"] == datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz", "zstandard"])
def test_files_of_other_writers_are_read(tmp_path, codec):
    path = tmp_path / "x.avro"
    with open(path, "wb") as file:
        fastavro.writer(file, json.loads(str(SCHEMA)), RECORDS, codec=codec, sync_interval=50)
    assert read_file(AvroReaderFormat.for_generic_record(SCHEMA), path)[0] == RECORDS
    builder = FileSource.for_bulk_file_format(AvroReaderFormat.for_generic_record(SCHEMA), str(path))
    found = read_source(builder.set_file_enumerator(FileEnumeratorProvider(64)).build(), 3)
    assert sorted(record["n"] for record in found) == list(range(50))


def test_records_are_resolved_to_the_schema_of_the_reader(tmp_path):
    path = write_file(tmp_path / "x.avro", AvroBulkWriters.for_generic_record(SCHEMA), RECORDS[:2])
    wanted = AvroSchema.parse_string(
        '{"type": "record", "name": "T", "fields": [{"name": "n", "type": "double"},'
        ' {"name": "extra", "type": "string", "default": "none"}]}'
    )
    values, _ = read_file(AvroReaderFormat.for_generic_record(wanted), path)
    assert values == [{"n": 0.0, "extra": "none"}, {"n": 1.0, "extra": "none"}]


def test_an_input_format_has_a_source_and_a_type(tmp_path):
    path = write_file(tmp_path / "x.avro", AvroBulkWriters.for_generic_record(SCHEMA), RECORDS)
    input_format = AvroInputFormat(str(path), SCHEMA)
    assert read_source(input_format.create_source()) == RECORDS
    assert input_format.get_produced_type().get_schema() == SCHEMA


@pytest.mark.parametrize(
    ("cut", "reason"),
    [(3, "as Avro: it is truncated"), (60, "is truncated"), (-3, "is truncated"), (-20, "is truncated")],
)
def test_a_file_that_breaks_off_is_an_error_that_names_it(tmp_path, cut, reason):
    path = write_file(tmp_path / "x.avro", AvroBulkWriters.for_generic_record(SCHEMA), RECORDS)
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(ConfigurationError, match=rf"x\.avro.*{reason}"):
        read_file(AvroReaderFormat.for_generic_record(SCHEMA), path)


def test_a_damaged_mark_is_an_error_that_names_the_block(tmp_path):
    path = write_file(tmp_path / "x.avro", AvroBulkWriters.for_generic_record(SCHEMA), RECORDS)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(ConfigurationError, match="there is no sync marker after the block at byte"):
        read_file(AvroReaderFormat.for_generic_record(SCHEMA), path)


def test_a_record_that_does_not_fit_leaves_the_file_as_it_was(tmp_path):
    stream = io.BytesIO()
    writer = AvroBulkWriters.for_generic_record(SCHEMA).create(stream)
    writer.add_element(RECORDS[0])
    for wrong in ({"n": 1}, {"n": "x", "at": 0}, "text"):
        with pytest.raises(RecordFormatError, match="is not a record in Avro"):
            writer.add_element(wrong)
    writer.add_element(RECORDS[1])
    writer.finish()
    path = tmp_path / "x.avro"
    path.write_bytes(stream.getvalue())
    assert read_file(AvroReaderFormat.for_generic_record(SCHEMA), path)[0] == RECORDS[:2]
