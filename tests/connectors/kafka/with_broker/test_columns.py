"""Kafka in columns against a real broker: the rows, the places and the errors are those of the row form."""

import json
from typing import Any

import pyarrow.compute as pc
import pytest

from ekorn.columns.row_columns import RowColumns
from ekorn.common import Configuration, Row, Time, Types, WatermarkStrategy
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.columns import AvroColumns, Count, JsonColumns, Sum
from ekorn.datastream.connectors.kafka import KafkaColumns, KafkaOffsetsInitializer, KafkaSource
from ekorn.datastream.formats.avro import AvroRowSerializationSchema
from ekorn.datastream.formats.json import JsonRowDeserializationSchema
from ekorn.datastream.window import TumblingEventTimeWindows
from ekorn.errors import ConfigurationError, JobExecutionError, KafkaError, MalformedRecordError
from ekorn.testing.kits import SourceJob
from ekorn.testing.local_run import collect_locally
from tests.servers.kafka.topics import new_topic, produce

ORDER = Types.ROW_NAMED(["customer", "amount", "at"], [Types.STRING(), Types.LONG(), Types.LONG()])
LATEST = KafkaOffsetsInitializer.latest()


def reading(kafka, topic, columns=None):
    builder = KafkaSource.builder().set_bootstrap_servers(kafka.servers).set_topics(topic)
    return builder.set_value_only_deserializer(JsonColumns(ORDER) if columns is None else columns)


def order(customer, amount, at):
    return json.dumps({"customer": customer, "amount": amount, "at": at})


def orders(kafka, partitions=2, count=200):
    """Fill a topic; the times of its partitions are far apart."""
    topic = new_topic(kafka, partitions)
    for partition in range(partitions):
        times = range(partition * 1_000_000, partition * 1_000_000 + count * 10, 10)
        values = [order(f"c{n % 7}", n, at) for n, at in enumerate(times)]
        produce(kafka, topic, values, partition, timestamp=1_000 + partition)
    return topic


def tables(batches, row_type):
    return [row for batch in batches for row in RowColumns(row_type).rows(batch.data)]


@pytest.mark.parametrize("size", [1, 7, 64, 10_000])
def test_the_rows_are_those_of_the_row_form_and_positions_lie_between_any_two(kafka, size):
    topic = orders(kafka)
    by_rows = reading(kafka, topic, JsonRowDeserializationSchema.builder().type_info(ORDER).build())
    expected = SourceJob(by_rows.set_bounded(LATEST).build(), 1).read_all()
    columns = JsonColumns(ORDER)
    job, found = SourceJob(reading(kafka, topic, columns).set_bounded(LATEST).build(), 1), []
    for _ in range(4):
        batches = job.read(0, size)
        assert sum(map(len, batches)) <= size
        found += tables(batches, columns.row_type)
    snapshot = job.snapshot()
    job.close()
    restored = SourceJob(job.source, 3, snapshot)
    found += tables(restored.read_all(size), columns.row_type)
    assert sorted(map(repr, found)) == sorted(map(repr, expected))
    assert len(found) == 400


def environment(**options):
    configuration = Configuration()
    for name, value in options.items():
        configuration.set_string(name.replace("__", ".").replace("_", "-"), value)
    return StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(1)


def test_columns_of_the_place_stand_behind_those_of_the_value(kafka):
    topic = new_topic(kafka, 2)
    produce(kafka, topic, [b"\xff", order("a", 1, 5)], 1, key="k", timestamp=1234)
    produce(kafka, topic, [order("b", 2, 6)], 1, timestamp=1235)
    columns = KafkaColumns(
        JsonColumns(ORDER), topic="topic", partition="part", offset="offset", timestamp="sent", key="key"
    )
    source = KafkaSource.builder().set_bootstrap_servers(kafka.servers).set_topics(topic).set_deserializer(columns)
    env = environment(ekorn__on_record_error="skip")
    stream = env.from_source(source.set_bounded(LATEST).build(), WatermarkStrategy.no_watermarks(), "kafka")
    assert stream.row_type.field_names() == ["customer", "amount", "at", "topic", "part", "offset", "sent", "key"]
    names = stream.row_type.field_names()
    assert collect_locally(stream) == [
        Row(**dict(zip(names, ("a", 1, 5, topic, 1, 1, 1234, b"k"), strict=True))),
        Row(**dict(zip(names, ("b", 2, 6, topic, 1, 2, 1235, None), strict=True))),
    ]


def test_avro_messages_become_columns(kafka):
    schema = """{"type": "record", "name": "Word", "fields": [
        {"name": "id", "type": "int"}, {"name": "word", "type": ["null", "string"]}]}"""
    write = AvroRowSerializationSchema(avro_schema_string=schema).serialize
    topic = new_topic(kafka)
    produce(kafka, topic, [write(Row(1, "hi")), write(Row(2, None))])
    source = reading(kafka, topic, AvroColumns(schema)).set_bounded(LATEST).build()
    stream = environment().from_source(source, WatermarkStrategy.no_watermarks(), "kafka")
    assert collect_locally(stream.filter(pc.field("id") > 0)) == [Row(id=1, word="hi"), Row(id=2, word=None)]


@pytest.mark.parametrize("execution", ["epochs", "continuous"])
def test_each_partition_has_a_watermark_of_its_own_by_a_column(kafka, execution):
    topic = orders(kafka)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_column("at")
    env = environment(ekorn__execution=execution)
    stream = env.from_source(reading(kafka, topic).set_bounded(LATEST).build(), strategy, "kafka")
    windows = stream.key_by("customer").window(TumblingEventTimeWindows.of(Time.seconds(1)))
    found = collect_locally(windows.aggregate(total=Sum("amount"), orders=Count()))
    assert sum(row["orders"] for row in found) == 400
    assert sum(row["total"] for row in found) == 2 * sum(range(200))
    assert {row["window_start"] for row in found} == {0, 1_000, 1_000_000, 1_001_000}


def test_the_timestamps_of_messages_are_those_of_rows(kafka):
    topic = orders(kafka, count=3)
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    stream = environment().from_source(reading(kafka, topic).set_bounded(LATEST).build(), strategy, "kafka")
    windows = stream.key_by("customer").window(TumblingEventTimeWindows.of(Time.milliseconds(1)))
    found = collect_locally(windows.aggregate(orders=Count()))
    assert sorted((row["window_start"], row["orders"]) for row in found) == [(1_000, 1)] * 3 + [(1_001, 1)] * 3


def test_a_message_that_does_not_parse_is_an_error_with_its_place_and_field(kafka):
    topic = new_topic(kafka)
    produce(kafka, topic, [order("a", 1, 5), order("b", "many", 5), order("c", 3, 5)])
    source = reading(kafka, topic).set_bounded(LATEST).build()
    stream = environment().from_source(source, WatermarkStrategy.no_watermarks(), "kafka")
    says = rf"the message at offset 1 of partition 0 of topic '{topic}': field 'amount': 'many' is not a whole number"
    with pytest.raises(JobExecutionError, match=says) as failed:
        collect_locally(stream)
    assert MalformedRecordError.__name__ in repr(failed.value.cause)


def test_only_the_message_that_does_not_parse_is_skipped_or_a_dead_letter(kafka):
    topic = new_topic(kafka)
    values = [order(f"c{n}", n, n) for n in range(1000)]
    values[500] = order("b", "many", 5)
    values[700] = None
    produce(kafka, topic, values, key="k")
    source = reading(kafka, topic).set_bounded(LATEST).build()
    skipping = environment(ekorn__on_record_error="skip")
    found = collect_locally(skipping.from_source(source, WatermarkStrategy.no_watermarks(), "kafka"))
    assert [row["amount"] for row in found] == [n for n in range(1000) if n not in (500, 700)]
    env = environment()
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "kafka").on_record_error("dead-letter")
    letters = stream.get_dead_letters().map(lambda letter: (letter.record, letter.error))
    found = collect_locally(letters.union(stream.filter(pc.field("amount") < 0).map(lambda row: row)))
    assert [record for record, _ in found] == [None, values[500].encode()]
    assert "tombstone" in found[0][1]
    assert f"offset 500 of partition 0 of topic '{topic}'" in found[1][1]


def test_a_tombstone_fails_the_job_as_in_the_row_form(kafka):
    topic = new_topic(kafka)
    produce(kafka, topic, [None], key="k")
    stream = environment().from_source(
        reading(kafka, topic).set_bounded(LATEST).build(), WatermarkStrategy.no_watermarks(), "kafka"
    )
    with pytest.raises(JobExecutionError, match=rf"offset 0 of partition 0 of topic '{topic}': it is a tombstone") as e:
        collect_locally(stream)
    assert KafkaError.__name__ in repr(e.value.cause)


def test_columns_of_one_name_are_refused():
    int_instead: Any = 1
    with pytest.raises(ConfigurationError, match="two columns of one name"):
        KafkaColumns(JsonColumns(ORDER), topic="customer")
    with pytest.raises(TypeError, match="takes JsonColumns or AvroColumns"):
        KafkaColumns(int_instead)
