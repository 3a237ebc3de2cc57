"""A job from Kafka to Kafka whose committed output no fault may change: numbered records, counted per key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from ekorn.common import SimpleStringSchema, Types, WatermarkStrategy
from ekorn.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from ekorn.datastream.connectors.base import DeliveryGuarantee
from ekorn.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
    KafkaTopicPartition,
)
from ekorn.datastream.state import ValueStateDescriptor
from tests.spark.checkpointed import checkpointed_environment

KEYS = 31
PARTITIONS = 2


def record(number: int) -> str:
    return f"key-{number * 7 % KEYS},{number}"


class Count(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield f"{value},{count}"


def build(
    servers: str,
    topics: tuple[str, str],
    records: int,
    folder: Path,
    *,
    parallelism: int,
    restore: str | None,
    secrets: dict[str, str],
    settings: dict[str, str],
    partitions: int = PARTITIONS,
) -> StreamExecutionEnvironment:
    """Build the job, which ends after the last of the records that the test writes to the first topic."""
    env = checkpointed_environment(folder, parallelism=parallelism, interval_ms=300, restore=restore, backend="hashmap")
    for name, value in settings.items():
        env.get_configuration().set_string(name, value)
    ends = {KafkaTopicPartition(topics[0], number): records // partitions for number in range(partitions)}
    source = (
        KafkaSource.builder()
        .set_bootstrap_servers(servers)
        .set_topics(topics[0])
        .set_group_id(f"g-{topics[0]}")
        .set_unbounded(KafkaOffsetsInitializer.offsets(ends))
        .set_properties(secrets)
        .set_value_only_deserializer(SimpleStringSchema())
        .build()
    )
    serializer = (
        KafkaRecordSerializationSchema.builder()
        .set_topic(topics[1])
        .set_value_serialization_schema(SimpleStringSchema())
        .build()
    )
    sink = (
        KafkaSink.builder()
        .set_bootstrap_servers(servers)
        .set_record_serializer(serializer)
        .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
        .set_transactional_id_prefix(f"p-{topics[1]}")
    )
    for name, value in secrets.items():
        sink.set_property(name, value)
    (
        env.from_source(source, WatermarkStrategy.no_watermarks(), "kafka")
        .uid("kafka")
        .key_by(lambda value: value.partition(",")[0])
        .process(Count(), output_type=Types.STRING())
        .uid("count")
        .sink_to(sink.build())
        .uid("out")
    )
    return env


def verify(records: int, lines: Sequence[str]) -> list[str]:
    """Return what is wrong with the committed lines; an empty list if nothing is."""
    numbers: Counter[int] = Counter()
    counts: dict[str, list[int]] = {}
    for line in lines:
        key, number, count = line.split(",")
        numbers[int(number)] += 1
        counts.setdefault(key, []).append(int(count))
    lost = [number for number in range(records) if numbers[number] == 0]
    doubled = [number for number, times in numbers.items() if times > 1]
    wrong = [f"{len(found)} {what}: {found[:5]}" for what, found in (("lost", lost), ("doubled", doubled)) if found]
    torn = [key for key, found in counts.items() if sorted(found) != list(range(1, len(found) + 1))]
    return wrong + [f"the counts of {key} are wrong" for key in torn]
