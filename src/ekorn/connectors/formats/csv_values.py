"""The columns of CSV from texts, by the batch: the values that `CsvFields` reads of texts one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ekorn.columns.arrow_columns import arrow_column, nullable
from ekorn.connectors.formats.csv_fields import CsvFields
from ekorn.connectors.formats.csv_schema import CsvSchema
from ekorn.connectors.formats.text_columns import CLOCK, DAY, ConvertTexts, TextsOfForm, TimesOfTexts, bytes_of_texts
from ekorn.types import data_types as dt
from ekorn.types.data_type import DataType

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["column_of_texts"]


def column_of_texts(schema: CsvSchema, fields: CsvFields, number: int) -> ConvertTexts:
    """Return the function from the texts of a column to its values; a null literal is null.

    The function raises a ValueError, or an error of Arrow, for texts that the reader of rows has to read.
    """
    import pyarrow.compute as pc

    null = schema.dialect.null_literal
    convert = _conversion(schema.row_type.field_types()[number], fields, number)
    if null is None:
        return convert

    def convert_with_nulls(texts: pa.Array) -> pa.Array:
        import pyarrow as pa

        return convert(pc.if_else(pc.equal(texts, null), pa.scalar(None, pa.string()), texts))

    return convert_with_nulls


def _conversion(data_type: DataType, fields: CsvFields, number: int) -> ConvertTexts:
    import pyarrow as pa

    arrow_type = arrow_column(data_type, utc=True).type
    match data_type:
        case dt.CharType() | dt.VarCharType():
            return lambda texts: texts
        case dt.BooleanType():
            return TextsOfForm("^(?:true|false)$", arrow_type)
        case dt.IntegralType():
            return TextsOfForm(r"^-?\d{1,19}$", arrow_type)
        case dt.DoubleType():
            return TextsOfForm(_NUMBER, arrow_type)
        case dt.FloatType():  # rounded to 64 bits first, as in rows
            return TextsOfForm(_NUMBER, pa.float64(), arrow_type)
        case dt.DecimalType():
            whole = data_type.precision - data_type.scale
            fraction = rf"(?:\.\d{{1,{data_type.scale}}})?" if data_type.scale else ""
            return TextsOfForm(rf"^-?\d{{1,{whole}}}{fraction}$" if whole else "^$.", arrow_type)
        case dt.DateType():
            return TimesOfTexts(f"^{DAY}$", arrow_type)
        case dt.TimeType():
            return TimesOfTexts(f"^{CLOCK % _digits(data_type)}$", arrow_type, "1970-01-01T")
        case dt.TimestampType():
            return TimesOfTexts(f"^{DAY} {CLOCK % _digits(data_type)}$", arrow_type)
        case dt.LocalZonedTimestampType():
            return TimesOfTexts(f"^{DAY} {CLOCK % 6}Z$", arrow_type)
        case dt.BinaryType() | dt.VarBinaryType():
            return bytes_of_texts
    read, to_arrow = nullable(fields.value_of(number)), nullable(arrow_column(data_type, utc=True).to_arrow)
    return lambda texts: pa.array([to_arrow(read(text)) for text in texts.to_pylist()], arrow_type)


_NUMBER = r"^-?\d{1,17}(?:\.\d{1,17})?(?:[eE][+-]?\d{1,3})?$"


def _digits(data_type: dt.TimeType | dt.TimestampType) -> int:
    return 3 if data_type.precision <= 3 else 6
