"""Columns of Arrow, for Parquet and ORC: the Arrow type of a data type, and its values in both directions.

Arrow takes and gives plain Python values. Rows, dicts, instants and wall-clock times are converted.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any, NamedTuple

from ekorn.errors import ConfigurationError
from ekorn.extras import load
from ekorn.types import data_types as dt
from ekorn.types.data_type import DataType
from ekorn.types.decimals import decimal_of
from ekorn.types.row import Row, make_row
from ekorn.types.time import Instant

__all__ = ["ArrowColumn", "arrow_column", "load_arrow", "nullable"]

Convert = Callable[[Any], Any]
_EPOCH = datetime.datetime(1970, 1, 1)
_EPOCH_UTC = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


class ArrowColumn(NamedTuple):
    """An Arrow type, with the conversions of values that are not None; None for values that stay as they are."""

    type: Any
    to_arrow: Convert | None = None
    from_arrow: Convert | None = None


def load_arrow(what: str, extra: str = "parquet") -> Any:
    """Return the package pyarrow.

    Raises:
        ConfigurationError: It is not installed.
    """
    return load(extra, what, "pyarrow")


def arrow_column(data_type: DataType, *, utc: bool) -> ArrowColumn:
    """Return the column of a data type.

    Args:
        data_type: The type of the values.
        utc: Whether a timestamp without a zone is stored as it reads. Otherwise it is taken for the local time of the
            machine, and stored as UTC.

    Raises:
        ConfigurationError: Arrow has no column for the type.
    """
    pa = load_arrow("a Parquet or ORC file")
    match data_type:
        case dt.CharType() | dt.VarCharType():
            return ArrowColumn(pa.string())
        case dt.BinaryType() | dt.VarBinaryType():
            return ArrowColumn(pa.binary())
        case dt.BooleanType():
            return ArrowColumn(pa.bool_())
        case dt.IntegralType():
            return ArrowColumn({8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[data_type.bits])
        case dt.FloatType():
            return ArrowColumn(pa.float32())
        case dt.DoubleType():
            return ArrowColumn(pa.float64())
        case dt.DecimalType():
            arrow_type = pa.decimal128(data_type.precision, data_type.scale)
            return ArrowColumn(arrow_type, lambda value: decimal_of(value, data_type))
        case dt.DateType():
            return ArrowColumn(pa.date32())
        case dt.TimeType():
            return (
                ArrowColumn(pa.time32("ms"), _to_the_millisecond)
                if data_type.precision <= 3
                else ArrowColumn(pa.time64("us"))
            )
        case dt.TimestampType():
            arrow_type = pa.timestamp("ms" if data_type.precision <= 3 else "us")
            return ArrowColumn(arrow_type) if utc else ArrowColumn(arrow_type, _local_to_utc, _utc_to_local)
        case dt.LocalZonedTimestampType():
            return ArrowColumn(pa.timestamp("us", tz="UTC"), _from_instant, _to_instant)
        case dt.ArrayType():
            return _array(pa, arrow_column(data_type.element_type, utc=utc))
        case dt.MapType():
            return _map(pa, arrow_column(data_type.key_type, utc=utc), arrow_column(data_type.value_type, utc=utc))
        case dt.MultisetType():
            return _map(pa, arrow_column(data_type.element_type, utc=utc), ArrowColumn(pa.int32()))
        case dt.RowType():
            return _row(pa, data_type, utc=utc)
    raise ConfigurationError(f"Parquet and ORC cannot store the data type {data_type}; use another type")


def nullable(convert: Convert | None) -> Convert:
    """Return a conversion that keeps None."""
    if convert is None:
        return lambda value: value
    return lambda value: None if value is None else convert(value)


def _array(pa: Any, element: ArrowColumn) -> ArrowColumn:
    to_arrow, from_arrow = nullable(element.to_arrow), nullable(element.from_arrow)
    return ArrowColumn(
        pa.list_(element.type),
        None if element.to_arrow is None else lambda value: [to_arrow(each) for each in value],
        None if element.from_arrow is None else lambda value: [from_arrow(each) for each in value],
    )


def _map(pa: Any, key: ArrowColumn, value: ArrowColumn) -> ArrowColumn:
    key_to, value_to = nullable(key.to_arrow), nullable(value.to_arrow)
    key_from, value_from = nullable(key.from_arrow), nullable(value.from_arrow)
    return ArrowColumn(
        pa.map_(key.type, value.type),
        lambda entries: [(key_to(k), value_to(v)) for k, v in entries.items()],
        lambda pairs: {key_from(k): value_from(v) for k, v in pairs},
    )


def _row(pa: Any, row_type: dt.RowType, *, utc: bool) -> ArrowColumn:
    names = row_type.field_names()
    columns = [arrow_column(each, utc=utc) for each in row_type.field_types()]
    writers = [nullable(column.to_arrow) for column in columns]
    readers = [nullable(column.from_arrow) for column in columns]
    fields = zip(row_type, columns, strict=True)

    def write(value: Any) -> dict[str, Any]:
        values = value.get_fields_by_names(names) if isinstance(value, Row) else value
        return {name: each(field) for name, each, field in zip(names, writers, values, strict=True)}

    def read(value: Any) -> Row:
        return make_row([each(value[name]) for name, each in zip(names, readers, strict=True)], names)

    arrow_type = pa.struct([pa.field(f.name, c.type, nullable=f.data_type.is_nullable) for f, c in fields])
    return ArrowColumn(arrow_type, write, read)


def _to_the_millisecond(value: datetime.time) -> datetime.time:
    return value.replace(microsecond=value.microsecond // 1000 * 1000)


def _local_to_utc(value: datetime.datetime) -> datetime.datetime:
    return value.astimezone(datetime.UTC).replace(tzinfo=None)


def _utc_to_local(value: datetime.datetime) -> datetime.datetime:
    return value.replace(tzinfo=datetime.UTC).astimezone().replace(tzinfo=None)


def _from_instant(value: Instant) -> datetime.datetime:
    return _EPOCH_UTC + datetime.timedelta(seconds=value.seconds, microseconds=value.nanos // 1000)


def _to_instant(value: datetime.datetime) -> Instant:
    micros = (value.replace(tzinfo=None) - _EPOCH) // datetime.timedelta(microseconds=1)
    return Instant(micros // 1_000_000, micros % 1_000_000 * 1000)
