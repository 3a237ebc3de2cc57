"""Sinks that write text to one topic."""

from ekorn.common import SimpleStringSchema
from ekorn.datastream.connectors.base import DeliveryGuarantee
from ekorn.datastream.connectors.kafka import KafkaRecordSerializationSchema, KafkaSink

EXACTLY_ONCE, AT_LEAST_ONCE, NONE = (
    DeliveryGuarantee.EXACTLY_ONCE,
    DeliveryGuarantee.AT_LEAST_ONCE,
    DeliveryGuarantee.NONE,
)


def to_topic(topic):
    return (
        KafkaRecordSerializationSchema.builder()
        .set_topic(topic)
        .set_value_serialization_schema(SimpleStringSchema())
        .build()
    )


def writing(kafka, topic, guarantee=EXACTLY_ONCE, **properties):
    builder = (
        KafkaSink.builder()
        .set_bootstrap_servers(kafka.servers)
        .set_record_serializer(to_topic(topic))
        .set_delivery_guarantee(guarantee)
        .set_transactional_id_prefix(f"p-{topic}")
    )
    for name, value in properties.items():
        builder.set_property(name.replace("_", "."), value)
    return builder
