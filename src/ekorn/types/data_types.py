"""`DataTypes`: the types of columns, by the names of `pyflink.table.types`. File formats take row types of them.

There is no Table API here. A data type says more than a `TypeInformation` does, such as the precision of a decimal, and
`data_type_info.py` gives the type of the records that a data type describes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Self

from ekorn.types.data_intervals import DayTimeIntervalType, IntervalUnit, Resolution, YearMonthIntervalType
from ekorn.types.data_type import AtomicType, DataType, FractionalType, IntegralType, NumericType

__all__ = [
    "ArrayType",
    "AtomicType",
    "BigIntType",
    "BinaryType",
    "BooleanType",
    "CharType",
    "DataType",
    "DataTypes",
    "DateType",
    "DayTimeIntervalType",
    "DecimalType",
    "DoubleType",
    "FloatType",
    "FractionalType",
    "IntType",
    "IntegralType",
    "LocalZonedTimestampType",
    "MapType",
    "MultisetType",
    "NullType",
    "NumericType",
    "Resolution",
    "RowField",
    "RowType",
    "SmallIntType",
    "TimeType",
    "TimestampType",
    "TinyIntType",
    "VarBinaryType",
    "VarCharType",
    "YearMonthIntervalType",
]

_MOST = 0x7FFFFFFF


class NullType(AtomicType):
    """The type of None."""

    def __init__(self) -> None:
        super().__init__(True)


class BooleanType(AtomicType):
    """Truth values: `bool`."""


class TinyIntType(IntegralType):
    """Integers of 8 bits."""

    bits = 8


class SmallIntType(IntegralType):
    """Integers of 16 bits."""

    bits = 16


class IntType(IntegralType):
    """Integers of 32 bits."""

    bits = 32


class BigIntType(IntegralType):
    """Integers of 64 bits."""

    bits = 64


class FloatType(FractionalType):
    """Floating-point numbers of 32 bits."""


class DoubleType(FractionalType):
    """Floating-point numbers of 64 bits."""


class DateType(AtomicType):
    """Days: `datetime.date`."""


class _LengthType(AtomicType):
    """A type of texts or bytes with a length."""

    def __init__(self, length: int = 1, nullable: bool = True) -> None:
        super().__init__(nullable)
        self.length = _within(self, "length", length, 1, _MOST)

    def _arguments(self) -> tuple[Any, ...]:
        return (self.length,)


class CharType(_LengthType):
    """Texts of a fixed length."""


class VarCharType(_LengthType):
    """Texts of at most a length."""


class BinaryType(_LengthType):
    """Bytes of a fixed length."""


class VarBinaryType(_LengthType):
    """Bytes of at most a length."""


class DecimalType(FractionalType):
    """Decimal numbers of fixed precision and scale: `decimal.Decimal`."""

    def __init__(self, precision: int = 10, scale: int = 0, nullable: bool = True) -> None:
        super().__init__(nullable)
        self.precision = _within(self, "precision", precision, 1, 38)
        self.scale = _within(self, "scale", scale, 0, precision)

    def _arguments(self) -> tuple[Any, ...]:
        return self.precision, self.scale


class _PrecisionType(AtomicType):
    """A type of times with a number of digits behind the second."""

    def __init__(self, precision: int, nullable: bool = True) -> None:
        super().__init__(nullable)
        self.precision = _within(self, "precision", precision, 0, 9)

    def _arguments(self) -> tuple[Any, ...]:
        return (self.precision,)


class TimeType(_PrecisionType):
    """Times of day without a zone: `datetime.time`."""

    def __init__(self, precision: int = 0, nullable: bool = True) -> None:
        super().__init__(precision, nullable)


class TimestampType(_PrecisionType):
    """Dates with a time and without a zone: `datetime.datetime`."""

    def __init__(self, precision: int = 6, nullable: bool = True) -> None:
        super().__init__(precision, nullable)


class LocalZonedTimestampType(_PrecisionType):
    """Points in time: `ekorn.common.Instant`."""

    def __init__(self, precision: int = 6, nullable: bool = True) -> None:
        super().__init__(precision, nullable)


class ArrayType(DataType):
    """Lists of elements of one type."""

    def __init__(self, element_type: DataType, nullable: bool = True) -> None:
        super().__init__(nullable)
        self.element_type = _checked(self, element_type)

    def _arguments(self) -> tuple[Any, ...]:
        return (self.element_type,)


class MapType(DataType):
    """Dicts with one type of keys and one of values."""

    def __init__(self, key_type: DataType, value_type: DataType, nullable: bool = True) -> None:
        super().__init__(nullable)
        self.key_type = _checked(self, key_type)
        self.value_type = _checked(self, value_type)

    def _arguments(self) -> tuple[Any, ...]:
        return self.key_type, self.value_type


class MultisetType(DataType):
    """Elements of one type with their multiplicities: a dict from element to count."""

    def __init__(self, element_type: DataType, nullable: bool = True) -> None:
        super().__init__(nullable)
        self.element_type = _checked(self, element_type)

    def _arguments(self) -> tuple[Any, ...]:
        return (self.element_type,)


class RowField:
    """A field of a row type: a name, a type, and a description for people."""

    def __init__(self, name: str, data_type: DataType, description: str | None = None) -> None:
        if not isinstance(name, str):
            raise TypeError(f"DataTypes.FIELD takes a name as text, got {name!r}")
        self.name = name
        self.data_type = _checked(self, data_type)
        self.description = description

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RowField) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self.name, self.data_type))

    def __repr__(self) -> str:
        return f"RowField({self.name}, {self.data_type!r})"


class RowType(DataType):
    """Rows: a sequence of named fields.

    >>> row_type = DataTypes.ROW([DataTypes.FIELD("id", DataTypes.INT()), DataTypes.FIELD("name", DataTypes.STRING())])
    >>> row_type.field_names()
    ['id', 'name']
    """

    def __init__(self, fields: Sequence[RowField] | None = None, nullable: bool = True) -> None:
        super().__init__(nullable)
        self.fields: list[RowField] = []
        for field in fields or ():
            self.add(field)

    def add(self, field: RowField | str, data_type: DataType | None = None) -> Self:
        """Append a field, given whole or as a name and a type; return this type."""
        if isinstance(field, str):
            if data_type is None:
                raise TypeError(f"RowType.add({field!r}) takes a data type after the name, such as DataTypes.INT()")
            field = RowField(field, data_type)
        if not isinstance(field, RowField):
            raise TypeError(f"a row type takes fields such as DataTypes.FIELD('id', DataTypes.INT()), got {field!r}")
        if any(field.name == each.name for each in self.fields):
            raise ValueError(f"a row type has each field once, but {field.name!r} is given twice")
        self.fields.append(field)
        return self

    def field_names(self) -> list[str]:
        """Return the names of the fields, in order."""
        return [field.name for field in self.fields]

    def field_types(self) -> list[DataType]:
        """Return the types of the fields, in order."""
        return [field.data_type for field in self.fields]

    def __iter__(self) -> Iterator[RowField]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def __getitem__(self, key: int | str) -> RowField:
        if isinstance(key, int):
            return self.fields[key]
        for field in self.fields:
            if field.name == key:
                return field
        raise KeyError(f"the row type has no field {key!r}; its fields are {self.field_names()}")

    def _arguments(self) -> tuple[Any, ...]:
        return tuple(self.fields)


class DataTypes:
    """Creates every type that a column can be declared with. A type is nullable unless `nullable=False` is given."""

    @staticmethod
    def NULL() -> NullType:
        """Declare a column of None."""
        return NullType()

    @staticmethod
    def CHAR(length: int, nullable: bool = True) -> CharType:
        """Declare texts of a fixed length."""
        return CharType(length, nullable)

    @staticmethod
    def VARCHAR(length: int, nullable: bool = True) -> VarCharType:
        """Declare texts of at most a length."""
        return VarCharType(length, nullable)

    @staticmethod
    def STRING(nullable: bool = True) -> VarCharType:
        """Declare texts of any length."""
        return VarCharType(_MOST, nullable)

    @staticmethod
    def BOOLEAN(nullable: bool = True) -> BooleanType:
        """Declare truth values."""
        return BooleanType(nullable)

    @staticmethod
    def BINARY(length: int, nullable: bool = True) -> BinaryType:
        """Declare bytes of a fixed length."""
        return BinaryType(length, nullable)

    @staticmethod
    def VARBINARY(length: int, nullable: bool = True) -> VarBinaryType:
        """Declare bytes of at most a length."""
        return VarBinaryType(length, nullable)

    @staticmethod
    def BYTES(nullable: bool = True) -> VarBinaryType:
        """Declare bytes of any length."""
        return VarBinaryType(_MOST, nullable)

    @staticmethod
    def DECIMAL(precision: int, scale: int, nullable: bool = True) -> DecimalType:
        """Declare decimal numbers with `precision` digits, `scale` of them behind the point."""
        return DecimalType(precision, scale, nullable)

    @staticmethod
    def TINYINT(nullable: bool = True) -> TinyIntType:
        """Declare integers of 8 bits."""
        return TinyIntType(nullable)

    @staticmethod
    def SMALLINT(nullable: bool = True) -> SmallIntType:
        """Declare integers of 16 bits."""
        return SmallIntType(nullable)

    @staticmethod
    def INT(nullable: bool = True) -> IntType:
        """Declare integers of 32 bits."""
        return IntType(nullable)

    @staticmethod
    def BIGINT(nullable: bool = True) -> BigIntType:
        """Declare integers of 64 bits."""
        return BigIntType(nullable)

    @staticmethod
    def FLOAT(nullable: bool = True) -> FloatType:
        """Declare floating-point numbers of 32 bits."""
        return FloatType(nullable)

    @staticmethod
    def DOUBLE(nullable: bool = True) -> DoubleType:
        """Declare floating-point numbers of 64 bits."""
        return DoubleType(nullable)

    @staticmethod
    def DATE(nullable: bool = True) -> DateType:
        """Declare days."""
        return DateType(nullable)

    @staticmethod
    def TIME(precision: int = 0, nullable: bool = True) -> TimeType:
        """Declare times of day with `precision` digits behind the second."""
        return TimeType(precision, nullable)

    @staticmethod
    def TIMESTAMP(precision: int = 6, nullable: bool = True) -> TimestampType:
        """Declare dates with a time and without a zone."""
        return TimestampType(precision, nullable)

    @staticmethod
    def TIMESTAMP_WITH_LOCAL_TIME_ZONE(precision: int = 6, nullable: bool = True) -> LocalZonedTimestampType:
        """Declare points in time."""
        return LocalZonedTimestampType(precision, nullable)

    @staticmethod
    def TIMESTAMP_LTZ(precision: int = 6, nullable: bool = True) -> LocalZonedTimestampType:
        """Declare points in time: the short name of `TIMESTAMP_WITH_LOCAL_TIME_ZONE`."""
        return LocalZonedTimestampType(precision, nullable)

    @staticmethod
    def ARRAY(element_type: DataType, nullable: bool = True) -> ArrayType:
        """Declare lists of elements of one type."""
        return ArrayType(element_type, nullable)

    @staticmethod
    def MAP(key_type: DataType, value_type: DataType, nullable: bool = True) -> MapType:
        """Declare dicts."""
        return MapType(key_type, value_type, nullable)

    @staticmethod
    def MULTISET(element_type: DataType, nullable: bool = True) -> MultisetType:
        """Declare multisets: dicts from element to count."""
        return MultisetType(element_type, nullable)

    @staticmethod
    def ROW(row_fields: Sequence[RowField] = (), nullable: bool = True) -> RowType:
        """Declare rows of the given fields."""
        return RowType(row_fields, nullable)

    @staticmethod
    def FIELD(name: str, data_type: DataType, description: str | None = None) -> RowField:
        """Declare a field of a row."""
        return RowField(name, data_type, description)

    @staticmethod
    def SECOND(precision: int = 6) -> Resolution:
        """Return the resolution of seconds, for `INTERVAL`."""
        return Resolution(IntervalUnit.SECOND, precision)

    @staticmethod
    def MINUTE() -> Resolution:
        """Return the resolution of minutes, for `INTERVAL`."""
        return Resolution(IntervalUnit.MINUTE)

    @staticmethod
    def HOUR() -> Resolution:
        """Return the resolution of hours, for `INTERVAL`."""
        return Resolution(IntervalUnit.HOUR)

    @staticmethod
    def DAY(precision: int = 2) -> Resolution:
        """Return the resolution of days, for `INTERVAL`."""
        return Resolution(IntervalUnit.DAY, precision)

    @staticmethod
    def MONTH() -> Resolution:
        """Return the resolution of months, for `INTERVAL`."""
        return Resolution(IntervalUnit.MONTH)

    @staticmethod
    def YEAR(precision: int = 2) -> Resolution:
        """Return the resolution of years, for `INTERVAL`."""
        return Resolution(IntervalUnit.YEAR, precision)

    @staticmethod
    def INTERVAL(
        upper_resolution: Resolution, lower_resolution: Resolution | None = None
    ) -> DayTimeIntervalType | YearMonthIntervalType:
        """Declare spans from days to seconds (`datetime.timedelta`), or from years to months (`int`, in months)."""
        lower = lower_resolution or upper_resolution
        kind = YearMonthIntervalType if upper_resolution.unit.is_year_month else DayTimeIntervalType
        return kind(upper_resolution, lower)


def _within(data_type: DataType, what: str, value: int, lowest: int, highest: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not lowest <= value <= highest:
        name = type(data_type).type_name()
        raise ValueError(f"the {what} of {name} is a number from {lowest} to {highest}, got {value!r}")
    return value


def _checked(owner: object, data_type: Any) -> DataType:
    if not isinstance(data_type, DataType):
        raise TypeError(f"{type(owner).__name__} takes data types such as DataTypes.INT(), got {data_type!r}")
    return data_type
