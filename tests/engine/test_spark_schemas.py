"""Row types from Spark's schemas and back; Spark's types are plain Python objects, and no session is needed."""

import datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as some
from pyspark.sql import types as st

from ekorn.columns.row_columns import RowColumns
from ekorn.common import Instant, Types
from ekorn.engine.spark.data_frames.spark_schemas import row_type_from_spark, spark_schema
from ekorn.errors import ConfigurationError
from ekorn.table import DataTypes, Row
from ekorn.types.data_type_info import row_type_info
from ekorn.types.row_schema import row_type_of

PLAIN = [
    st.ByteType(),
    st.ShortType(),
    st.IntegerType(),
    st.LongType(),
    st.FloatType(),
    st.DoubleType(),
    st.BooleanType(),
    st.StringType(),
    st.BinaryType(),
    st.DateType(),
    st.TimestampType(),
    st.TimestampNTZType(),
    st.DecimalType(38, 18),
    st.DecimalType(1, 0),
]


def nested(inner):
    names = some.sampled_from(["a", "b", "ä ö", "c.d"])
    fields = some.lists(some.tuples(names, inner, some.booleans()), max_size=3, unique_by=lambda field: field[0])
    structs = fields.map(lambda found: st.StructType([st.StructField(*field) for field in found]))
    arrays = some.builds(st.ArrayType, inner, some.booleans())
    maps = some.builds(st.MapType, inner, inner, some.booleans())
    return structs | arrays | maps


COLUMNS = some.recursive(some.sampled_from(PLAIN), nested, max_leaves=6)
SCHEMAS = some.lists(some.tuples(COLUMNS, some.booleans()), max_size=4).map(
    lambda columns: st.StructType([st.StructField(f"c{i}", *column) for i, column in enumerate(columns)])
)


@given(SCHEMAS)
def test_a_schema_of_spark_comes_back_unchanged(schema):
    assert spark_schema(row_type_from_spark(schema)) == schema


@pytest.mark.parametrize(
    ("given_type", "says"),
    [
        (st.DayTimeIntervalType(), "column 'a.b' has Spark's type interval day to second.* cast it"),
        (st.VariantType(), "column 'a.b' has Spark's type variant"),
    ],
)
def test_a_type_that_no_stream_has_is_refused_with_its_column(given_type, says):
    inner = st.StructType([st.StructField("b", given_type)])
    with pytest.raises(ConfigurationError, match=says):
        row_type_from_spark(st.StructType([st.StructField("a", inner)]))


def test_two_columns_of_one_name_are_refused():
    twice = st.StructType([st.StructField("id", st.LongType()), st.StructField("id", st.LongType())])
    with pytest.raises(ConfigurationError, match="two columns named 'id'; rename"):
        row_type_from_spark(twice)


def test_the_type_of_a_stream_has_the_columns_that_spark_shows():
    inner = Types.ROW_NAMED(["x"], [Types.DOUBLE()])
    stream_type = Types.ROW_NAMED(
        ["id", "at", "tags", "by_name", "inner", "raw", "price"],
        [
            Types.LONG(),
            Types.INSTANT(),
            Types.LIST(Types.STRING()),
            Types.MAP(Types.STRING(), Types.INT()),
            inner,
            Types.PRIMITIVE_ARRAY(Types.BYTE()),
            Types.BIG_DEC(),
        ],
    )
    schema = spark_schema(row_type_of(stream_type, "to_data_frame()"))
    assert schema.simpleString() == (
        "struct<id:bigint,at:timestamp,tags:array<string>,by_name:map<string,int>,inner:struct<x:double>,raw:binary,"
        "price:decimal(38,18)>"
    )


def test_types_survive_the_way_to_spark_and_back():
    stream_type = Types.ROW_NAMED(
        ["n", "s", "d", "i"], [Types.INT(), Types.STRING(), Types.SQL_DATE(), Types.INSTANT()]
    )
    again = row_type_info(row_type_from_spark(spark_schema(row_type_of(stream_type, "f()"))))
    assert again == stream_type
    assert again.get_field_names() == stream_type.get_field_names()


@pytest.mark.parametrize("stream_type", [None, Types.LONG(), Types.PICKLED_BYTE_ARRAY()])
def test_a_stream_without_columns_needs_a_schema(stream_type):
    with pytest.raises(ConfigurationError, match=r"to_data_frame\(\) needs the columns.* pass a schema"):
        row_type_of(stream_type, "to_data_frame()")


def test_values_of_every_type_survive_columns_of_arrow():
    columns = RowColumns(
        DataTypes.ROW(
            [
                DataTypes.FIELD("n", DataTypes.BIGINT()),
                DataTypes.FIELD("price", DataTypes.DECIMAL(10, 2)),
                DataTypes.FIELD("at", DataTypes.TIMESTAMP_LTZ(6)),
                DataTypes.FIELD("local", DataTypes.TIMESTAMP(6)),
                DataTypes.FIELD("day", DataTypes.DATE()),
                DataTypes.FIELD("raw", DataTypes.BYTES()),
                DataTypes.FIELD("tags", DataTypes.ARRAY(DataTypes.STRING())),
                DataTypes.FIELD("by_name", DataTypes.MAP(DataTypes.STRING(False), DataTypes.DOUBLE())),
                DataTypes.FIELD("inner", DataTypes.ROW([DataTypes.FIELD("x", DataTypes.INT())])),
            ]
        )
    )
    full = Row(
        n=1,
        price=Decimal("1.50"),
        at=Instant(-1, 999_999_000),
        local=datetime.datetime(1582, 1, 1, 3, 4, 5, 678901),
        day=datetime.date(9999, 12, 31),
        raw=b"\0\xff",
        tags=["a", None],
        by_name={"x": 1.5, "y": None},
        inner=Row(x=7),
    )
    empty = Row(**dict.fromkeys(columns.names))
    assert columns.rows(columns.batch([full, empty])) == [full, empty]
