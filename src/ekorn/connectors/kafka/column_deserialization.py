"""From messages of Kafka to columns: the values of a run of messages at once, and columns of where they come from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ekorn.columns.columns_type import ColumnsTypeInfo
from ekorn.connectors.formats.message_columns import MessageColumns
from ekorn.connectors.kafka.deserialization import Decoded, tombstone
from ekorn.errors import ConfigurationError, MalformedRecordError, RecordFormatError, preview
from ekorn.functions.source_contract import Batch, Malformed
from ekorn.types.data_types import DataTypes, RowField, RowType
from ekorn.types.type_information import TypeInformation

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["KafkaColumns"]


class _Metadata(NamedTuple):
    """A column about messages: its type, and its value for a message."""

    field: RowField
    values: Callable[[Sequence[Any]], list[Any]]


class KafkaColumns:
    """The values of messages as columns, and columns of where the messages come from.

    Give it to `KafkaSource.builder().set_deserializer()`. Each argument after the first names a column that is added
    behind those of the value.

    Example:
        >>> from ekorn.common import Types
        >>> from ekorn.datastream.columns import JsonColumns
        >>> values = JsonColumns(Types.ROW_NAMED(["amount"], [Types.LONG()]))
        >>> KafkaColumns(values, partition="part", key="customer").row_type.field_names()
        ['amount', 'part', 'customer']
    """

    def __init__(
        self,
        value: MessageColumns,
        *,
        topic: str | None = None,
        partition: str | None = None,
        offset: str | None = None,
        timestamp: str | None = None,
        key: str | None = None,
    ) -> None:
        """Set the columns.

        Args:
            value: The columns of the value: `JsonColumns` or `AvroColumns`.
            topic: The name of a STRING column for the topic.
            partition: The name of an INT column for the partition.
            offset: The name of a BIGINT column for the offset.
            timestamp: The name of a BIGINT column for the timestamp of the message, in milliseconds.
            key: The name of a BYTES column for the key, which is null for a message without one.
        """
        if not isinstance(value, MessageColumns):
            raise TypeError(f"KafkaColumns takes JsonColumns or AvroColumns, got {value!r}")
        self._value = value
        named = {"topic": topic, "partition": partition, "offset": offset, "timestamp": timestamp, "key": key}
        self._metadata = {what: name for what, name in named.items() if name is not None}
        for name in self._metadata.values():
            if not isinstance(name, str) or not name:
                raise TypeError(f"KafkaColumns takes names of columns, got {name!r}")
        names = [*value.row_type.field_names(), *self._metadata.values()]
        if len(set(names)) < len(names):
            raise ConfigurationError(f"KafkaColumns has two columns of one name: {', '.join(names)}; rename one")

    @property
    def row_type(self) -> RowType:
        """The columns."""
        return RowType([*self._value.row_type, *(each.field for each in self._added())])

    def _added(self) -> list[_Metadata]:
        return [_METADATA[what](name) for what, name in self._metadata.items()]

    def get_produced_type(self) -> TypeInformation:
        """Return the columns."""
        from ekorn.columns.row_columns import RowColumns

        return ColumnsTypeInfo(RowColumns(self.row_type).schema)

    def batch_decoder(self) -> Callable[[Sequence[Any]], Decoded]:
        """Return the function that turns a run of messages of one partition into a batch of columns."""
        return _ColumnDecoder(self)

    def __repr__(self) -> str:
        return f"KafkaColumns({self._value!r}, {self._metadata})"


_METADATA: dict[str, Callable[[str], _Metadata]] = {
    "topic": lambda name: _Metadata(
        RowField(name, DataTypes.STRING()), lambda messages: [each.topic() for each in messages]
    ),
    "partition": lambda name: _Metadata(
        RowField(name, DataTypes.INT()), lambda messages: [each.partition() for each in messages]
    ),
    "offset": lambda name: _Metadata(
        RowField(name, DataTypes.BIGINT()), lambda messages: [each.offset() for each in messages]
    ),
    "timestamp": lambda name: _Metadata(
        RowField(name, DataTypes.BIGINT()), lambda messages: [each.timestamp()[1] for each in messages]
    ),
    "key": lambda name: _Metadata(
        RowField(name, DataTypes.BYTES()), lambda messages: [each.key() for each in messages]
    ),
}


class _ColumnDecoder:
    def __init__(self, columns: KafkaColumns) -> None:
        from ekorn.columns.row_columns import RowColumns

        self._decode = columns._value.decoder()
        self._added = columns._added()
        self._schema: pa.Schema = RowColumns(columns.row_type).schema

    def __call__(self, messages: Sequence[Any]) -> Decoded:
        import numpy as np

        from ekorn.columns.column_batch import ColumnBatch

        values = [message.value() for message in messages]
        malformed: list[Malformed] = []
        if None in values:
            messages, values = _without_tombstones(messages, values, malformed)
        data, kept, refused = self._decode(values)
        for number, error in refused:
            malformed.append(Malformed(values[number], _placed(messages[number], error)))
        if kept is not None:
            messages = [messages[number] for number in kept]
        if not messages:
            return Decoded(Batch([], malformed=malformed), False)
        if self._added:
            data = self._with_metadata(data, messages)
        times = np.fromiter((message.timestamp()[1] for message in messages), np.int64, len(messages))
        return Decoded(Batch([ColumnBatch(data, times)], malformed=malformed), False)

    def _with_metadata(self, data: pa.RecordBatch, messages: Sequence[Any]) -> pa.RecordBatch:
        import pyarrow as pa

        arrays = list(data.columns)
        for field, added in zip(list(self._schema)[len(arrays) :], self._added, strict=True):
            arrays.append(pa.array(added.values(messages), field.type))
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def _without_tombstones(
    messages: Sequence[Any], values: list[Any], malformed: list[Malformed]
) -> tuple[list[Any], list[bytes]]:
    present = []
    for message, value in zip(messages, values, strict=True):
        if value is None:
            malformed.append(Malformed(None, tombstone(message.topic(), message.partition(), message.offset())))
        else:
            present.append(message)
    return present, [value for value in values if value is not None]


def _placed(message: Any, error: Exception) -> Exception:
    """Return the error of a message, with the place of the message."""
    place = f"the message at offset {message.offset()} of partition {message.partition()} of topic {message.topic()!r}"
    reason = error.reason if isinstance(error, RecordFormatError) else str(error)
    return MalformedRecordError(place, reason, preview(message.value()))
