"""Columns of Arrow as CSV records, by the batch: the records that `CsvFields` and `CsvDialect` make of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ekorn.connectors.formats.arrow_texts import NumberTexts, joined_texts, moment_texts, time_texts
from ekorn.connectors.formats.csv_dialect import CsvDialect
from ekorn.connectors.formats.csv_schema import CsvSchema
from ekorn.connectors.formats.written_columns import same_columns
from ekorn.types import data_types as dt
from ekorn.types.data_type import DataType, NumericType
from ekorn.types.data_types import RowType

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["csv_records"]

_Write = Callable[["pa.Array"], "pa.Array"]  # from values to texts, which are null where the values are


def csv_records(schema: CsvSchema, row_type: RowType) -> Callable[[pa.RecordBatch], memoryview] | None:
    """Return the function that makes the bytes of all records of a batch.

    The function raises a ValueError, or an error of Arrow, if a value has no text.

    Args:
        schema: The columns and the form of the files.
        row_type: The columns of the batches, which may be more.

    Returns:
        The function, or None if a column is missing or has another type.
    """
    names = row_type.field_names()
    if any(f.name not in names or not _fits(row_type[f.name].data_type, f.data_type) for f in schema.row_type):
        return None
    dialect = schema.dialect
    null = dialect.null_literal or ""
    fields = [
        (field.name, _column(schema, number, row_type[field.name].data_type))
        for number, field in enumerate(schema.row_type)
    ]

    def records(batch: pa.RecordBatch) -> memoryview:
        import pyarrow.compute as pc

        texts = [write(batch.column(name)).fill_null(null) for name, write in fields]
        joined = pc.binary_join_element_wise(*texts, dialect.separator)
        return joined_texts(pc.binary_join_element_wise(joined, dialect.line_end, ""))

    return records


def _fits(found: DataType, wanted: DataType) -> bool:
    match found, wanted:
        case (dt.IntegralType(), dt.IntegralType()):
            return True
        case (dt.FloatType() | dt.DoubleType(), dt.DoubleType()):
            return True
        case (dt.TimestampType(), dt.TimestampType()) | (dt.TimeType(), dt.TimeType()):
            return True
    return same_columns(found, wanted)


def _column(schema: CsvSchema, number: int, found: DataType) -> _Write:
    """Return the writer of a column, with quotes where they are needed."""
    import pyarrow as pa

    wanted = schema.row_type.field_types()[number]
    quoted = _quoting(schema.dialect)
    match wanted:
        case dt.CharType() | dt.VarCharType():
            return quoted
        case dt.BooleanType():
            return lambda array: array.cast(pa.string())
        case dt.IntegralType():
            return lambda array: array.cast(_arrow(wanted)).cast(pa.string())
        case dt.FloatType() | dt.DoubleType():
            numbers = NumberTexts(_one_by_one(schema, number, wanted))
            return lambda array: numbers(array.cast(_arrow(wanted)))
        case dt.DateType():
            return lambda array: quoted(array.cast(pa.string()))
        case dt.TimeType():
            return lambda array: quoted(time_texts(array))
        case dt.TimestampType():
            return lambda array: quoted(moment_texts(array, " "))
    one_by_one = _one_by_one(schema, number, found)
    return one_by_one if isinstance(wanted, NumericType) else lambda array: quoted(one_by_one(array))


def _arrow(data_type: DataType) -> pa.DataType:
    from ekorn.columns.arrow_columns import arrow_column

    return arrow_column(data_type, utc=True).type


def _one_by_one(schema: CsvSchema, number: int, found: DataType) -> _Write:
    """Return the writer that writes the values of rows."""
    import pyarrow as pa

    from ekorn.columns.arrow_columns import arrow_column, nullable

    write, from_arrow = schema.columns().text_of(number), nullable(arrow_column(found, utc=True).from_arrow)
    return lambda array: pa.array([write(from_arrow(value)) for value in array.to_pylist()], pa.string())


def _quoting(dialect: CsvDialect) -> _Write:
    """Return the function that puts quotes around the texts that need them."""
    quote, escape, pattern = dialect.quote, dialect.escape, dialect.quoted_pattern()
    if quote is None:
        return lambda texts: texts
    most = dialect.unchecked_chars

    def quoted(texts: pa.Array) -> pa.Array:
        import pyarrow.compute as pc

        needed = pc.or_(pc.greater(pc.utf8_length(texts), most), pc.match_substring_regex(texts, pattern))
        if not pc.any(needed, min_count=0).as_py():
            return texts
        doubled = texts
        for char in (escape, quote):
            if char is not None:
                doubled = pc.replace_substring(doubled, char, char * 2)
        return pc.if_else(needed, pc.binary_join_element_wise(quote, doubled, quote, ""), texts)

    return quoted
