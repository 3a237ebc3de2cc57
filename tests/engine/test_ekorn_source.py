"""Spark's format `ekorn`, called as Spark's Python processes call it; no session is needed."""

import json
import pickle

import cloudpickle
import pyarrow
import pytest
from pyspark.sql import types as st
from pyspark.sql.worker.plan_data_source_read import records_to_arrow_batches

from ekorn.common import Instant
from ekorn.connectors.data_frames.row_files_sink import RowFilesSink
from ekorn.engine.spark.data_frames.ekorn_source import SCHEMA_FILE, EkornSource
from ekorn.engine.spark.data_frames.spark_schemas import row_type_from_spark
from ekorn.errors import ConfigurationError
from ekorn.table import Row
from ekorn.testing.kits import SinkJob

SCHEMA = st.StructType(
    [
        st.StructField("id", st.LongType(), False),
        st.StructField("small", st.ByteType()),
        st.StructField("at", st.TimestampType()),
        st.StructField("price", st.DecimalType(10, 2)),
        st.StructField("tags", st.ArrayType(st.StringType())),
        st.StructField("by_name", st.MapType(st.StringType(), st.DoubleType())),
        st.StructField("inner", st.StructType([st.StructField("x", st.IntegerType())])),
    ]
)


def write(folder, *ids):
    job = SinkJob(RowFilesSink(str(folder), row_type_from_spark(SCHEMA)), 2)
    for number in ids:
        row = Row(id=number, small=1, at=Instant(number, 0), price=None, tags=["a"], by_name={"x": 1.5}, inner=Row(x=7))
        job.write(number, row)
    job.finish()


def source(folder):
    return EkornSource({"path": str(folder)})


def ids_of(reader, partitions):
    """Read partitions in another process's copy of the reader, through the check that Spark makes of every batch."""
    reader = pickle.loads(cloudpickle.dumps(reader))
    found = []
    for partition in pickle.loads(cloudpickle.dumps(partitions)):
        batches = records_to_arrow_batches(reader.read(partition), 1000, SCHEMA, source("/"))
        found += pyarrow.Table.from_batches(batches).column("id").to_pylist()
    return sorted(found)


def test_an_offset_covers_what_was_committed_and_nothing_twice(tmp_path):
    reader = source(tmp_path).streamReader(SCHEMA)
    start = reader.initialOffset()
    assert reader.latestOffset(start, None) == start
    write(tmp_path, 1, 2, 3)
    first = reader.latestOffset(start, None)
    assert ids_of(reader, reader.partitions(start, first)) == [1, 2, 3]
    reader.commit(first)
    write(tmp_path, 4, 5)
    again = source(tmp_path).streamReader(SCHEMA)  # the query is started again
    second = again.latestOffset(first, None)
    assert ids_of(again, again.partitions(first, second)) == [4, 5]
    assert ids_of(again, again.partitions(start, first)) == [1, 2, 3], "a batch is repeated as it was"


def test_a_bounded_read_has_all_that_is_committed_whether_or_not_a_query_has_seen_it(tmp_path):
    write(tmp_path, 1, 2)
    stream = source(tmp_path).streamReader(SCHEMA)
    stream.latestOffset()
    write(tmp_path, 3)
    reader = source(tmp_path).reader(SCHEMA)
    assert ids_of(reader, reader.partitions()) == [1, 2, 3]


def test_the_columns_are_those_the_folder_was_begun_with(tmp_path):
    with pytest.raises(ConfigurationError, match=r"does not contain the rows of a job: to_streaming_data_frame\(path="):
        source(tmp_path).schema()
    (tmp_path / SCHEMA_FILE).write_text(json.dumps(SCHEMA.jsonValue()))
    assert source(tmp_path).schema() == SCHEMA


def test_a_path_is_needed():
    with pytest.raises(ConfigurationError, match=r"needs the path that was passed to to_streaming_data_frame"):
        EkornSource({}).schema()
