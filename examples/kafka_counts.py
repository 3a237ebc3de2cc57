"""Counts words from one topic of Kafka into another, exactly once.

    python examples/kafka_counts.py broker:9092 lines counts

Every line of the first topic is split into words. For every word, a message with its count so far goes to the second
topic, with the word as its key. Readers of committed records (`isolation.level=read_committed`) see every count once,
whatever fails in between. With `--bounded` the program ends at what the first topic holds when it starts.
"""

from __future__ import annotations

import argparse
import tempfile

from ekorn.common import SimpleStringSchema, Types, WatermarkStrategy
from ekorn.common.serialization import SerializationSchema
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.connectors.base import DeliveryGuarantee
from ekorn.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)


class Word(SerializationSchema):
    """The word of a pair, as the key of its message."""

    def serialize(self, value):
        return value[0].encode()


class Pair(SerializationSchema):
    """A pair as text: `word,count`."""

    def serialize(self, value):
        return f"{value[0]},{value[1]}".encode()


def count_words(servers: str, lines: str, counts: str, checkpoints: str, *, bounded: bool) -> None:
    """Run the job."""
    env = StreamExecutionEnvironment.get_execution_environment()
    env.enable_checkpointing(1000)
    env.get_checkpoint_config().set_checkpoint_storage_dir(checkpoints)
    source = (
        KafkaSource.builder()
        .set_bootstrap_servers(servers)
        .set_topics(lines)
        .set_group_id(f"counts of {lines}")
        .set_starting_offsets(KafkaOffsetsInitializer.earliest())
        .set_value_only_deserializer(SimpleStringSchema())
    )
    if bounded:
        source.set_unbounded(KafkaOffsetsInitializer.latest())
    serializer = (
        KafkaRecordSerializationSchema.builder()
        .set_topic(counts)
        .set_key_serialization_schema(Word())
        .set_value_serialization_schema(Pair())
        .build()
    )
    sink = (
        KafkaSink.builder()
        .set_bootstrap_servers(servers)
        .set_record_serializer(serializer)
        .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
        .set_transactional_id_prefix(f"counts-{counts}")
        .build()
    )
    (
        env.from_source(source.build(), WatermarkStrategy.no_watermarks(), "lines")
        .uid("lines")
        .flat_map(lambda line: [(word, 1) for word in line.split()], Types.TUPLE([Types.STRING(), Types.INT()]))
        .key_by(lambda pair: pair[0])
        .reduce(lambda so_far, one: (so_far[0], so_far[1] + one[1]))
        .uid("counts")
        .sink_to(sink)
        .uid("kafka")
    )
    env.execute("count words")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("servers", help="the brokers, as host:port,host:port")
    parser.add_argument("lines", help="the topic to read")
    parser.add_argument("counts", help="the topic to write to")
    parser.add_argument("--bounded", action="store_true", help="end at what the topic holds now")
    parser.add_argument("--checkpoints", help="a directory or URL; by default a temporary directory")
    told = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="kafka-counts-") as folder:
        count_words(told.servers, told.lines, told.counts, told.checkpoints or folder, bounded=told.bounded)


if __name__ == "__main__":
    main()
