"""The partition of a table that a row belongs to, and the fields of the row that its file holds."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from ekorn.columns.arrow_columns import arrow_column, load_arrow
from ekorn.connectors.formats.arrow_writer import fields_of_row
from ekorn.errors import ConfigurationError, RecordFormatError, preview
from ekorn.functions.sink_contract import WrittenBatch
from ekorn.types import data_types as dt
from ekorn.types.data_type import DataType
from ekorn.types.data_types import RowType
from ekorn.types.time import Instant

__all__ = ["DeltaPartitions", "IcebergPartitions", "PartitionKey", "Partitions", "SplitRow", "part_of", "rows_by_key"]

PartitionKey = tuple[Any, ...]
_EPOCH_DAY = datetime.date(1970, 1, 1)
_EPOCH = datetime.datetime(1970, 1, 1)


class SplitRow(NamedTuple):
    """The partition of a row, and the fields that its file holds."""

    key: PartitionKey
    row: Sequence[Any]


class Partitions(Protocol):
    """The partitioning of one table."""

    @property
    def columns(self) -> Sequence[str]:
        """The columns that a partition depends on."""

    def split(self, value: Any) -> SplitRow:
        """Return the partition of a row, and the fields that its file holds."""


def part_of(value: Any, partitions: Partitions) -> SplitRow:
    """Return the partition of a row, and the fields that its file holds.

    Raises:
        RecordFormatError: The row has no partition.
    """
    try:
        return partitions.split(value)
    except ValueError as error:
        raise RecordFormatError("a partitioned table", str(error), preview(value)) from None


def rows_by_key(batch: WrittenBatch, partitions: Partitions) -> dict[PartitionKey, Any]:
    """Return the positions of the rows of each partition, in their order; None for all rows of the batch.

    Raises:
        RecordFormatError: A row has no partition.
    """
    import numpy as np

    codes = np.zeros(len(batch), np.int64)
    for name in dict.fromkeys(partitions.columns):
        encoded = batch.data.column(name).dictionary_encode("encode")
        codes = codes * len(encoded.dictionary) + encoded.indices.to_numpy()
        codes = np.unique(codes, return_inverse=True)[1]  # which keeps the numbers small
    _, firsts, part = np.unique(codes, return_index=True, return_inverse=True)
    keys: dict[PartitionKey, list[int]] = {}
    for number, first in enumerate(firsts.tolist()):
        keys.setdefault(part_of(batch.row(first), partitions).key, []).append(number)
    if len(keys) == 1:
        return dict.fromkeys(keys)
    key_of_part = np.empty(len(firsts), np.int64)
    for number, parts in enumerate(keys.values()):
        key_of_part[parts] = number
    of_row = key_of_part[part]
    return {key: np.flatnonzero(of_row == number) for number, key in enumerate(keys)}


class DeltaPartitions:
    """Partitions by the values of columns. The log of the table holds the values, as text; the files do not."""

    def __init__(self, row_type: RowType, columns: Sequence[str]) -> None:
        """Set the partition columns.

        Raises:
            ConfigurationError: A column is missing or has a type whose text Delta does not define, or all are taken.
        """
        self.columns = tuple(columns)
        self._names = row_type.field_names()
        types = dict(zip(self._names, row_type.field_types(), strict=True))
        for column in columns:
            if column not in types:
                raise ConfigurationError(f"DeltaSink cannot partition by {column!r}: the row type has {self._names}")
        if set(columns) == set(self._names):
            raise ConfigurationError(
                "DeltaSink needs at least one column that is not a partition column: otherwise the files would be empty"
            )
        self._texts = [(self._names.index(column), column, _text_of(types[column], column)) for column in columns]
        self._kept = [index for index, name in enumerate(self._names) if name not in columns]
        self.stored = RowType([field for field in row_type if field.name not in columns])

    def split(self, value: Any) -> SplitRow:
        fields = fields_of_row(value, self._names)
        key = tuple(None if fields[index] is None else text(fields[index]) for index, _, text in self._texts)
        if "" in key:
            column = self._texts[key.index("")][1]
            raise ValueError(f"partition column {column!r} is an empty string, which Delta would read as None")
        return SplitRow(key, tuple(fields[index] for index in self._kept))


def _text_of(data_type: DataType, column: str) -> Callable[[Any], str]:
    """Return a function that makes the text of a value. An invalid value would make the table unreadable."""
    text: Callable[[Any], str] = str
    match data_type:
        case dt.BooleanType():
            text = _boolean_text
        case dt.DecimalType():
            text = _decimal_text
        case dt.CharType() | dt.VarCharType() | dt.DateType():
            pass
        case dt.TinyIntType() | dt.SmallIntType() | dt.IntType() | dt.BigIntType():
            pass
        case _:
            raise ConfigurationError(
                f"DeltaSink cannot partition by column {column!r} of type {data_type}: partition by text, whole "
                "numbers, decimals, booleans or dates"
            )
    scalar, arrow_type = load_arrow("a Delta table").scalar, arrow_column(data_type, utc=True).type
    is_decimal = isinstance(data_type, dt.DecimalType)

    def checked_text(value: Any) -> str:
        try:
            stored = scalar(value, type=arrow_type).as_py()
        except (ValueError, TypeError) as error:  # errors of Arrow, none of which names the column
            raise ValueError(f"partition column {column!r}: {error}") from None
        return text(value if is_decimal else stored)

    return checked_text


def _boolean_text(value: bool) -> str:
    return "true" if value else "false"


def _decimal_text(value: decimal.Decimal | int) -> str:
    return f"{decimal.Decimal(value):f}"


class IcebergPartitions:
    """Partitions by transforms of columns, as a table's spec says. Files hold all columns.

    pyiceberg reads the partition of a file from the least and the greatest value of its columns, so a transform must
    keep the order of values.
    """

    def __init__(self, row_type: RowType, table: Any) -> None:
        """Take the spec of a table.

        Raises:
            ConfigurationError: A transform does not keep the order of values.
        """
        self._names = row_type.field_names()
        schema = table.schema()
        self._parts: list[tuple[int, str, Callable[[Any], Any]]] = []
        self.columns: tuple[str, ...] = ()
        for field in table.spec().fields:
            source = schema.find_field(field.source_id)
            if not field.transform.preserves_order:
                raise ConfigurationError(
                    f"IcebergSink cannot write partitions by {field.transform}({source.name}): partition by a column, "
                    "or by year, month, day, hour or truncate of one"
                )
            transform = field.transform.transform(source.field_type)
            self._parts.append((self._names.index(source.name), source.name, transform))
            self.columns += (source.name,)

    def split(self, value: Any) -> SplitRow:
        fields = fields_of_row(value, self._names)
        key = tuple(transform(_as_iceberg(fields[index])) for index, _, transform in self._parts)
        for part, (_, column, _) in zip(key, self._parts, strict=True):
            if part != part:  # true for NaN, which the least and greatest value of a file leave out
                raise ValueError(f"partition column {column!r} is NaN, which Iceberg would read as None")
        return SplitRow(key, fields)


def _as_iceberg(value: Any) -> Any:
    """Return a value as Iceberg's transforms take it: days and microseconds since 1970."""
    match value:
        case datetime.datetime():
            at = value.astimezone(datetime.UTC).replace(tzinfo=None) if value.tzinfo is not None else value
            return (at - _EPOCH) // datetime.timedelta(microseconds=1)
        case datetime.date():
            return (value - _EPOCH_DAY).days
        case Instant():
            return value.seconds * 1_000_000 + value.nanos // 1000
    return value
