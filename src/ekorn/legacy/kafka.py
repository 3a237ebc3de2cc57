"""`FlinkKafkaConsumer` and `FlinkKafkaProducer`: older spellings of source and sink, for `add_source`, `add_sink`.

The consumers for single versions of Kafka (`FlinkKafkaConsumer09` and so on) are the same class: one client reads from
brokers of every version.
"""

from __future__ import annotations

import enum
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ekorn.connectors.delivery import DeliveryGuarantee
from ekorn.connectors.formats.schemas import DeserializationSchema, SerializationSchema
from ekorn.connectors.kafka.offsets import KafkaOffsetResetStrategy, KafkaOffsetsInitializer
from ekorn.connectors.kafka.record_serialization import KafkaRecordSerializationSchema
from ekorn.connectors.kafka.sink import KafkaSink
from ekorn.connectors.kafka.source import KafkaSource
from ekorn.errors import ConfigurationError, warn
from ekorn.extras import need
from ekorn.legacy.spellings import SinkSpelling, SourceSpelling
from ekorn.legacy.timestamp_extractors import strategy_of
from ekorn.types.type_information import TypeInformation

__all__ = [
    "FlinkKafkaConsumer",
    "FlinkKafkaConsumer010",
    "FlinkKafkaConsumer011",
    "FlinkKafkaConsumer09",
    "FlinkKafkaProducer",
    "Semantic",
]

_DISCOVERY = "flink.partition-discovery.interval-millis"
_POOL = 5


class FlinkKafkaConsumer(SourceSpelling):
    """Reads topics as `KafkaSource` does. New programs use `KafkaSource` and `from_source`.

    It starts from the offsets that the group committed, and without any as `auto.offset.reset` says. It looks for new
    partitions only if `flink.partition-discovery.interval-millis` is set.
    """

    def __init__(
        self,
        topics: str | list[str],
        deserialization_schema: DeserializationSchema[Any],
        properties: Mapping[str, Any],
    ) -> None:
        """Create a consumer of one topic or of several."""
        warnings.warn("FlinkKafkaConsumer is deprecated; use KafkaSource", DeprecationWarning, stacklevel=2)
        need("kafka", "FlinkKafkaConsumer")
        self._topics = [topics] if isinstance(topics, str) else list(topics)
        self._schema = deserialization_schema
        self._properties = dict(properties)
        reset = str(self._properties.pop("auto.offset.reset", "latest")).upper()
        if reset not in KafkaOffsetResetStrategy.__members__:
            raise ConfigurationError(f"auto.offset.reset is earliest, latest or none, got {reset.lower()!r}")
        self._reset = KafkaOffsetResetStrategy[reset]
        if str(self._properties.pop("enable.auto.commit", "false")).lower() == "true":
            warn("enable.auto.commit has no effect: offsets are committed when a checkpoint completes")
        self._starting: KafkaOffsetsInitializer | None = None

    def set_commit_offsets_on_checkpoints(self, commit_on_checkpoints: bool) -> FlinkKafkaConsumer:
        """Choose whether offsets are committed to the group when a checkpoint is complete. This is the default."""
        self._properties["commit.offsets.on.checkpoint"] = bool(commit_on_checkpoints)
        return self

    def set_start_from_earliest(self) -> FlinkKafkaConsumer:
        """Start from the oldest records."""
        self._starting = KafkaOffsetsInitializer.earliest()
        return self

    def set_start_from_latest(self) -> FlinkKafkaConsumer:
        """Start from the ends of the partitions."""
        self._starting = KafkaOffsetsInitializer.latest()
        return self

    def set_start_from_timestamp(self, startup_offsets_timestamp: int) -> FlinkKafkaConsumer:
        """Start from the first records with this timestamp or a later one."""
        self._starting = KafkaOffsetsInitializer.timestamp(startup_offsets_timestamp)
        return self

    def set_start_from_group_offsets(self) -> FlinkKafkaConsumer:
        """Start from the offsets that the group committed. This is the default."""
        self._starting = None
        return self

    def assign_timestamps_and_watermarks(self, watermark_strategy: Any) -> FlinkKafkaConsumer:
        """Make timestamps and watermarks in the source, for each partition; an assigner of Flink 1.x is accepted too.

        The watermark of a subtask is the lowest of its partitions, so records that are in order within a partition
        are not late because another partition is ahead.
        """
        self.watermark_strategy = strategy_of(watermark_strategy)
        return self

    def get_produced_type(self) -> TypeInformation | None:
        """Return the type that the schema declares."""
        return self._schema.get_produced_type()

    def as_source(self) -> KafkaSource:
        """Return the source."""
        properties = dict(self._properties)
        builder = (
            KafkaSource.builder()
            .set_topics(*self._topics)
            .set_property("partition.discovery.interval.ms", str(properties.pop(_DISCOVERY, -1)))
            .set_properties(properties)
            .set_value_only_deserializer(self._schema)
        )
        return builder.set_starting_offsets(self._starting or self._from_group()).build()

    def _from_group(self) -> KafkaOffsetsInitializer:
        if "group.id" not in self._properties:
            raise ConfigurationError(
                "FlinkKafkaConsumer starts from the offsets of a group: set group.id, or where to start"
            )
        return KafkaOffsetsInitializer.committed_offsets(self._reset)


FlinkKafkaConsumer09 = FlinkKafkaConsumer010 = FlinkKafkaConsumer011 = FlinkKafkaConsumer


class Semantic(enum.Enum):
    """The guarantee of a `FlinkKafkaProducer`."""

    EXACTLY_ONCE = (0,)
    AT_LEAST_ONCE = (1,)
    NONE = (2,)


_GUARANTEES = {
    Semantic.EXACTLY_ONCE: DeliveryGuarantee.EXACTLY_ONCE,
    Semantic.AT_LEAST_ONCE: DeliveryGuarantee.AT_LEAST_ONCE,
    Semantic.NONE: DeliveryGuarantee.NONE,
}


class FlinkKafkaProducer(SinkSpelling):
    """Writes to a topic as `KafkaSink` does. New programs use `KafkaSink` and `sink_to`.

    Transactions are named after the operator: give it a uid, so that a changed program finds them again.
    """

    def __init__(
        self,
        topic: str,
        serialization_schema: SerializationSchema[Any],
        producer_config: Mapping[str, Any],
        kafka_producer_pool_size: int = _POOL,
        semantic: Semantic = Semantic.AT_LEAST_ONCE,
    ) -> None:
        """Create a producer for one topic."""
        warnings.warn("FlinkKafkaProducer is deprecated; use KafkaSink", DeprecationWarning, stacklevel=2)
        need("kafka", "FlinkKafkaProducer")
        if not isinstance(semantic, Semantic):
            raise TypeError(f"FlinkKafkaProducer() takes a Semantic, got {semantic!r}")
        if kafka_producer_pool_size != _POOL:
            warn("kafka_producer_pool_size has no effect: every transaction has a producer of its own")
        schema = KafkaRecordSerializationSchema.builder().set_topic(topic)
        self._serializer = schema.set_value_serialization_schema(serialization_schema).build()
        self._config = dict(producer_config)
        self._guarantee = _GUARANTEES[semantic]
        self._ignores_late_failures = False
        self._writes_timestamps = False

    def set_flush_on_checkpoint(self, flush_on_checkpoint: bool) -> FlinkKafkaProducer:
        """Choose whether a checkpoint waits until all records are delivered. Without it records may be lost."""
        if not flush_on_checkpoint and self._guarantee is DeliveryGuarantee.AT_LEAST_ONCE:
            self._guarantee = DeliveryGuarantee.NONE
        return self

    def set_write_timestamp_to_kafka(self, write_timestamp_to_kafka: bool) -> FlinkKafkaProducer:
        """Choose whether messages have the timestamps of records; by default they have the time of writing."""
        self._writes_timestamps = bool(write_timestamp_to_kafka)
        return self

    def ignore_failures_after_transaction_timeout(self) -> FlinkKafkaProducer:
        """Log an error and continue if a transaction cannot be committed after its timeout. Its records are lost."""
        self._ignores_late_failures = True
        return self

    def as_sink(self) -> KafkaSink:
        """Return the sink."""
        builder = (
            KafkaSink.builder()
            .set_delivery_guarantee(self._guarantee)
            .set_record_serializer(replace(self._serializer, writes_timestamps=self._writes_timestamps))
        )
        for name, value in self._config.items():
            builder.set_property(name, value)
        if self._ignores_late_failures:
            builder.ignore_failures_after_transaction_timeout()
        return builder.name_transactions_after_operator().build()
