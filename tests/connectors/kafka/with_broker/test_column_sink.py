"""`KafkaSink` for columns against a real broker: the messages of the row form, with the same transactions."""

import json

import numpy as np
import pyarrow as pa
import pytest

from ekorn.columns.column_batch import ColumnBatch
from ekorn.columns.row_columns import RowColumns
from ekorn.common import Configuration, Row, SimpleStringSchema, Types, WatermarkStrategy
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.columns import ColumnGeneratorSource, Count, JsonColumns, Sum
from ekorn.datastream.connectors.base import DeliveryGuarantee
from ekorn.datastream.connectors.kafka import (
    KafkaKeyColumn,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
    KafkaTopicColumn,
)
from ekorn.datastream.formats.json import JsonRowSerializationSchema
from ekorn.errors import ConfigurationError, KafkaError, RecordFormatError
from ekorn.table import DataTypes
from ekorn.testing.kits import ColumnSinkKit, SinkCase
from ekorn.testing.local_run import on_local_engine
from ekorn.testing.process_engine import on_process_engine
from tests.connectors.kafka.with_broker.sinks import EXACTLY_ONCE
from tests.connectors.killed_slots import COMMIT_STEPS
from tests.live_jobs import environment, until
from tests.servers.kafka.topics import consume, new_topic, produce, values, wait_until_nothing_is_open

ORDER = Types.ROW_NAMED(["customer", "amount"], [Types.STRING(), Types.LONG()])
COLUMNS = DataTypes.ROW(
    [DataTypes.FIELD("customer", DataTypes.STRING()), DataTypes.FIELD("amount", DataTypes.BIGINT())]
)
AS_JSON = JsonRowSerializationSchema.builder().with_type_info(ORDER).build()


def writing(kafka, topic, guarantee=EXACTLY_ONCE, key=None, *, value=AS_JSON, selector=None):
    serializer = KafkaRecordSerializationSchema.builder().set_value_serialization_schema(value)
    serializer = serializer.set_topic_selector(selector) if selector else serializer.set_topic(topic)
    if key is not None:
        serializer = serializer.set_key_serialization_schema(key)
    return (
        KafkaSink.builder()
        .set_bootstrap_servers(kafka.servers)
        .set_record_serializer(serializer.build())
        .set_delivery_guarantee(guarantee)
        .set_transactional_id_prefix(f"p-{topic}")
        .build()
    )


class OrdersCase(SinkCase):
    row_type = COLUMNS

    def __init__(self, kafka, topic):
        self._kafka = kafka
        self._topic = topic

    def sink(self):
        return writing(self._kafka, self._topic)

    def record(self, number):
        return Row(customer=f"c{number}", amount=number)

    def visible(self):
        return [Row(**json.loads(text)) for text in values(self._kafka, self._topic)]

    def settle(self):
        wait_until_nothing_is_open(self._kafka.servers, self._topic)


class TestTransactionsOfColumns(ColumnSinkKit):
    parallelisms = (3,)

    @pytest.fixture
    def make_case(self, kafka):
        return lambda: OrdersCase(kafka, new_topic(kafka))


def write(sink, row_type, rows, times=None):
    found = sink.with_columns(row_type)
    assert found is not None
    writer = found.create_writer(None, [])
    writer.write_batch(ColumnBatch(RowColumns(row_type).batch(rows), times))
    writer.finish()
    writer.close()


def write_rows(sink, rows, time=None):
    writer = sink.create_writer(None, [])
    for row in rows:
        writer.write(row, time)
    writer.finish()
    writer.close()


def seen(kafka, topic):
    messages = consume(kafka, topic)
    return [(m.partition(), m.key(), m.value()) for m in messages]


def test_keys_values_partitions_and_timestamps_are_those_of_the_row_form(kafka):
    rows = [Row(customer=None if n % 5 == 0 else f'c"{n}', amount=n) for n in range(40)]
    keys = {
        "column": KafkaKeyColumn("customer"),
        "number": KafkaKeyColumn("amount"),
        "json": JsonRowSerializationSchema.builder()
        .with_type_info(Types.ROW_NAMED(["customer"], [Types.STRING()]))
        .build(),
    }
    for key in keys.values():
        of_columns, of_rows = new_topic(kafka, 3), new_topic(kafka, 3)
        write(writing(kafka, of_columns, DeliveryGuarantee.AT_LEAST_ONCE, key), COLUMNS, rows, np.arange(40) + 1)
        write_rows(writing(kafka, of_rows, DeliveryGuarantee.AT_LEAST_ONCE, key), rows)
        keyed = [each for each in seen(kafka, of_columns) if each[1] is not None]
        assert sorted(keyed) == sorted(each for each in seen(kafka, of_rows) if each[1] is not None)
        assert len(consume(kafka, of_columns)) == 40
        times = {json.loads(m.value())["amount"]: m.timestamp()[1] for m in consume(kafka, of_columns)}
        assert times == {n: n + 1 for n in range(40)}


def test_topics_are_taken_from_a_column(kafka):
    one, two = new_topic(kafka), new_topic(kafka)
    row_type = DataTypes.ROW([*COLUMNS, DataTypes.FIELD("topic", DataTypes.STRING())])
    rows = [Row(customer=f"c{n}", amount=n, topic=one if n % 2 else two) for n in range(6)]
    sink = writing(kafka, one, DeliveryGuarantee.AT_LEAST_ONCE, selector=KafkaTopicColumn("topic"))
    write(sink, row_type, rows)
    write_rows(sink, rows)
    assert [json.loads(text)["amount"] for text in values(kafka, one)] == [1, 3, 5] * 2
    assert [json.loads(text)["amount"] for text in values(kafka, two)] == [0, 2, 4] * 2
    with pytest.raises(KafkaError, match="column 'topic' has no name of a topic"):
        write(sink, row_type, [*rows, Row(customer="x", amount=9, topic=None)])
    assert len(values(kafka, one)) == 6  # nothing of a batch with such a row is written


def test_serializers_that_take_records_get_rows(kafka):
    text = writing(kafka, "t", value=SimpleStringSchema())
    assert text.with_columns(COLUMNS) is None
    by_function = writing(kafka, "t", selector=lambda row: "t")
    assert by_function.with_columns(COLUMNS) is None
    missing = DataTypes.ROW([DataTypes.FIELD("amount", DataTypes.BIGINT())])
    assert writing(kafka, "t").with_columns(missing) is None


def test_columns_that_cannot_be_keys_or_topics_are_refused_where_the_sink_is_drawn(kafka):
    with pytest.raises(
        ConfigurationError, match="KafkaKeyColumn takes column 'city', and the stream has customer, amount"
    ):
        writing(kafka, "t", key=KafkaKeyColumn("city")).with_columns(COLUMNS)
    numbers = DataTypes.ROW([DataTypes.FIELD("d", DataTypes.DOUBLE())])
    of_numbers = JsonRowSerializationSchema.builder().with_type_info(Types.ROW_NAMED(["d"], [Types.DOUBLE()])).build()
    with pytest.raises(ConfigurationError, match="project the stream to such a column first"):
        writing(kafka, "t", key=KafkaKeyColumn("d"), value=of_numbers).with_columns(numbers)
    with pytest.raises(ConfigurationError, match="KafkaTopicColumn takes a column of text"):
        writing(kafka, "t", selector=KafkaTopicColumn("amount")).with_columns(COLUMNS)


def test_rows_without_a_key_of_a_right_type_are_refused_on_rows():
    assert KafkaKeyColumn("k").serialize(Row(k=None)) is None
    assert KafkaKeyColumn("k").serialize(Row(k=b"x")) == b"x"
    with pytest.raises(RecordFormatError, match=r"field 'k' is 1\.5"):
        KafkaKeyColumn("k").serialize(Row(k=1.5))


DOUBLES = Types.ROW_NAMED(["n", "d"], [Types.LONG(), Types.DOUBLE()])


def doubles(first, count):
    bad = [float("nan") if n in (7, 300) else n / 2 for n in range(first, first + count)]
    return pa.record_batch({"n": list(range(first, first + count)), "d": bad})


def test_only_the_row_without_a_form_is_skipped(kafka):
    topic = new_topic(kafka)
    env = StreamExecutionEnvironment.get_execution_environment(
        Configuration().set_string("ekorn.on-record-error", "skip")
    ).set_parallelism(1)
    schema = JsonRowSerializationSchema.builder().with_type_info(DOUBLES).build()
    stream = env.from_source(ColumnGeneratorSource(doubles, 500, DOUBLES), WatermarkStrategy.no_watermarks(), "doubles")
    stream.sink_to(writing(kafka, topic, DeliveryGuarantee.AT_LEAST_ONCE, value=schema))
    assert "To Rows" not in env.get_execution_plan()
    with on_local_engine():
        env.execute()
    written = sorted(json.loads(text)["n"] for text in values(kafka, topic))
    assert written == [n for n in range(500) if n not in (7, 300)]


RECORDS = 4000
STEPS = {"kafka-flushed": "kafka-flushed:*:1:kill", "kafka-prepared": "kafka-prepared:*:1:kill", **COMMIT_STEPS}


@pytest.mark.parametrize("step", STEPS)
def test_from_json_to_json_by_way_of_a_keyed_aggregate_a_kill_at_a_step_loses_and_repeats_nothing(
    step, kafka, tmp_path, monkeypatch
):
    read, written = new_topic(kafka, 2), new_topic(kafka)
    happened = tmp_path / "faults"
    happened.mkdir()
    monkeypatch.setenv("EKORN_FAULT", STEPS[step])
    monkeypatch.setenv("EKORN_FAULT_DIR", str(happened))
    env = environment(tmp_path / "checkpoints", parallelism=2, interval_ms=50, restarts=10)
    source = KafkaSource.builder().set_bootstrap_servers(kafka.servers).set_topics(read)
    stream = env.from_source(
        source.set_value_only_deserializer(JsonColumns(ORDER)).build(), WatermarkStrategy.no_watermarks(), "orders"
    )
    totals = stream.key_by("customer").aggregate(amount=Sum("amount"), orders=Count())
    totals.sink_to(writing(kafka, written))

    def send(first, end):
        for partition in range(2):
            texts = [json.dumps({"customer": f"c{n % 7}", "amount": n}) for n in range(first + partition, end, 2)]
            produce(kafka, read, texts, partition)

    send(0, RECORDS // 2)
    with on_process_engine():
        client = env.execute_async()
        until(lambda: len(list(happened.iterdir())) == STEPS[step].count(",") + 1)
        send(RECORDS // 2, RECORDS)
        until(lambda: len(values(kafka, written)) >= RECORDS)
        client.cancel().result(60)
    assert client.get_progress().restarts >= 1
    found = [json.loads(text) for text in values(kafka, written)]
    assert len(found) == RECORDS
    last = {}
    for total in found:
        last[total["customer"]] = max(last.get(total["customer"], 0), total["amount"])
    assert last == {f"c{k}": sum(range(k, RECORDS, 7)) for k in range(7)}
