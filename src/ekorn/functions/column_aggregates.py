"""Aggregates of columns by name: `Sum("amount")`, `Count()`. They are values; both forms of a stream compute them.

On rows an aggregate is called record by record through `create`, `add` and `result`. On columns, vectors compute the
same (`columns/kernels.py`). A null is left out, as in SQL: `Count("amount")` counts the rows with an amount.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from ekorn.errors import AggregateOverflowError
from ekorn.functions.record_fields import read_field
from ekorn.types import data_types as dt
from ekorn.types.data_type import DataType

__all__ = ["ColumnAggregate", "Count", "First", "Last", "Max", "Mean", "Min", "Sum"]


_LEAST, _MOST = -(1 << 63), (1 << 63) - 1


@dataclass(frozen=True)
class ColumnAggregate(ABC):
    """An aggregate of one column.

    An accumulator is a tuple, as long as `width` says. It is part of the state of a key.
    """

    column: str

    width = 1

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read."""
        return (self.column,) if self.column else ()

    @abstractmethod
    def create(self) -> tuple[Any, ...]:
        """Return the accumulator of no rows."""

    def add_record(self, accumulator: tuple[Any, ...], record: Any) -> tuple[Any, ...]:
        """Return the accumulator with one more row. A null is left out."""
        value = read_field(record, self.column) if self.column else None
        return accumulator if value is None and self.column else self.add(accumulator, value)

    @abstractmethod
    def add(self, accumulator: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
        """Return the accumulator with one more value, which is not None."""

    @abstractmethod
    def merge(self, one: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return one accumulator for the values of two, where the values of `other` come last."""

    def result(self, accumulator: tuple[Any, ...]) -> Any:
        """Return the result of an accumulator; None if there was no value."""
        return accumulator[0]

    @abstractmethod
    def result_type(self, column: DataType) -> DataType:
        """Return the type of the results for a column of a type.

        Raises:
            TypeError: The aggregate has no meaning for such a column.
        """

    def __str__(self) -> str:
        return f"{type(self).__name__}({self.column!r})"


@dataclass(frozen=True)
class Sum(ColumnAggregate):
    """The sum of a column: a LONG of whole numbers, a DOUBLE of others."""

    def create(self) -> tuple[Any, ...]:
        return (None,)

    def add(self, accumulator: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
        total = value if accumulator[0] is None else accumulator[0] + value
        if total.__class__ is int and not _LEAST <= total <= _MOST:
            raise AggregateOverflowError(str(self), total)
        return (total,)

    def merge(self, one: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[Any, ...]:
        return one if other[0] is None else self.add(one, other[0])

    def result_type(self, column: DataType) -> DataType:
        match column:
            case dt.IntegralType():
                return dt.DataTypes.BIGINT()
            case dt.FloatType() | dt.DoubleType():
                return dt.DataTypes.DOUBLE()
            case dt.DecimalType():
                return dt.DataTypes.DECIMAL(38, column.scale)
        raise TypeError(f"{self} needs a column of numbers, and {self.column!r} is {column}")


@dataclass(frozen=True)
class Count(ColumnAggregate):
    """The number of rows; with a column, of the rows in which it is not null."""

    column: str = ""

    def create(self) -> tuple[Any, ...]:
        return (0,)

    def add(self, accumulator: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
        return (accumulator[0] + 1,)

    def merge(self, one: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[Any, ...]:
        return (one[0] + other[0],)

    def result_type(self, column: DataType) -> DataType:
        return dt.DataTypes.BIGINT()

    def __str__(self) -> str:
        return f"Count({self.column!r})" if self.column else "Count()"


class _Extreme(ColumnAggregate):
    def create(self) -> tuple[Any, ...]:
        return (None,)

    def merge(self, one: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[Any, ...]:
        return one if other[0] is None else self.add(one, other[0])

    def result_type(self, column: DataType) -> DataType:
        if isinstance(column, dt.ArrayType | dt.MapType | dt.MultisetType | dt.RowType):
            raise TypeError(f"{self} needs a column whose values have an order, and {self.column!r} is {column}")
        return column.nullable()


@dataclass(frozen=True)
class Min(_Extreme):
    """The smallest value of a column. NaN is larger than all numbers."""

    def add(self, accumulator: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
        (known,) = accumulator
        return (value,) if known is None or value < known or known != known else accumulator


@dataclass(frozen=True)
class Max(_Extreme):
    """The largest value of a column. NaN is larger than all numbers."""

    def add(self, accumulator: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
        (known,) = accumulator
        return (value,) if known is None or value > known or value != value else accumulator


@dataclass(frozen=True)
class Mean(ColumnAggregate):
    """The mean of a column of numbers, a DOUBLE."""

    width = 2

    def create(self) -> tuple[Any, ...]:
        return (0.0, 0)

    def add(self, accumulator: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
        return (accumulator[0] + float(value), accumulator[1] + 1)

    def merge(self, one: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[Any, ...]:
        return (one[0] + other[0], one[1] + other[1])

    def result(self, accumulator: tuple[Any, ...]) -> Any:
        return accumulator[0] / accumulator[1] if accumulator[1] else None

    def result_type(self, column: DataType) -> DataType:
        if isinstance(column, dt.IntegralType | dt.FloatType | dt.DoubleType | dt.DecimalType):
            return dt.DataTypes.DOUBLE()
        raise TypeError(f"{self} needs a column of numbers, and {self.column!r} is {column}")


@dataclass(frozen=True)
class First(ColumnAggregate):
    """The first value of a column that is not null."""

    def create(self) -> tuple[Any, ...]:
        return (None,)

    def add(self, accumulator: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
        return (value,) if accumulator[0] is None else accumulator

    def merge(self, one: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[Any, ...]:
        return other if one[0] is None else one

    def result_type(self, column: DataType) -> DataType:
        return column.nullable()


@dataclass(frozen=True)
class Last(ColumnAggregate):
    """The last value of a column that is not null."""

    def create(self) -> tuple[Any, ...]:
        return (None,)

    def add(self, accumulator: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
        return (value,)

    def merge(self, one: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[Any, ...]:
        return one if other[0] is None else other

    def result_type(self, column: DataType) -> DataType:
        return column.nullable()
