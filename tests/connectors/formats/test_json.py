"""JSON messages as Flink reads and writes them."""

import datetime
from decimal import Decimal

import cloudpickle
import pytest

from ekorn.common import Instant, Row, Types
from ekorn.datastream.formats.json import JsonRowDeserializationSchema, JsonRowSerializationSchema
from ekorn.errors import ConfigurationError, RecordFormatError

ALL = Types.ROW_NAMED(
    ["id", "price", "at", "day", "time", "moment", "tags", "sizes", "data", "inner", "ratio", "ok"],
    [
        Types.INT(),
        Types.BIG_DEC(),
        Types.SQL_TIMESTAMP(),
        Types.SQL_DATE(),
        Types.SQL_TIME(),
        Types.INSTANT(),
        Types.OBJECT_ARRAY(Types.STRING()),
        Types.MAP(Types.STRING(), Types.LONG()),
        Types.PRIMITIVE_ARRAY(Types.BYTE()),
        Types.ROW_NAMED(["x"], [Types.DOUBLE()]),
        Types.FLOAT(),
        Types.BOOLEAN(),
    ],
)
ROW = Row(
    id=1,
    price=Decimal("1.10"),
    at=datetime.datetime(2020, 1, 2, 3, 4, 5, 600_000),
    day=datetime.date(2020, 1, 2),
    time=datetime.time(3, 4, 5),
    moment=Instant(1, 500_000_000),
    tags=["ä\n", None],
    sizes={"k": 3},
    data=b"ab",
    inner=Row(x=1e10),
    ratio=0.5,
    ok=True,
)
TEXT = (
    '{"id":1,"price":1.10,"at":"2020-01-02T03:04:05.6Z","day":"2020-01-02","time":"03:04:05Z",'
    '"moment":"1970-01-01T00:00:01.5Z","tags":["ä\\n",null],"sizes":{"k":3},"data":"YWI=","inner":{"x":1.0E10},'
    '"ratio":0.5,"ok":true}'
)


def reader(type_info=ALL, *calls):
    builder = JsonRowDeserializationSchema.builder().type_info(type_info)
    for call in calls:
        getattr(builder, call)()
    return builder.build()


def writer(type_info=ALL):
    return JsonRowSerializationSchema.builder().with_type_info(type_info).build()


def test_values_of_every_type_are_written_and_read():
    assert writer().serialize(ROW).decode() == TEXT
    assert reader().deserialize(TEXT.encode()) == ROW


def test_schemas_travel_to_slots():
    assert cloudpickle.loads(cloudpickle.dumps(reader())).deserialize(TEXT.encode()) == ROW
    assert cloudpickle.loads(cloudpickle.dumps(writer())).serialize(ROW).decode() == TEXT


def test_none_is_null_everywhere():
    nothing = Row(**dict.fromkeys(ALL.get_field_names()))
    assert reader().deserialize(writer().serialize(nothing)) == nothing


def test_timestamps_in_sql():
    at = Types.ROW_NAMED(["at"], [Types.SQL_TIMESTAMP()])
    text = b'{"at":"2020-01-02 03:04:05.6"}'
    row = Row(at=datetime.datetime(2020, 1, 2, 3, 4, 5, 600_000))
    assert (
        JsonRowSerializationSchema.builder().with_type_info(at).timestamp_format("SQL").build().serialize(row) == text
    )
    schema = JsonRowDeserializationSchema.builder().type_info(at).timestamp_format("SQL").build()
    assert schema.deserialize(text) == row
    with pytest.raises(RecordFormatError, match="is not a timestamp such as 2020-01-31T"):
        reader(at).deserialize(text)
    with pytest.raises(ConfigurationError, match="'SQL' or 'ISO-8601'"):
        JsonRowDeserializationSchema.builder().timestamp_format("RFC")


PAIR = Types.ROW_NAMED(["id", "name"], [Types.INT(), Types.STRING()])


def test_numbers_may_be_texts_and_texts_may_be_anything():
    assert reader(PAIR).deserialize(b'{"id": " 7 ", "name": {"a": [1, 2]}}') == Row(id=7, name='{"a":[1,2]}')


def test_a_missing_field_is_none_unless_it_must_be_there():
    assert reader(PAIR).deserialize(b'{"id": 1, "more": 2}') == Row(id=1, name=None)
    with pytest.raises(RecordFormatError, match="there is no field 'name'"):
        reader(PAIR, "fail_on_missing_field").deserialize(b'{"id": 1}')


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (b'{"id": "x"}', "field 'id': 'x' is not a whole number"),
        (b'{"id": 1.5}', "field 'id': expected a whole number, found 1.5"),
        (b'{"id": true}', "field 'id': expected a number, found true"),
        (b'{"id": 2147483648}', "outside the range of INT"),
        (b"[1]", "expected an object"),
        (b"null", "expected an object, found null"),
        (b'{"id": 1', "Expecting"),
        (b'{"id": NaN}', "NaN is not JSON"),
        (b"\xff\xfe", "decode|Expecting"),
    ],
)
def test_a_message_that_does_not_fit_is_an_error_that_says_why(message, reason):
    with pytest.raises(RecordFormatError, match=reason):
        reader(PAIR).deserialize(message)


def test_parse_errors_that_are_ignored_give_none():
    lenient = reader(PAIR, "ignore_parse_errors")
    assert lenient.deserialize(b'{"id": "x", "name": "a"}') == Row(id=None, name="a")
    assert lenient.deserialize(b"{") is None
    with pytest.raises(ConfigurationError, match="choose one"):
        reader(PAIR, "ignore_parse_errors", "fail_on_missing_field")


def test_what_json_has_no_form_for_is_refused():
    with pytest.raises(RecordFormatError, match='field "ratio": JSON cannot represent nan'):
        writer(Types.ROW_NAMED(["ratio"], [Types.DOUBLE()])).serialize(Row(ratio=float("nan")))
    with pytest.raises(RecordFormatError, match="expected 2 fields, found 1"):
        writer(PAIR).serialize(Row(1))


def test_rows_by_a_json_schema():
    schema = """{"type": "object",
      "definitions": {"point": {"type": "object", "properties": {"x": {"type": "number"}}}},
      "properties": {"name": {"type": "string"}, "at": {"type": "string", "format": "date-time"},
        "where": {"$ref": "#/definitions/point"}, "tags": {"type": "array", "items": {"type": "string"}},
        "maybe": {"oneOf": [{"type": "null"}, {"type": "boolean"}]}, "data": {"type": ["null", "string"],
        "contentEncoding": "base64"}}}"""
    row = (
        JsonRowDeserializationSchema.builder()
        .json_schema(schema)
        .build()
        .deserialize(
            b'{"name": "a", "at": "2020-01-02T03:04:05Z", "where": {"x": 0.10}, "tags": ["t"], "maybe": true,'
            b'"data": "YQ=="}'
        )
    )
    at = datetime.datetime(2020, 1, 2, 3, 4, 5)
    assert row == Row(name="a", at=at, where=Row(x=Decimal("0.10")), tags=["t"], maybe=True, data=b"a")


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ("{", "cannot read a JSON schema"),
        ('{"type": "object"}', "object without properties"),
        ('{"type": "thing"}', "has the type 'thing'"),
        ('{"anyOf": []}', "uses 'anyOf'"),
        ('{"$ref": "#/absent"}', "is not in the schema"),
        ('{"type": "object", "properties": {"a": {"$ref": "#"}}}', "refers to itself"),
        ('{"type": ["string", "number"]}', "has 2 types"),
    ],
)
def test_json_schemas_without_a_type_are_refused(schema, reason):
    with pytest.raises(ConfigurationError, match=reason):
        JsonRowDeserializationSchema.builder().json_schema(schema)


def test_a_schema_needs_the_type_of_its_rows():
    with pytest.raises(TypeError, match=r"call type_info\(\)"):
        JsonRowDeserializationSchema.builder().build()
    with pytest.raises(TypeError, match=r"call with_type_info\(\)"):
        JsonRowSerializationSchema.builder().build()
    with pytest.raises(TypeError, match="takes the type of rows"):
        JsonRowDeserializationSchema.builder().type_info(Types.INT())
    with pytest.raises(ConfigurationError, match="JSON cannot represent values of the type"):
        reader(Types.ROW([Types.PICKLED_BYTE_ARRAY()]))
