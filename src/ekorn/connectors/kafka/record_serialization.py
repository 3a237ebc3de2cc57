"""From records to messages of Kafka: topic, key, value, headers and partition."""

from __future__ import annotations

import codecs
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from ekorn.connectors.formats.schemas import SerializationSchema, SimpleStringSchema
from ekorn.errors import ConfigurationError, KafkaError, preview
from ekorn.types.type_information import TypeInformation

__all__ = ["KafkaRecordSerializationSchema", "KafkaRecordSerializationSchemaBuilder", "KafkaTopicSelector"]

Headers = Iterable[tuple[str, bytes | None]]
Partitioner = Callable[[Any, bytes | None, bytes | None, str, Sequence[int]], int]

_ANY = -1  # the client chooses the partition


class KafkaTopicSelector(ABC):
    """Chooses the topic of a record."""

    @abstractmethod
    def apply(self, data: Any) -> str:
        """Return the topic of a record."""


class Produce(Protocol):
    """Hands a message to the client, as `confluent_kafka.Producer.produce` does."""

    def __call__(self, topic: str, value: bytes | str | None, key: bytes | None, *more: Any, **named: Any) -> None:
        """Queue a message."""
        ...


@dataclass(frozen=True)
class KafkaRecordSerializationSchema:
    """Turns records into messages. Made by `builder()`.

    A message has the timestamp of its record. Messages with the same key go to the same partition, chosen as Java's
    client chooses it.
    """

    topic: str | None
    topic_selector: Callable[[Any], str] | None
    value: SerializationSchema[Any]
    key: SerializationSchema[Any] | None = None
    headers: Callable[[Any], Headers] | None = None
    partitioner: Partitioner | None = None
    writes_timestamps: bool = True

    @staticmethod
    def builder() -> KafkaRecordSerializationSchemaBuilder:
        """Begin to build a schema."""
        return KafkaRecordSerializationSchemaBuilder()

    def with_input_type(self, type_info: TypeInformation | None) -> KafkaRecordSerializationSchema:
        """Return this schema for records of a declared type, which determines their text."""
        return replace(self, value=_typed(self.value, type_info), key=_typed(self.key, type_info))

    def sender(self, partitions_of: Callable[[str], Sequence[int]]) -> Callable[[Produce, Any, int | None], None]:
        """Return the function that hands a record with its timestamp to a client.

        Args:
            partitions_of: Returns the partitions of a topic.
        """
        if not self.writes_timestamps:
            send = replace(self, writes_timestamps=True).sender(partitions_of)
            return lambda produce, record, timestamp: send(produce, record, None)
        if self.topic is not None and self.headers is None and self.partitioner is None:
            if self.key is None and _is_utf_8(self.value):
                return _text_sender(self.topic, self.value.serialize)
            if self.key is None:
                return _value_sender(self.topic, self.value.serialize)
            return _keyed_sender(self.topic, self.key.serialize, self.value.serialize)
        return _full_sender(self, partitions_of)


# The arguments of `produce` by position: topic, value, key, partition, two names of the callback, timestamp. Named
# arguments cost a third of the call.


def _text_sender(topic: str, serialize: Callable[[Any], bytes | None]) -> Callable[[Produce, Any, int | None], None]:
    """Return the sender of text in UTF-8, which the client encodes."""

    def send(produce: Produce, record: Any, timestamp: int | None) -> None:  # hot
        time = timestamp if timestamp is not None and timestamp > 0 else 0
        produce(topic, record if type(record) is str else serialize(record), None, _ANY, None, None, time)

    return send


def _value_sender(topic: str, serialize: Callable[[Any], bytes | None]) -> Callable[[Produce, Any, int | None], None]:
    def send(produce: Produce, record: Any, timestamp: int | None) -> None:  # hot
        time = timestamp if timestamp is not None and timestamp > 0 else 0
        produce(topic, serialize(record), None, _ANY, None, None, time)

    return send


def _keyed_sender(
    topic: str, key: Callable[[Any], bytes | None], value: Callable[[Any], bytes | None]
) -> Callable[[Produce, Any, int | None], None]:
    def send(produce: Produce, record: Any, timestamp: int | None) -> None:  # hot
        time = timestamp if timestamp is not None and timestamp > 0 else 0
        produce(topic, value(record), key(record), _ANY, None, None, time)

    return send


def _full_sender(
    schema: KafkaRecordSerializationSchema, partitions_of: Callable[[str], Sequence[int]]
) -> Callable[[Produce, Any, int | None], None]:
    def send(produce: Produce, record: Any, timestamp: int | None) -> None:  # hot
        topic = schema.topic if schema.topic is not None else _topic_of(schema.topic_selector, record)
        value = schema.value.serialize(record)
        key = schema.key.serialize(record) if schema.key is not None else None
        more: dict[str, Any] = {"timestamp": timestamp if timestamp is not None and timestamp > 0 else 0}
        if schema.headers is not None:
            more["headers"] = list(schema.headers(record))
        if schema.partitioner is not None:
            known = partitions_of(topic)
            partition = schema.partitioner(record, key, value, topic, known)
            more["partition"] = _checked_partition(partition, record, topic, known)
        produce(topic, value, key, **more)

    return send


def _is_utf_8(schema: SerializationSchema[Any]) -> bool:
    return type(schema) is SimpleStringSchema and codecs.lookup(schema.charset).name == "utf-8"


def _topic_of(selector: Callable[[Any], str] | None, record: Any) -> str:
    assert selector is not None, "a schema has a topic or a selector"
    topic = selector(record)
    if not isinstance(topic, str) or not topic:
        raise KafkaError("choosing a topic", f"the selector returned {topic!r} for {preview(record)}, not a name")
    return topic


def _checked_partition(partition: int, record: Any, topic: str, known: Sequence[int]) -> int:
    if partition not in known:
        found = (
            f"the partitioner returned {partition!r} for {preview(record)}; topic {topic!r} has {len(known)} partitions"
        )
        raise KafkaError("choosing a partition", found)
    return partition


def _typed(schema: Any, type_info: TypeInformation | None) -> Any:
    return schema.with_type(type_info) if type(schema) is SimpleStringSchema else schema


class KafkaRecordSerializationSchemaBuilder:
    """Builds a `KafkaRecordSerializationSchema`. Needed: a topic (or a selector) and a schema of values."""

    def __init__(self) -> None:
        """Begin without a topic."""
        self._topic: str | None = None
        self._selector: Callable[[Any], str] | None = None
        self._value: SerializationSchema[Any] | None = None
        self._key: SerializationSchema[Any] | None = None
        self._headers: Callable[[Any], Headers] | None = None
        self._partitioner: Partitioner | None = None

    def set_topic(self, topic: str) -> KafkaRecordSerializationSchemaBuilder:
        """Write all records to one topic."""
        if not isinstance(topic, str) or not topic:
            raise TypeError(f"set_topic() takes the name of a topic, got {topic!r}")
        self._check_no_topic("set_topic")
        self._topic = topic
        return self

    def set_topic_selector(
        self, topic_selector: Callable[[Any], str] | KafkaTopicSelector
    ) -> KafkaRecordSerializationSchemaBuilder:
        """Choose the topic of each record by a function or a `KafkaTopicSelector`."""
        if not isinstance(topic_selector, KafkaTopicSelector) and not callable(topic_selector):
            raise TypeError(f"set_topic_selector() takes a function or a KafkaTopicSelector, got {topic_selector!r}")
        self._check_no_topic("set_topic_selector")
        self._selector = topic_selector.apply if isinstance(topic_selector, KafkaTopicSelector) else topic_selector
        return self

    def _check_no_topic(self, call: str) -> None:
        if self._topic is not None or self._selector is not None:
            raise ConfigurationError(f"{call}(): call only one of set_topic() and set_topic_selector(), and only once")

    def set_key_serialization_schema(
        self, key_serialization_schema: SerializationSchema[Any]
    ) -> KafkaRecordSerializationSchemaBuilder:
        """Set the schema that makes the key of a message from a record; by default messages have no key."""
        self._key = _checked("set_key_serialization_schema", key_serialization_schema)
        return self

    def set_value_serialization_schema(
        self, value_serialization_schema: SerializationSchema[Any]
    ) -> KafkaRecordSerializationSchemaBuilder:
        """Set the schema that makes the value of a message from a record. A value of None is a tombstone."""
        self._value = _checked("set_value_serialization_schema", value_serialization_schema)
        return self

    def set_header_provider(self, header_provider: Callable[[Any], Headers]) -> KafkaRecordSerializationSchemaBuilder:
        """Set the function that returns the headers of a record, as pairs of a name and bytes."""
        if not callable(header_provider):
            raise TypeError(f"set_header_provider() takes a function of a record, got {header_provider!r}")
        self._headers = header_provider
        return self

    def set_partitioner(self, partitioner: Partitioner) -> KafkaRecordSerializationSchemaBuilder:
        """Set the function that chooses partitions: (record, key, value, topic, partitions) -> partition."""
        if not callable(partitioner):
            raise TypeError(f"set_partitioner() takes a function, got {partitioner!r}")
        self._partitioner = partitioner
        return self

    def build(self) -> KafkaRecordSerializationSchema:
        """Return the schema."""
        if self._topic is None and self._selector is None:
            raise ConfigurationError("messages need a topic: call set_topic() or set_topic_selector()")
        if self._value is None:
            raise ConfigurationError("messages need a value: call set_value_serialization_schema()")
        return KafkaRecordSerializationSchema(
            self._topic, self._selector, self._value, self._key, self._headers, self._partitioner
        )


def _checked(call: str, schema: SerializationSchema[Any]) -> SerializationSchema[Any]:
    if not isinstance(schema, SerializationSchema):
        raise TypeError(f"{call}() takes a SerializationSchema, got {schema!r}")
    return schema
