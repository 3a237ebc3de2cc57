"""From messages of Kafka to records: by value alone, or with key, headers, timestamp and offset."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from ekorn.connectors.formats.schemas import DeserializationSchema, SimpleStringSchema
from ekorn.errors import KafkaError
from ekorn.functions.source_contract import Batch
from ekorn.types.type_information import TypeInformation

__all__ = ["KafkaRecord", "KafkaRecordDeserializationSchema"]

T = TypeVar("T")


class KafkaRecord(NamedTuple):
    """A message as it is in its partition. `value` is None for a tombstone, `headers` is empty if there are none."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


class KafkaRecordDeserializationSchema(ABC, Generic[T]):
    """Turns a message of Kafka, with its key, headers, timestamp and offset, into a record."""

    @abstractmethod
    def deserialize(self, record: KafkaRecord) -> T | None:
        """Return the record of a message, or None to skip the message."""

    def is_end_of_stream(self, next_element: T) -> bool:
        """Return whether this record ends its partition; such a record is not emitted."""
        return False

    def get_produced_type(self) -> TypeInformation | None:
        """Return the type of the records, or None if it is unknown."""
        return None

    @staticmethod
    def value_only(schema: DeserializationSchema[Any]) -> KafkaRecordDeserializationSchema[Any]:
        """Use the value of a message alone."""
        return ValueOnly(schema)


class ValueOnly(KafkaRecordDeserializationSchema[Any]):
    """Deserializes values and ignores the rest."""

    def __init__(self, schema: DeserializationSchema[Any]) -> None:
        if not isinstance(schema, DeserializationSchema):
            raise TypeError(f"a value-only deserializer must be a DeserializationSchema, got {schema!r}")
        self.schema = schema

    def deserialize(self, record: KafkaRecord) -> Any:
        return self.schema.deserialize(_present(record.topic, record.partition, record.offset, record.value))

    def is_end_of_stream(self, next_element: Any) -> bool:
        return self.schema.is_end_of_stream(next_element)

    def get_produced_type(self) -> TypeInformation | None:
        return self.schema.get_produced_type()

    def __repr__(self) -> str:
        return f"KafkaRecordDeserializationSchema.value_only({self.schema!r})"


class Decoded(NamedTuple):
    """The records of a run of messages, and whether one of them ended the partition."""

    batch: Batch
    ended: bool


def batch_decoder(schema: KafkaRecordDeserializationSchema[Any]) -> Callable[[Sequence[Any]], Decoded]:
    """Return the function that turns a run of messages of one partition into records with their timestamps."""
    if not isinstance(schema, ValueOnly):
        return _Decoder(_record_of, schema.deserialize, _end_test(schema, KafkaRecordDeserializationSchema))
    end_test = _end_test(schema.schema, DeserializationSchema)
    if type(schema.schema) is SimpleStringSchema and end_test is None:
        return _TextDecoder(schema.schema.deserialize, schema.schema.charset)
    return _Decoder(_value_of, schema.schema.deserialize, end_test)


class _TextDecoder:
    """Decodes text values, the most frequent case, without a Python call per record."""

    def __init__(self, deserialize: Callable[[bytes], Any], charset: str) -> None:
        self._charset = charset
        self._slow = _Decoder(_value_of, deserialize, None)

    def __call__(self, messages: Sequence[Any]) -> Decoded:  # hot
        charset = self._charset
        try:
            values = [str(message.value(), charset) for message in messages]
        except (UnicodeDecodeError, TypeError):  # invalid bytes or a tombstone: decode one by one
            return self._slow(messages)
        return Decoded(Batch(values, [message.timestamp()[1] for message in messages]), False)


class _Decoder:
    """Decodes with any schema, one call per record."""

    def __init__(
        self,
        take: Callable[[Any], Any],
        deserialize: Callable[[Any], Any],
        end_test: Callable[[Any], bool] | None,
    ) -> None:
        self._take = take
        self._deserialize = deserialize
        self._end_test = end_test

    def __call__(self, messages: Sequence[Any]) -> Decoded:  # hot
        take, deserialize, end_test = self._take, self._deserialize, self._end_test
        values: list[Any] = []
        times: list[int] = []
        ended = False
        message = None
        try:
            for message in messages:
                value = deserialize(take(message))
                if value is None:
                    continue
                if end_test is not None and end_test(value):
                    ended = True
                    break
                values.append(value)
                times.append(message.timestamp()[1])
        except Exception as error:
            if message is not None:
                place = f"offset {message.offset()} of partition {message.partition()} of topic {message.topic()!r}"
                error.add_note(f"while deserializing the message at {place}")
            raise
        return Decoded(Batch(values, times), ended)


def _value_of(message: Any) -> bytes:
    value: bytes | None = message.value()
    return value if value is not None else _present(message.topic(), message.partition(), message.offset(), None)


def _record_of(message: Any) -> KafkaRecord:
    return KafkaRecord(
        message.topic(),
        message.partition(),
        message.offset(),
        message.timestamp()[1],
        message.key(),
        message.value(),
        tuple(message.headers() or ()),
    )


def _present(topic: str, partition: int, offset: int, value: bytes | None) -> bytes:
    if value is None:
        raise tombstone(topic, partition, offset)
    return value


def tombstone(topic: str, partition: int, offset: int) -> KafkaError:
    """Return the error of a message without a value."""
    return KafkaError(
        f"cannot deserialize the message at offset {offset} of partition {partition} of topic {topic!r}",
        "it is a tombstone, without a value; use set_deserializer() with a KafkaRecordDeserializationSchema, "
        "which receives such messages too",
    )


def _end_test(schema: Any, base: type) -> Callable[[Any], bool] | None:
    """Return the schema's test for the end of the stream; None if it is the base class's, which is never true."""
    found: Callable[[Any], bool] | None = schema.is_end_of_stream
    return None if type(schema).is_end_of_stream is base.is_end_of_stream else found  # type: ignore[attr-defined]
