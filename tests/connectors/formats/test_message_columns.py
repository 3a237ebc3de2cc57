"""JSON and Avro messages as columns: the same values as rows, by the batch."""

import datetime
import json
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ekorn.columns.row_columns import RowColumns
from ekorn.common import Row, Types
from ekorn.connectors.formats.avro_rows import AvroRowDeserializationSchema, AvroRowSerializationSchema
from ekorn.connectors.formats.json_rows import JsonRowDeserializationSchema, JsonRowSerializationSchema
from ekorn.connectors.formats.json_values import JsonReader, JsonWriter
from ekorn.connectors.formats.schema_registry import ConfluentRegistryAvroSerializationSchema
from ekorn.connectors.formats.text_values import TimestampFormat
from ekorn.datastream.columns import AvroColumns, JsonColumns
from ekorn.errors import ConfigurationError, RecordFormatError, RecordTypeError
from ekorn.table import DataTypes
from ekorn.types.avro_schema import AvroSchema
from ekorn.types.time import Instant
from tests.connectors.formats.values_of_types import AVRO, AVRO_ROWS, TEXTS, VALUES, WIDE, WITH_MAP
from tests.examples_by_profile import examples

ORDER = Types.ROW_NAMED(["customer", "amount"], [Types.STRING(), Types.LONG()])


def rows_of(columns, messages):
    """Return the rows of messages, and the numbers of those that are refused."""
    found = columns.decoder()(messages)
    kept = range(len(messages)) if found.kept is None else found.kept
    rows = RowColumns(columns.row_type).rows(found.data)
    assert len(rows) == len(kept), "the numbers of the kept messages are those of the rows"
    return dict(zip(kept, rows, strict=True)), dict(found.refused)


def each_alone(read, messages):
    rows, refused = {}, set()
    for number, message in enumerate(messages):
        try:
            row = read(message)
        except (RecordFormatError, RecordTypeError):
            refused.add(number)
            continue
        if row is not None:
            rows[number] = row
    return rows, refused


# ---------------------------------------------------------------------------------------------------------------- JSON

WHOLE = st.integers(-(2**70), 2**70) | st.integers(-(2**63), 2**63 - 1)
ANYTHING = st.recursive(
    st.none() | st.booleans() | WHOLE | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=examples(200))
@given(
    objects=st.lists(
        st.fixed_dictionaries(
            {},
            optional={
                "customer": TEXTS | ANYTHING,
                "amount": st.integers(-(2**63), 2**63 - 1) | WHOLE.map(str) | ANYTHING,
                "else": ANYTHING,
            },
        )
        | ANYTHING,
        max_size=40,
    ),
    indent=st.sampled_from([None, 1]),
    spoilt=st.lists(st.tuples(st.integers(0, 39), st.binary(max_size=6)), max_size=2),
)
def test_json_is_read_as_rows_read_it_whatever_the_messages_are(objects, indent, spoilt):
    messages = [json.dumps(each, indent=indent).encode() for each in objects]
    for at, content in spoilt:
        messages.insert(at, content)
    schema = JsonRowDeserializationSchema.builder().type_info(ORDER).build()
    rows, refused = rows_of(JsonColumns(ORDER), messages)
    assert (rows, refused.keys()) == each_alone(schema.deserialize, messages)


@pytest.mark.parametrize(
    "messages",
    [
        [b'{"amount":1}\n{"amount":2', b"}"],
        [b'{"amount":1}{"amount":2}', b""],
        [b'{"amount":{"amount":1}', b'{"amount":2}}'],
        [b'{"amount":NaN}', b'{"amount":1}'],
        [b'{"else":NaN}', b'{"amount":1}'],
        [b'{"customer":"NaN"}', b'{"amount":1}'],
        [b'{"else":"\xff"}', b'{"amount":1}'],
        [b'{"amount":1,"amount":2}'],
        [b' {"amount":1}\n', b'{"amount":2}'],
        [b'\xef\xbb\xbf{"amount":1}'],
        [b'[{"amount":1}]', b"null", b'"x"', b"{}"],
    ],
)
def test_a_message_is_never_taken_for_a_part_of_another(messages):
    schema = JsonRowDeserializationSchema.builder().type_info(ORDER).build()
    rows, refused = rows_of(JsonColumns(ORDER), messages)
    assert (rows, refused.keys()) == each_alone(schema.deserialize, messages)


@pytest.mark.parametrize("standard", list(TimestampFormat))
@pytest.mark.parametrize("row_type", [WIDE, WITH_MAP], ids=["all by Arrow", "with a map"])
@settings(max_examples=examples(40))
@given(data=st.data())
def test_json_of_every_type_has_the_values_that_were_written(row_type, standard, data):
    names = row_type.field_names()
    rows = data.draw(st.lists(st.builds(Row, **{name: st.none() | VALUES[name] for name in names}), max_size=20))
    write = JsonWriter(standard).of(row_type)
    messages = [write(row).encode() for row in rows]
    columns = JsonColumns(row_type, timestamp_format=standard.value)
    found, refused = rows_of(columns, messages)
    assert not refused
    assert list(found.values()) == rows
    read = JsonReader(fail_on_missing_field=False, lenient=False, timestamps=standard).of(row_type)
    decimals = [json.loads(message, parse_float=Decimal) for message in messages]
    assert [read(each) for each in decimals] == rows


def test_every_type_but_maps_is_read_by_arrow():
    assert JsonColumns(WITH_MAP).decoder().arrow is None
    write = JsonWriter(TimestampFormat.ISO_8601).of(WIDE)
    at = datetime.datetime(2020, 1, 2, 3, 4, 5, 678_000)
    row = Row(
        flag=True, tiny=1, int=2, real=0.5, double=0.1, price=Decimal("1.250"), day=at.date(), clock=at.time(), at=at,
        fine=at, instant=Instant(7, 8000), data=b"x", days=[at.date()], inner=Row(at=at, tags=["t"]),
    )  # fmt: skip
    arrow = JsonColumns(WIDE).decoder().arrow
    assert arrow is not None
    found = arrow.read([write(row).encode()])
    assert found is not None
    assert RowColumns(WIDE).rows(found) == [row]


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("at", '"2020-01-02"'),
        ("at", '"2020-01-02 03:04:05"'),
        ("at", '"2020-01-02T03:04:05+02:00"'),
        ("at", '"2020-01-02T03:04:05ZZ"'),
        ("at", '"0000-01-02T03:04:05"'),
        ("at", '"2020-02-30T03:04:05"'),
        ("at", '"2020-01-02T03:04:05.123456789Z"'),
        ("day", '"2020-1-2"'),
        ("clock", '"03:04"'),
        ("clock", '"25:04:00"'),
        ("instant", '"2020-01-02T03:04:05"'),
        ("instant", '"2020-01-02T03:04:05+02:00"'),
        ("data", '"no base64!"'),
        ("price", '"1.23456"'),
        ("price", "123456789012345"),
        ("real", "1e300"),
        ("double", "1e999"),
        ("double", '"0.25"'),
        ("tiny", "128"),
        ("flag", '"true"'),
    ],
)
def test_a_value_at_the_edge_is_read_or_refused_as_in_rows(field, text):
    message = f'{{"{field}":{text}}}'.encode()
    read = JsonReader(fail_on_missing_field=False, lenient=False, timestamps=TimestampFormat.ISO_8601).of(WIDE)
    found, refused = rows_of(JsonColumns(WIDE), [b"{}", message])
    try:
        row = read(json.loads(message, parse_float=Decimal))
        expected = RowColumns(WIDE).rows(RowColumns(WIDE).batch([row]))[0]
    except (ValueError, RecordTypeError):
        assert list(refused) == [1]
        assert field in str(refused[1])
    else:
        assert (found[1], refused) == (expected, {})


def test_one_message_that_does_not_parse_costs_only_itself():
    messages = [json.dumps({"customer": f"c{n}", "amount": n}).encode() for n in range(5000)]
    messages[1234] = b'{"customer": "x", "amount": "many"}'
    found, refused = rows_of(JsonColumns(ORDER), messages)
    assert list(refused) == [1234]
    assert "field 'amount'" in str(refused[1234])
    assert [row["amount"] for row in found.values()] == [n for n in range(5000) if n != 1234]


def test_a_column_that_is_not_null_refuses_objects_without_it():
    row_type = DataTypes.ROW([DataTypes.FIELD("n", DataTypes.BIGINT().not_null())])
    found, refused = rows_of(JsonColumns(row_type), [b'{"n":1}', b"{}", b'{"n":null}'])
    assert list(found) == [0]
    assert "column 'n' is not nullable" in str(refused[1])
    assert list(refused) == [1, 2]


def test_ignored_parse_errors_leave_fields_null_and_messages_out():
    columns = JsonColumns(ORDER, ignore_parse_errors=True)
    found, refused = rows_of(columns, [b'{"customer":"a","amount":"x"}', b"nonsense", b'{"amount":2}'])
    assert found == {0: Row(customer="a", amount=None), 2: Row(customer=None, amount=2)}
    assert not refused


def test_columns_that_json_cannot_represent_are_refused_at_once():
    with pytest.raises(TypeError, match="JsonColumns takes a row type"):
        JsonColumns("a")
    with pytest.raises(ConfigurationError, match="'SQL' or 'ISO-8601'"):
        JsonColumns(ORDER, timestamp_format="RFC")


def test_messages_of_rows_are_read_as_columns():
    schema = JsonRowSerializationSchema.builder().with_type_info(ORDER).build()
    found, _ = rows_of(JsonColumns(ORDER), [schema.serialize(Row("a", 1)), schema.serialize(Row(None, None))])
    assert list(found.values()) == [Row(customer="a", amount=1), Row(customer=None, amount=None)]


# ---------------------------------------------------------------------------------------------------------------- Avro


@settings(max_examples=examples(100))
@given(
    rows=st.lists(AVRO_ROWS, max_size=20),
    spoilt=st.lists(st.tuples(st.integers(0, 19), st.sampled_from([b"", b"\x00", b"\xff" * 9])), max_size=2),
)
def test_avro_is_read_as_rows_read_it(rows, spoilt):
    write = AvroRowSerializationSchema(avro_schema_string=AVRO)
    messages = [write.serialize(row) for row in rows]
    for at, content in spoilt:
        messages.insert(at, content)
    found, refused = rows_of(AvroColumns(AVRO), messages)
    rows_read, rows_refused = each_alone(AvroRowDeserializationSchema(avro_schema_string=AVRO).deserialize, messages)
    assert (found, refused.keys()) == (rows_read, rows_refused)


def test_avro_messages_that_do_not_end_where_their_records_end_are_refused():
    schema = '{"type": "record", "name": "N", "fields": [{"name": "n", "type": "long"}]}'
    write = AvroRowSerializationSchema(avro_schema_string=schema).serialize
    long, short = write(Row(1)) + write(Row(2)), b""  # as many records as messages
    found, refused = rows_of(AvroColumns(schema), [long, short, write(Row(3))])
    assert found == {2: Row(n=3)}
    assert "there are 1 bytes after the record" in str(refused[0])
    assert "the bytes end inside the record" in str(refused[1])


class Registry:
    """A registry in memory."""

    def __init__(self):
        self.schemas = {}

    def register(self, subject, schema):
        return self.schemas.setdefault(json.dumps(schema.json), len(self.schemas) + 1)

    def find(self, schema_id):
        return {number: AvroSchema.parse_string(text) for text, number in self.schemas.items()}.get(schema_id)


def test_records_of_several_schemas_of_a_registry_become_one_batch():
    registry = Registry()
    old = '{"type": "record", "name": "N", "fields": [{"name": "n", "type": "int"}]}'
    new = json.dumps(
        {
            "type": "record",
            "name": "N",
            "fields": [
                {"name": "n", "type": "long"},
                {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}, "default": 0},
            ],
        }
    )
    by_old = ConfluentRegistryAvroSerializationSchema.for_generic("s", AvroSchema.parse_string(old), registry)
    by_new = ConfluentRegistryAvroSerializationSchema.for_generic("s", AvroSchema.parse_string(new), registry)
    messages = [
        by_old.serialize({"n": 1}),
        by_old.serialize({"n": 2}),
        by_new.serialize({"n": 3, "at": 1_000}),
        b"\x01",
        b"\x00\x00\x00\x00\x09\x02",
        b"\x07\x00\x00\x00\x01\x02",
    ]
    found, refused = rows_of(AvroColumns(new, registry), messages)
    epoch = datetime.datetime(1970, 1, 1)
    assert found == {
        0: Row(n=1, at=epoch),
        1: Row(n=2, at=epoch),
        2: Row(n=3, at=epoch + datetime.timedelta(seconds=1)),
    }
    assert "shorter than the id of a schema" in str(refused[3])
    assert "the registry has no schema 9" in str(refused[4])
    assert "starts with the byte 7" in str(refused[5])


def test_an_avro_decimal_keeps_its_digits():
    schema = json.dumps(
        {
            "type": "record",
            "name": "P",
            "fields": [{"name": "p", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}}],
        }
    )
    write = AvroRowSerializationSchema(avro_schema_string=schema).serialize
    found, _ = rows_of(AvroColumns(schema), [write(Row(Decimal("12.30")))])
    assert found == {0: Row(p=Decimal("12.30"))}


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ('"long"', "need an Avro schema of records"),
        ('{"type":"record","name":"R","fields":[{"name":"u","type":["int","string"]}]}', "cannot represent the union"),
        ('{"type":"record","name":"R","fields":[{"name":"r","type":["null","R"]}]}', "'R' in itself"),
    ],
)
def test_avro_schemas_without_columns_are_refused_at_once(schema, says):
    with pytest.raises(ConfigurationError, match=says):
        AvroColumns(schema)
