"""Columns as JSON texts: byte for byte the texts that rows are written as."""

import datetime
import json
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ekorn.columns.row_columns import RowColumns
from ekorn.common import Row, Types
from ekorn.connectors.formats.avro_rows import AvroRowSerializationSchema
from ekorn.connectors.formats.json_rows import JsonRowSerializationSchema
from ekorn.connectors.formats.json_texts import row_texts
from ekorn.connectors.formats.json_values import JsonWriter
from ekorn.connectors.formats.text_values import TimestampFormat
from ekorn.errors import RecordFormatError
from ekorn.table import DataTypes
from tests.connectors.formats.values_of_types import AVRO, AVRO_ROWS, VALUES, WITH_MAP
from tests.examples_by_profile import examples

NAMES = WITH_MAP.field_names()
ROWS = st.lists(st.builds(Row, **{name: st.none() | VALUES[name] for name in NAMES}), max_size=12)


@pytest.mark.parametrize("standard", list(TimestampFormat))
@settings(max_examples=examples(60))
@given(rows=ROWS, cut=st.integers(0, 12))
def test_the_texts_of_columns_are_those_of_rows(standard, rows, cut):
    write = JsonWriter(standard).of(WITH_MAP)
    batch = RowColumns(WITH_MAP).batch(rows)
    texts = row_texts(WITH_MAP, NAMES, standard)
    part = batch.slice(min(cut, len(rows)))
    assert texts(batch).to_pylist() == [write(row) for row in rows]
    assert texts(part).to_pylist() == [write(row) for row in rows[cut:]]


NUMBERS = DataTypes.ROW([DataTypes.FIELD("f", DataTypes.FLOAT()), DataTypes.FIELD("d", DataTypes.DOUBLE())])


@settings(max_examples=examples(300))
@given(
    values=st.lists(
        st.tuples(
            st.floats(width=32, allow_nan=False, allow_infinity=False) | st.floats(0.0009765625, 2**24, width=32),
            st.floats(allow_nan=False, allow_infinity=False)
            | st.floats(1e-3, 1e7)
            | st.integers(-(10**8), 10**8).map(float),
        ),
        max_size=20,
    )
)
def test_numbers_have_the_digits_of_the_jvm(values):
    rows = [Row(f=f, d=d) for f, d in values]
    write = JsonWriter(TimestampFormat.SQL).of(NUMBERS)
    texts = row_texts(NUMBERS, ["f", "d"], TimestampFormat.SQL)(RowColumns(NUMBERS).batch(rows))
    assert texts.to_pylist() == [write(row) for row in rows]


ORDER = Types.ROW_NAMED(["customer", "amount"], [Types.STRING(), Types.LONG()])
COLUMNS = DataTypes.ROW(
    [
        DataTypes.FIELD("amount", DataTypes.INT()),
        DataTypes.FIELD("more", DataTypes.STRING()),
        DataTypes.FIELD("customer", DataTypes.STRING()),
    ]
)


def test_the_columns_of_the_type_are_written_in_its_order_and_others_are_left_out():
    schema = JsonRowSerializationSchema.builder().with_type_info(ORDER).build()
    encode = schema.column_encoder(COLUMNS)
    assert encode is not None
    batch = RowColumns(COLUMNS).batch([Row(amount=1, more="x", customer='say "hi"\n'), Row(1, "y", None)])
    assert encode(batch) == [b'{"customer":"say \\"hi\\"\\n","amount":1}', b'{"customer":null,"amount":1}']


@pytest.mark.parametrize(
    "columns",
    [
        [DataTypes.FIELD("customer", DataTypes.STRING())],
        [DataTypes.FIELD("customer", DataTypes.STRING()), DataTypes.FIELD("amount", DataTypes.DOUBLE())],
    ],
    ids=["one is missing", "one has another type"],
)
def test_columns_of_another_type_are_written_as_rows(columns):
    schema = JsonRowSerializationSchema.builder().with_type_info(ORDER).build()
    assert schema.column_encoder(DataTypes.ROW(columns)) is None


def test_a_number_without_a_form_in_json_is_an_error_with_its_row():
    schema = JsonRowSerializationSchema.builder().with_type_info(Types.ROW_NAMED(["d"], [Types.DOUBLE()])).build()
    row_type = DataTypes.ROW([DataTypes.FIELD("d", DataTypes.DOUBLE())])
    encode = schema.column_encoder(row_type)
    assert encode is not None
    with pytest.raises(RecordFormatError, match=r"Row\(d=nan\) is not a record in JSON: field .d.: JSON cannot repr"):
        encode(RowColumns(row_type).batch([Row(1.0), Row(float("nan"))]))


def test_decimals_of_rows_are_written_with_the_digits_of_their_column():
    schema = JsonRowSerializationSchema.builder().with_type_info(Types.ROW_NAMED(["p"], [Types.BIG_DEC()])).build()
    row_type = DataTypes.ROW([DataTypes.FIELD("p", DataTypes.DECIMAL(9, 2))])
    encode = schema.column_encoder(row_type)
    assert encode is not None
    rows = RowColumns(row_type).rows(RowColumns(row_type).batch([Row(Decimal("1.5"))]))
    assert encode(RowColumns(row_type).batch(rows)) == [schema.serialize(row) for row in rows] == [b'{"p":1.50}']


AVRO_COLUMNS = DataTypes.ROW(
    [
        DataTypes.FIELD("customer", DataTypes.STRING()),
        DataTypes.FIELD("amount", DataTypes.BIGINT()),
        DataTypes.FIELD("real", DataTypes.FLOAT()),
        DataTypes.FIELD("data", DataTypes.BYTES()),
        DataTypes.FIELD("day", DataTypes.DATE()),
        DataTypes.FIELD("at", DataTypes.TIMESTAMP(3)),
        DataTypes.FIELD("kind", DataTypes.STRING()),
        DataTypes.FIELD("tags", DataTypes.ARRAY(DataTypes.STRING())),
        DataTypes.FIELD("counts", DataTypes.MAP(DataTypes.STRING(), DataTypes.INT())),
        DataTypes.FIELD("inner", DataTypes.ROW([DataTypes.FIELD("at", DataTypes.TIMESTAMP(6))])),
    ]
)


@settings(max_examples=examples(40))
@given(rows=st.lists(AVRO_ROWS, max_size=10))
def test_avro_of_columns_is_that_of_rows(rows):
    schema = AvroRowSerializationSchema(avro_schema_string=AVRO)
    encode = schema.column_encoder(AVRO_COLUMNS)
    assert encode is not None
    assert encode(RowColumns(AVRO_COLUMNS).batch(rows)) == [schema.serialize(row) for row in rows]


def test_avro_of_plain_columns_is_that_of_rows():
    fields = [
        {"name": "n", "type": ["null", "long"]},
        {"name": "s", "type": "string"},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
    ]
    schema = AvroRowSerializationSchema(
        avro_schema_string=json.dumps({"type": "record", "name": "P", "fields": fields})
    )
    row_type = DataTypes.ROW(
        [
            DataTypes.FIELD("day", DataTypes.DATE()),
            DataTypes.FIELD("s", DataTypes.STRING()),
            DataTypes.FIELD("n", DataTypes.BIGINT()),
        ]
    )
    encode = schema.column_encoder(row_type)
    assert encode is not None
    rows = [Row(day=datetime.date(2020, 1, 2), s="a", n=None), Row(day=datetime.date(1970, 1, 1), s="é", n=7)]
    assert encode(RowColumns(row_type).batch(rows)) == [schema.serialize(row) for row in rows]
    with pytest.raises(RecordFormatError, match="Avro"):
        encode(RowColumns(row_type).batch([Row(day=None, s="a", n=1)]))
    assert schema.column_encoder(DataTypes.ROW([DataTypes.FIELD("s", DataTypes.STRING())])) is None
