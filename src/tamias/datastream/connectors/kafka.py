"""`KafkaSource` reads topics of Kafka, `KafkaSink` writes to them."""

from __future__ import annotations

from tamias.connectors.delivery import DeliveryGuarantee
from tamias.connectors.kafka.deserialization import KafkaRecord, KafkaRecordDeserializationSchema
from tamias.connectors.kafka.offsets import KafkaOffsetResetStrategy, KafkaOffsetsInitializer, KafkaTopicPartition
from tamias.connectors.kafka.older_names import FlinkKafkaConsumer, FlinkKafkaProducer, Semantic
from tamias.connectors.kafka.record_serialization import (
    KafkaRecordSerializationSchema,
    KafkaRecordSerializationSchemaBuilder,
    KafkaTopicSelector,
)
from tamias.connectors.kafka.sink import KafkaSink, KafkaSinkBuilder
from tamias.connectors.kafka.source import KafkaSource, KafkaSourceBuilder

__all__ = [
    "DeliveryGuarantee",
    "FlinkKafkaConsumer",
    "FlinkKafkaProducer",
    "KafkaOffsetResetStrategy",
    "KafkaOffsetsInitializer",
    "KafkaRecord",
    "KafkaRecordDeserializationSchema",
    "KafkaRecordSerializationSchema",
    "KafkaRecordSerializationSchemaBuilder",
    "KafkaSink",
    "KafkaSinkBuilder",
    "KafkaSource",
    "KafkaSourceBuilder",
    "KafkaTopicPartition",
    "KafkaTopicSelector",
    "Semantic",
]
