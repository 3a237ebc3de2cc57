"""Whole programs from and to Kafka: the example, rows in formats, the older names, written as PyFlink's are."""

import pytest

from ekorn.common import ByteArraySchema, Row, Types, WatermarkStrategy
from ekorn.common.serialization import RowFieldExtractorSchema
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.connectors.kafka import (
    DeliveryGuarantee,
    FlinkKafkaConsumer,
    FlinkKafkaProducer,
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from ekorn.datastream.formats.avro import AvroRowDeserializationSchema, AvroRowSerializationSchema
from ekorn.datastream.formats.csv import CsvRowDeserializationSchema, CsvRowSerializationSchema
from ekorn.datastream.formats.json import JsonRowDeserializationSchema, JsonRowSerializationSchema
from ekorn.testing.local_run import on_local_engine
from tests.example_modules import example
from tests.manual.blocks import DOCS, blocks_run_by
from tests.servers.kafka.topics import consume, new_topic, produce, values

WORD = Types.ROW_NAMED(["id", "word"], [Types.INT(), Types.STRING()])
WORDS = [(1, "hi"), (2, "hello"), (3, "hi")]
AVRO = """{"type": "record", "name": "Word", "fields": [
    {"name": "id", "type": "int"}, {"name": "word", "type": "string"}]}"""
FORMATS = {
    "json": (
        JsonRowSerializationSchema.builder().with_type_info(WORD).build(),
        JsonRowDeserializationSchema.builder().type_info(WORD).build(),
    ),
    "csv": (CsvRowSerializationSchema.Builder(WORD).build(), CsvRowDeserializationSchema.Builder(WORD).build()),
    "avro": (
        AvroRowSerializationSchema(avro_schema_string=AVRO),
        AvroRowDeserializationSchema(avro_schema_string=AVRO),
    ),
}


@pytest.mark.filterwarnings("ignore:add_jars:UserWarning")
@pytest.mark.parametrize("name", FORMATS)
def test_rows_are_written_and_read_in_a_format(kafka, name):
    topic, (serialization, deserialization) = new_topic(kafka), FORMATS[name]
    env = StreamExecutionEnvironment.get_execution_environment()
    env.add_jars("file:///path/of/flink-sql-connector-kafka.jar")
    serializer = (
        KafkaRecordSerializationSchema.builder().set_topic(topic).set_value_serialization_schema(serialization).build()
    )
    sink = (
        KafkaSink.builder()
        .set_record_serializer(serializer)
        .set_bootstrap_servers(kafka.servers)
        .set_property("group.id", "of no use to a producer")
        .build()
    )
    source = (
        KafkaSource.builder()
        .set_topics(topic)
        .set_value_only_deserializer(deserialization)
        .set_properties({"bootstrap.servers": kafka.servers, "group.id": "words"})
        .set_starting_offsets(KafkaOffsetsInitializer.earliest())
        .build()
    )
    with on_local_engine():
        env.from_collection(WORDS, type_info=WORD).sink_to(sink)
        env.execute()
        stream = env.from_source(source, WatermarkStrategy.no_watermarks(), source_name="kafka source")
        assert [tuple(row) for row in stream.execute_and_collect(limit=3)] == WORDS


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_older_names_write_and_read(kafka):
    topic, properties = new_topic(kafka), {"bootstrap.servers": kafka.servers, "group.id": "words"}
    serialization, deserialization = FORMATS["csv"]
    env = StreamExecutionEnvironment.get_execution_environment()
    with on_local_engine():
        env.from_collection(WORDS, type_info=WORD).add_sink(FlinkKafkaProducer(topic, serialization, properties))
        env.execute()
        consumer = FlinkKafkaConsumer(topic, deserialization, properties)
        consumer.set_start_from_earliest()
        assert [tuple(row) for row in env.add_source(consumer).execute_and_collect(limit=3)] == WORDS


def test_fields_of_a_row_are_key_and_value(kafka):
    topic = new_topic(kafka, 3)
    env = StreamExecutionEnvironment.get_execution_environment()
    two = Types.ROW([Types.PRIMITIVE_ARRAY(Types.BYTE()), Types.PRIMITIVE_ARRAY(Types.BYTE())])
    serializer = (
        KafkaRecordSerializationSchema.builder()
        .set_topic(topic)
        .set_key_serialization_schema(RowFieldExtractorSchema(0))
        .set_value_serialization_schema(RowFieldExtractorSchema(1))
        .build()
    )
    sink = (
        KafkaSink.builder()
        .set_bootstrap_servers(kafka.servers)
        .set_record_serializer(serializer)
        .set_delivery_guarantee(DeliveryGuarantee.AT_LEAST_ONCE)
        .build()
    )
    env.from_collection([Row(b"ada", b"1"), Row(b"bob", b"2")], type_info=two).sink_to(sink)
    with on_local_engine():
        env.execute()
    assert sorted((m.key(), m.value()) for m in consume(kafka, topic)) == [(b"ada", b"1"), (b"bob", b"2")]


def test_bytes_pass_through_unchanged(kafka):
    topic = new_topic(kafka)
    produce(kafka, topic, [b"\xff\x00", b""])
    source = (
        KafkaSource.builder()
        .set_bootstrap_servers(kafka.servers)
        .set_topics(topic)
        .set_bounded(KafkaOffsetsInitializer.latest())
        .set_value_only_deserializer(ByteArraySchema())
        .build()
    )
    env = StreamExecutionEnvironment.get_execution_environment()
    with on_local_engine(), env.from_source(source, None, "bytes").execute_and_collect() as records:
        assert list(records) == [b"\xff\x00", b""]


def test_the_example_counts_words_exactly_once(kafka, tmp_path):
    lines, counts = new_topic(kafka, 2), new_topic(kafka)
    produce(kafka, lines, ["to be or", "not to be"])
    produce(kafka, lines, ["be"], 1)
    with on_local_engine():
        example("kafka_counts").main(
            [kafka.servers, lines, counts, "--bounded", "--checkpoints", str(tmp_path / "checkpoints")]
        )
    assert sorted(values(kafka, counts)) == ["be,1", "be,2", "be,3", "not,1", "or,1", "to,1", "to,2"]


def test_the_example_reads_parquet_files_and_then_a_topic_as_one_stream_of_columns(kafka, tmp_path, capsys):
    (block,) = blocks_run_by(__file__, DOCS / "gallery" / "parquet_then_kafka.md")
    command, *shown = block.text.partition("$ python examples/parquet_then_kafka.py ")[2].splitlines()
    places = {"localhost:9092": kafka.servers, "sales": new_topic(kafka), "history": str(tmp_path / "history")}
    module = example("parquet_then_kafka")
    with on_local_engine():
        module.main([places.get(word, word) for word in command.split()])
    printed = capsys.readouterr().out.splitlines()
    assert printed[: len(shown) - 1] == shown[:-1]
    sales = list(map(module.sale, range(module.IN_FILES + module.LIVE)))
    for number, line in enumerate(printed):
        cents = [sale["cents"] for sale in sales if sale["shop"] == f"shop {number}"]
        assert line == f"shop {number}  {len(cents):>5} sales  {sum(cents) / 100:>9.2f}"
