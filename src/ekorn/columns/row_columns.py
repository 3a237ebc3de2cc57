"""Rows from and to batches of Arrow, by row type; and row types from and to schemas of Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ekorn.columns.arrow_columns import ArrowColumn, arrow_column, load_arrow, nullable
from ekorn.errors import ConfigurationError, RecordTypeError, preview
from ekorn.types.data_type import DataType
from ekorn.types.data_types import DataTypes, RowField, RowType
from ekorn.types.row import Row, make_row

__all__ = ["RowColumns", "row_type_of_arrow"]


class RowColumns:
    """The columns of a row type, with the conversions between rows and Arrow."""

    def __init__(self, row_type: RowType) -> None:
        self._pa = load_arrow("a DataFrame", "pyarrow")
        self._text = f"ROW<{', '.join(f'{field.name} {field.data_type}' for field in row_type)}>"
        self.names = row_type.field_names()
        self._columns: list[ArrowColumn] = [arrow_column(each, utc=True) for each in row_type.field_types()]
        self.schema = self._pa.schema(
            [
                self._pa.field(field.name, column.type, nullable=field.data_type.is_nullable)
                for field, column in zip(row_type, self._columns, strict=True)
            ]
        )

    def rows(self, batch: Any) -> list[Row]:
        """Return the rows of a record batch, whose columns may lie in another order."""
        names = self.names
        columns = [self._values(batch, name, column) for name, column in zip(names, self._columns, strict=True)]
        return [make_row(list(values), names) for values in zip(*columns, strict=True)]  # hot

    def _values(self, batch: Any, name: str, column: ArrowColumn) -> list[Any]:
        return self._read(batch.column(name), column)

    def values(self, columns: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Return the rows of columns in the order of this type, as tuples."""
        return list(zip(*self.lists(columns), strict=True))

    def lists(self, columns: Sequence[Any]) -> list[list[Any]]:
        """Return the values of columns in the order of this type, a list for each column."""
        return list(map(self._read, columns, self._columns))

    @staticmethod
    def _read(array: Any, column: ArrowColumn) -> list[Any]:
        if array.type != column.type:
            array = array.cast(column.type)
        values: list[Any] = array.to_pylist()
        return values if column.from_arrow is None else list(map(nullable(column.from_arrow), values))

    def batch(self, records: Sequence[Any]) -> Any:
        """Return records as a record batch.

        Raises:
            RecordTypeError: A record does not fit the columns.
        """
        try:
            return self._batch(records)
        except Exception:  # pyarrow and conversions raise errors of many classes; the record at fault is found below
            misfit = self._first_misfit(records)
            if misfit is None:
                raise
            raise misfit from None

    def _first_misfit(self, records: Sequence[Any]) -> RecordTypeError | None:
        """Return the error of the first record that does not fit the columns."""
        start, end = 0, len(records)
        while end - start > 1:
            half = (start + end) // 2
            start, end = (half, end) if self._error(records[start:half]) is None else (start, half)
        error = self._error(records[start:end])
        if error is None:
            return None
        misfit = RecordTypeError(self._text, preview(records[start]), str(error))
        misfit.position = start
        return misfit

    def _error(self, records: Sequence[Any]) -> Exception | None:
        try:
            self._batch(records)
        except Exception as error:  # as in `batch`
            return error
        return None

    def _batch(self, records: Sequence[Any]) -> Any:
        pa = self._pa
        rows = [self._fields(record) for record in records]
        arrays = []
        for index, (field, column) in enumerate(zip(self.schema, self._columns, strict=True)):
            values = [row[index] for row in rows]
            try:
                if column.to_arrow is not None:
                    values = list(map(nullable(column.to_arrow), values))
                array = pa.array(values, type=column.type)
            except Exception as error:  # errors of many classes, none of which names the column
                raise ValueError(f"column {field.name!r}: {error}") from None
            if not field.nullable and array.null_count:
                raise ValueError(f"column {field.name!r} is not nullable and is None")
            arrays.append(array)
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _fields(self, record: Any) -> Sequence[Any]:
        if isinstance(record, Row):
            record = record.get_fields_by_names(self.names)
        elif isinstance(record, dict):
            if missing := [name for name in self.names if name not in record]:
                raise ValueError(f"the record has no field {missing[0]!r}")
            return [record[name] for name in self.names]
        if not isinstance(record, tuple | list):
            raise TypeError(f"expected a row, a tuple or a dict, found {type(record).__name__}")
        if len(record) != len(self.names):
            raise ValueError(f"expected {len(self.names)} fields, found {len(record)}")
        return record


def row_type_of_arrow(schema: Any, *, exact: bool = False) -> RowType:
    """Return the row type of a schema of Arrow.

    Args:
        schema: The columns.
        exact: Whether the columns of the row type are these columns. Otherwise every column is nullable, and times have
            microseconds.

    Raises:
        ConfigurationError: A column has a type that no stream has, or two columns have one name.
    """
    fields: list[RowField] = []
    for field in schema:
        if any(field.name == known.name for known in fields):
            raise ConfigurationError(f"two columns have the name {field.name!r}; rename one of them")
        fields.append(RowField(field.name, (_exact_type if exact else _data_type)(field.type, field.name)))
        if exact and not field.nullable:
            fields[-1] = RowField(field.name, fields[-1].data_type.not_null())
    return RowType(fields)


def _exact_type(arrow_type: Any, name: str) -> DataType:
    """Return the data type whose column has this type, for a type that `arrow_column` returns."""
    pa = load_arrow("a stream of columns")
    t = pa.types
    if t.is_timestamp(arrow_type) and arrow_type.tz is None and arrow_type.unit == "ms":
        return DataTypes.TIMESTAMP(3)
    if t.is_time32(arrow_type):
        return DataTypes.TIME(3)
    if t.is_list(arrow_type):
        return DataTypes.ARRAY(_exact_type(arrow_type.value_type, name))
    if t.is_map(arrow_type):
        return DataTypes.MAP(_exact_type(arrow_type.key_type, name), _exact_type(arrow_type.item_type, name))
    if t.is_struct(arrow_type):
        return row_type_of_arrow(list(arrow_type), exact=True)
    return _data_type(arrow_type, name)


def _data_type(arrow_type: Any, name: str) -> DataType:
    pa = load_arrow("a DataFrame of pandas", "pandas")
    t = pa.types
    plain = {
        pa.bool_(): DataTypes.BOOLEAN(),
        pa.int8(): DataTypes.TINYINT(),
        pa.uint8(): DataTypes.SMALLINT(),
        pa.int16(): DataTypes.SMALLINT(),
        pa.uint16(): DataTypes.INT(),
        pa.int32(): DataTypes.INT(),
        pa.uint32(): DataTypes.BIGINT(),
        pa.int64(): DataTypes.BIGINT(),
        pa.uint64(): DataTypes.DECIMAL(20, 0),
        pa.float16(): DataTypes.FLOAT(),
        pa.float32(): DataTypes.FLOAT(),
        pa.float64(): DataTypes.DOUBLE(),
        pa.null(): DataTypes.STRING(),  # a column with only missing values
    }
    if arrow_type in plain:
        return plain[arrow_type]
    if t.is_string(arrow_type) or t.is_large_string(arrow_type):
        return DataTypes.STRING()
    if t.is_binary(arrow_type) or t.is_large_binary(arrow_type) or t.is_fixed_size_binary(arrow_type):
        return DataTypes.BYTES()
    if t.is_decimal(arrow_type) and arrow_type.precision <= 38 and 0 <= arrow_type.scale <= arrow_type.precision:
        return DataTypes.DECIMAL(arrow_type.precision, arrow_type.scale)
    if t.is_date(arrow_type):
        return DataTypes.DATE()
    if t.is_time(arrow_type):
        return DataTypes.TIME(6)
    if t.is_timestamp(arrow_type):
        return DataTypes.TIMESTAMP(6) if arrow_type.tz is None else DataTypes.TIMESTAMP_LTZ(6)
    if t.is_dictionary(arrow_type):
        return _data_type(arrow_type.value_type, name)
    if t.is_list(arrow_type) or t.is_large_list(arrow_type) or t.is_fixed_size_list(arrow_type):
        return DataTypes.ARRAY(_data_type(arrow_type.value_type, name))
    if t.is_map(arrow_type):
        return DataTypes.MAP(_data_type(arrow_type.key_type, name).not_null(), _data_type(arrow_type.item_type, name))
    if t.is_struct(arrow_type):
        return RowType([RowField(field.name, _data_type(field.type, f"{name}.{field.name}")) for field in arrow_type])
    raise ConfigurationError(
        f"column {name!r} has Arrow's type {arrow_type}, which streams do not support; convert it first, for example "
        "to text"
    )
