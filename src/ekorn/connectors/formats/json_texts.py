"""Columns of Arrow as JSON texts, by the batch: the texts that `JsonWriter` makes of rows.

The texts of a row are joined by Arrow. Values whose text Arrow does not write are written one by one: text with
characters that JSON escapes, numbers with an exponent, decimals, bytes and maps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ekorn.connectors.formats.arrow_texts import NumberTexts, moment_texts, time_texts
from ekorn.connectors.formats.json_values import JsonWriter
from ekorn.connectors.formats.text_values import TimestampFormat
from ekorn.types import data_types as dt
from ekorn.types.data_type import DataType
from ekorn.types.data_types import RowType

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["row_texts"]

Write = Callable[["pa.Array"], "pa.Array"]  # from values to texts, of which none is null

_QUOTE, _BACKSLASH, _FIRST_PLAIN = ord('"'), ord("\\"), 0x20


def row_texts(row_type: RowType, names: list[str], timestamps: TimestampFormat) -> Callable[[pa.RecordBatch], pa.Array]:
    """Return the function that makes an object of each row, with some fields of a row type.

    The function raises a ValueError if a value has no form in JSON.

    Raises:
        ConfigurationError: JSON cannot represent a type.
    """
    JsonWriter(timestamps).of(row_type)  # refuses what JSON cannot represent
    fields = [(name, _writer(row_type[name].data_type, timestamps)) for name in names]
    return lambda batch: _objects([(name, write(batch.column(name))) for name, write in fields], batch.num_rows)


def _objects(fields: list[tuple[str, pa.Array]], count: int) -> pa.Array:
    from json.encoder import encode_basestring as quoted

    import pyarrow as pa
    import pyarrow.compute as pc

    if not fields:
        return pa.array(["{}"] * count, pa.string())
    parts: list[Any] = []
    for number, (name, texts) in enumerate(fields):
        parts += [f"{',' if number else '{'}{quoted(name)}:", texts]
    return pc.binary_join_element_wise(*parts, "}", "")


def _writer(data_type: DataType, timestamps: TimestampFormat) -> Write:
    """Return the writer of a type, which writes nulls too."""
    import pyarrow as pa

    write = _of(data_type, timestamps)

    def write_all(array: pa.Array) -> pa.Array:
        if array.offset:
            array = pa.concat_arrays([array])  # without the values before a slice
        texts = write(array)
        return texts.fill_null("null") if texts.null_count else texts

    return write_all


def _of(data_type: DataType, timestamps: TimestampFormat) -> Write:
    """Return the writer of a type. Its texts are null where its values are."""
    import pyarrow as pa

    match data_type:
        case dt.CharType() | dt.VarCharType():
            return _quoted_texts
        case dt.BooleanType() | dt.IntegralType():
            return lambda array: array.cast(pa.string())
        case dt.DoubleType() | dt.FloatType():
            return NumberTexts(_one_by_one(data_type, timestamps))
        case dt.DateType():
            return lambda array: _in_quotes(array.cast(pa.string()))
        case dt.TimeType():
            end = "Z" if timestamps is TimestampFormat.ISO_8601 else ""
            return lambda array: _in_quotes(time_texts(array), end)
        case dt.TimestampType() | dt.LocalZonedTimestampType():
            zoned = isinstance(data_type, dt.LocalZonedTimestampType)
            end = "Z" if zoned or timestamps is TimestampFormat.ISO_8601 else ""
            return lambda array: _in_quotes(moment_texts(array, timestamps.between), end)
        case dt.ArrayType():
            return _lists(_writer(data_type.element_type, timestamps))
        case dt.RowType():
            fields = [(each.name, _writer(each.data_type, timestamps)) for each in data_type]
            return lambda array: _structs(array, fields)
    return _one_by_one(data_type, timestamps)


def _one_by_one(data_type: DataType, timestamps: TimestampFormat) -> Write:
    """Return the writer that writes the values of rows."""
    import pyarrow as pa

    from ekorn.columns.arrow_columns import arrow_column, nullable

    write, from_arrow = JsonWriter(timestamps).of(data_type), nullable(arrow_column(data_type, utc=True).from_arrow)
    return lambda array: pa.array([write(from_arrow(value)) for value in array.to_pylist()], pa.string())


# --------------------------------------------------------------------------------------------------------------- texts


def _quoted_texts(array: pa.Array) -> pa.Array:
    import numpy as np
    import pyarrow as pa

    _, offsets, content = array.buffers()  # of an array without an offset
    if content is not None and len(array):
        ends = np.frombuffer(offsets, np.int32, len(array) + 1)
        used = np.frombuffer(content, np.uint8)[ends[0] : ends[-1]]
        if (used < _FIRST_PLAIN).any() or (used == _QUOTE).any() or (used == _BACKSLASH).any():
            from json.encoder import encode_basestring as quoted

            return pa.array([None if text is None else quoted(text) for text in array.to_pylist()], pa.string())
    return _in_quotes(array)


def _in_quotes(texts: pa.Array, end: str = "") -> pa.Array:
    import pyarrow.compute as pc

    return pc.binary_join_element_wise('"', texts, f'{end}"', "")


# -------------------------------------------------------------------------------------------------------- nested types


def _lists(write: Write) -> Write:
    import pyarrow as pa
    import pyarrow.compute as pc

    def write_lists(lists: pa.ListArray) -> pa.Array:
        mask = lists.is_null() if lists.null_count else None
        joined = pc.binary_join(pa.ListArray.from_arrays(lists.offsets, write(lists.values), mask=mask), ",")
        return pc.binary_join_element_wise("[", joined, "]", "")

    return write_lists


def _structs(structs: pa.StructArray, fields: list[tuple[str, Write]]) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = _objects([(name, write(structs.field(name))) for name, write in fields], len(structs))
    return pc.if_else(structs.is_null(), pa.scalar(None, pa.string()), texts) if structs.null_count else texts
