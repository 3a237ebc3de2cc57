"""`KafkaSource` reads topics of Kafka, `KafkaSink` writes to them."""

from __future__ import annotations

from ekorn.connectors.delivery import DeliveryGuarantee
from ekorn.connectors.kafka.column_deserialization import KafkaColumns
from ekorn.connectors.kafka.column_serialization import KafkaKeyColumn, KafkaTopicColumn
from ekorn.connectors.kafka.deserialization import KafkaRecord, KafkaRecordDeserializationSchema
from ekorn.connectors.kafka.offsets import KafkaOffsetResetStrategy, KafkaOffsetsInitializer, KafkaTopicPartition
from ekorn.connectors.kafka.record_serialization import (
    KafkaRecordSerializationSchema,
    KafkaRecordSerializationSchemaBuilder,
    KafkaTopicSelector,
)
from ekorn.connectors.kafka.sink import KafkaSink, KafkaSinkBuilder
from ekorn.connectors.kafka.source import KafkaSource, KafkaSourceBuilder
from ekorn.legacy.kafka import (
    FlinkKafkaConsumer,
    FlinkKafkaConsumer010,
    FlinkKafkaConsumer011,
    FlinkKafkaConsumer09,
    FlinkKafkaProducer,
    Semantic,
)

__all__ = [
    "DeliveryGuarantee",
    "FlinkKafkaConsumer",
    "FlinkKafkaConsumer010",
    "FlinkKafkaConsumer011",
    "FlinkKafkaConsumer09",
    "FlinkKafkaProducer",
    "KafkaColumns",
    "KafkaKeyColumn",
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
    "KafkaTopicColumn",
    "KafkaTopicPartition",
    "KafkaTopicSelector",
    "Semantic",
]
