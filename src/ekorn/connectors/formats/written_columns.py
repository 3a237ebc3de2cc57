"""From the columns of a stream to the columns of a file: the conversions that writers of rows make, by the batch."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import TYPE_CHECKING

from ekorn.columns.arrow_columns import arrow_column
from ekorn.types import data_types as dt
from ekorn.types.data_type import DataType
from ekorn.types.data_types import RowType

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ConvertBatch", "same_columns", "written_columns"]

ConvertBatch = Callable[["pa.RecordBatch"], "list[pa.Array]"]
_Convert = Callable[["pa.Array"], "pa.Array"]
_STEP_SECONDS = 900  # since 1970, clocks have changed at quarters of an hour only


def written_columns(found: RowType, wanted: RowType, *, utc: bool) -> ConvertBatch | None:
    """Return the function from a batch of a stream to the columns of a file, in the order of the file.

    The values are those that a writer of rows stores. The function raises Arrow's errors for values that do not fit.

    Args:
        found: The columns of the stream.
        wanted: The columns of the file. The stream may have more.
        utc: Whether a timestamp without a zone is stored as it reads; otherwise it is local time, and stored as UTC.

    Returns:
        The function, or None if a column is missing, or its type is not converted by the batch.
    """
    converts: list[tuple[str, _Convert | None]] = []
    names = found.field_names()
    for field in wanted:
        if field.name not in names:
            return None
        converted, convert = _conversion(found[field.name].data_type, field.data_type, utc=utc)
        if not converted:
            return None
        converts.append((field.name, convert))

    def convert_all(batch: pa.RecordBatch) -> list[pa.Array]:
        return [batch.column(name) if convert is None else convert(batch.column(name)) for name, convert in converts]

    return convert_all


def same_columns(found: DataType, wanted: DataType) -> bool:
    """Return whether two types have the same values in the same columns of Arrow, apart from nulls."""
    match found, wanted:
        case (dt.CharType() | dt.VarCharType(), dt.CharType() | dt.VarCharType()):
            return True
        case (dt.BinaryType() | dt.VarBinaryType(), dt.BinaryType() | dt.VarBinaryType()):
            return True
        case dt.TimeType(), dt.TimeType():
            return (found.precision <= 3) == (wanted.precision <= 3)
        case dt.TimestampType(), dt.TimestampType():
            return (found.precision <= 3) == (wanted.precision <= 3)
        case (dt.LocalZonedTimestampType(), dt.LocalZonedTimestampType()):
            return True
        case dt.ArrayType(), dt.ArrayType():
            return same_columns(found.element_type, wanted.element_type)
        case dt.MapType(), dt.MapType():
            return same_columns(found.key_type, wanted.key_type) and same_columns(found.value_type, wanted.value_type)
        case dt.RowType(), dt.RowType():
            same_names = found.field_names() == wanted.field_names()
            pairs = zip(found.field_types(), wanted.field_types(), strict=False)
            return same_names and all(same_columns(one, other) for one, other in pairs)
    return found.nullable() == wanted.nullable()


def _conversion(found: DataType, wanted: DataType, *, utc: bool) -> tuple[bool, _Convert | None]:
    """Return whether a column is converted by the batch, and how; None if it is only cast to its type."""
    target = arrow_column(wanted, utc=True).type
    cast: _Convert | None = None if arrow_column(found, utc=True).type == target else lambda array: array.cast(target)
    match found, wanted:
        case dt.IntegralType(), dt.IntegralType():
            return True, cast
        case (dt.FloatType() | dt.DoubleType(), dt.FloatType() | dt.DoubleType()):
            return True, cast
        case dt.TimestampType(), dt.TimestampType():
            return True, cast if utc and same_columns(found, wanted) else lambda array: _moments(array, target, utc=utc)
        case (dt.TimeType(), dt.TimeType()):
            return True, cast if same_columns(found, wanted) else lambda array: array.cast(target, safe=False)
    if not utc and _has_wall_clock(wanted):
        return False, None  # inside of other types: row by row
    return same_columns(found, wanted), cast


def _has_wall_clock(data_type: DataType) -> bool:
    match data_type:
        case dt.TimestampType():
            return True
        case dt.ArrayType():
            return _has_wall_clock(data_type.element_type)
        case dt.MapType():
            return _has_wall_clock(data_type.key_type) or _has_wall_clock(data_type.value_type)
        case dt.RowType():
            return any(map(_has_wall_clock, data_type.field_types()))
    return False


def _moments(array: pa.Array, target: pa.DataType, *, utc: bool) -> pa.Array:
    import pyarrow.compute as pc

    if array.type.unit != target.unit:  # floored, as Arrow does with values of Python, where a cast rounds to 1970
        array = pc.floor_temporal(array, unit="millisecond").cast(target)
    return array if utc else _local_to_utc(array)


def _local_to_utc(array: pa.Array) -> pa.Array:
    """Return the points in time, in UTC, of local times of this machine."""
    import numpy as np
    import pyarrow as pa

    per_second = {"ms": 1000, "us": 1_000_000}[array.type.unit]
    values = array.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    seconds = values // per_second
    # Offsets before 1970 are odd, and change at odd moments.
    steps = np.where(seconds >= 0, seconds // _STEP_SECONDS * _STEP_SECONDS, seconds)
    distinct, position = np.unique(steps, return_inverse=True)
    offsets = np.fromiter(map(_offset_seconds, distinct.tolist()), np.int64, len(distinct))
    mask = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
    return pa.array(values - offsets[position] * per_second, pa.int64(), mask=mask).cast(array.type)


def _offset_seconds(local_seconds: int) -> int:
    local = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=local_seconds)
    utc = local.astimezone(datetime.UTC).replace(tzinfo=None)  # also of a time that the clock leaves out
    return (local - utc) // datetime.timedelta(seconds=1)
