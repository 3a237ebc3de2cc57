"""From columns to messages of Kafka: the messages of all rows of a batch. Also keys and topics that are in a column."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import repeat
from typing import TYPE_CHECKING, Any

from ekorn.connectors.formats.schemas import ColumnEncoder, SerializationSchema
from ekorn.connectors.kafka.record_serialization import KafkaRecordSerializationSchema, KafkaTopicSelector
from ekorn.errors import ConfigurationError, KafkaError, RecordFormatError, preview
from ekorn.functions.sink_contract import WrittenBatch
from ekorn.types import data_types as dt
from ekorn.types.data_types import RowType
from ekorn.types.row import Row

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["KafkaKeyColumn", "KafkaTopicColumn", "MessagesOfColumns", "messages_of_columns"]

Message = tuple[Any, ...]  # the arguments of `produce` by position
MessagesOfColumns = Callable[[WrittenBatch], Iterable[Message]]

_ANY = -1  # the client chooses the partition


class KafkaKeyColumn(SerializationSchema[Any]):
    """Makes the key of a message from one field of a row, on rows and on columns.

    Text is written in UTF-8, a whole number as its digits, bytes as they are. A row with None has no key.

    Example:
        >>> from ekorn.common import Row
        >>> KafkaKeyColumn("customer").serialize(Row(customer="ann", amount=3))
        b'ann'
    """

    def __init__(self, name: str) -> None:
        """Set the name of the field."""
        self._name = _checked_name(name, "KafkaKeyColumn")

    def serialize(self, value: Any) -> bytes | None:
        field = _field(value, self._name)
        if field is None or isinstance(field, bytes):
            return field
        if isinstance(field, bool) or not isinstance(field, str | int):
            raise RecordFormatError("a key of Kafka", f"field {self._name!r} is {preview(field, 80)}", preview(value))
        return str(field).encode()

    def column_encoder(self, row_type: RowType) -> ColumnEncoder:
        """Return the function that makes the keys of all rows of a batch."""
        import pyarrow as pa

        data_type = _type_of(row_type, self._name, "KafkaKeyColumn")
        if not isinstance(data_type, dt.CharType | dt.VarCharType | dt.BinaryType | dt.VarBinaryType | dt.IntegralType):
            raise ConfigurationError(
                f"KafkaKeyColumn takes a column of text, whole numbers or bytes, and {self._name!r} is {data_type}; "
                "project the stream to such a column first"
            )

        def keys(batch: pa.RecordBatch) -> list[bytes | None]:
            column = batch.column(self._name)
            if pa.types.is_integer(column.type):
                column = column.cast(pa.string())
            found: list[bytes | None] = column.cast(pa.binary()).to_pylist()
            return found

        return keys

    def __repr__(self) -> str:
        return f"KafkaKeyColumn({self._name!r})"


class KafkaTopicColumn(KafkaTopicSelector):
    """Takes the topic of a row from a field of text, on rows and on columns.

    Example:
        >>> from ekorn.common import Row
        >>> KafkaTopicColumn("topic").apply(Row(topic="alerts", amount=3))
        'alerts'
    """

    def __init__(self, name: str) -> None:
        """Set the name of the field."""
        self._name = _checked_name(name, "KafkaTopicColumn")

    def apply(self, data: Any) -> str:
        """Return the topic of a row."""
        topic: str = _field(data, self._name)
        return topic

    def topics(self, batch: pa.RecordBatch) -> list[str]:
        """Return the topics of all rows of a batch."""
        found: list[str] = batch.column(self._name).to_pylist()
        if not all(found):
            row = batch.slice(next(number for number, topic in enumerate(found) if not topic), 1).to_pylist()[0]
            raise KafkaError("choosing a topic", f"column {self._name!r} has no name of a topic in {preview(row)}")
        return found

    def check(self, row_type: RowType) -> None:
        """Raise a ConfigurationError if the columns have no such column of text."""
        data_type = _type_of(row_type, self._name, "KafkaTopicColumn")
        if not isinstance(data_type, dt.CharType | dt.VarCharType):
            raise ConfigurationError(f"KafkaTopicColumn takes a column of text, and {self._name!r} is {data_type}")

    def __repr__(self) -> str:
        return f"KafkaTopicColumn({self._name!r})"


def _checked_name(name: object, taken_by: str) -> str:
    if not isinstance(name, str) or not name:
        raise TypeError(f"{taken_by} takes the name of a field, got {name!r}")
    return name


def _field(record: Any, name: str) -> Any:
    if isinstance(record, Row | dict):
        return record[name]
    raise RecordFormatError("a row", f"it has no field {name!r}", preview(record))


def _type_of(row_type: RowType, name: str, taken_by: str) -> dt.DataType:
    if name not in row_type.field_names():
        raise ConfigurationError(
            f"{taken_by} takes column {name!r}, and the stream has {', '.join(row_type.field_names())}"
        )
    return row_type[name].data_type


def messages_of_columns(schema: KafkaRecordSerializationSchema, row_type: RowType) -> MessagesOfColumns | None:
    """Return the function that makes the messages of a batch; None if a part of the schema takes records.

    The function raises an error about a row before it returns the first message.
    """
    selector = getattr(schema.topic_selector, "__self__", None)
    if schema.headers is not None or schema.partitioner is not None:
        return None
    if schema.topic is None and not isinstance(selector, KafkaTopicColumn):
        return None
    if isinstance(selector, KafkaTopicColumn):
        selector.check(row_type)
    value = schema.value.column_encoder(row_type)
    key = None if schema.key is None else schema.key.column_encoder(row_type)
    if value is None or (schema.key is not None and key is None):
        return None

    def messages(batch: WrittenBatch) -> Iterable[Message]:
        import numpy as np

        values = value(batch.data)
        keys = repeat(None) if key is None else key(batch.data)
        topics = selector.topics(batch.data) if isinstance(selector, KafkaTopicColumn) else repeat(schema.topic)
        written = batch.times is not None and schema.writes_timestamps
        times = np.maximum(batch.times, 0).tolist() if written else repeat(0)
        return zip(topics, values, keys, repeat(_ANY), repeat(None), repeat(None), times, strict=False)

    return messages
