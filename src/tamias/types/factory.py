"""`Types`: the names by which programs declare the types of their streams and states."""

from __future__ import annotations

from collections.abc import Sequence

from tamias.types.basic_types import (
    BigDecimalTypeInfo,
    BigIntegerTypeInfo,
    BooleanTypeInfo,
    DateTypeInfo,
    DoubleTypeInfo,
    FloatTypeInfo,
    InstantTypeInfo,
    IntegerTypeInfo,
    PickledBytesTypeInfo,
    StringTypeInfo,
    TimestampTypeInfo,
    TimeTypeInfo,
)
from tamias.types.composite_types import (
    BasicArrayTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
)
from tamias.types.pojo import PojoTypeInfo
from tamias.types.type_information import TypeInformation

__all__ = ["Types"]

_STRING = StringTypeInfo("String")
_CHAR = StringTypeInfo("Char")
_BOOLEAN = BooleanTypeInfo()
_BYTE = IntegerTypeInfo("Byte", 8)
_SHORT = IntegerTypeInfo("Short", 16)
_INT = IntegerTypeInfo("Integer", 32)
_LONG = IntegerTypeInfo("Long", 64)
_FLOAT = FloatTypeInfo()
_DOUBLE = DoubleTypeInfo()
_BIG_INT = BigIntegerTypeInfo()
_BIG_DEC = BigDecimalTypeInfo()
_INSTANT = InstantTypeInfo()
_SQL_DATE = DateTypeInfo()
_SQL_TIME = TimeTypeInfo()
_SQL_TIMESTAMP = TimestampTypeInfo()
_PICKLED = PickledBytesTypeInfo()


class Types:
    """Every type a stream or a state can be declared with.

    >>> Types.TUPLE([Types.STRING(), Types.LONG()])
    TupleTypeInfo(String, Long)
    """

    @staticmethod
    def STRING() -> TypeInformation:
        """Text, a ``str``."""
        return _STRING

    @staticmethod
    def BYTE() -> TypeInformation:
        """A whole number from -128 to 127."""
        return _BYTE

    @staticmethod
    def BOOLEAN() -> TypeInformation:
        """``True`` or ``False``."""
        return _BOOLEAN

    @staticmethod
    def SHORT() -> TypeInformation:
        """A whole number of 16 bits."""
        return _SHORT

    @staticmethod
    def INT() -> TypeInformation:
        """A whole number of 32 bits."""
        return _INT

    @staticmethod
    def LONG() -> TypeInformation:
        """A whole number of 64 bits."""
        return _LONG

    @staticmethod
    def FLOAT() -> TypeInformation:
        """A floating point number rounded to 32 bits."""
        return _FLOAT

    @staticmethod
    def DOUBLE() -> TypeInformation:
        """A floating point number, a ``float``."""
        return _DOUBLE

    @staticmethod
    def CHAR() -> TypeInformation:
        """A character, a ``str``."""
        return _CHAR

    @staticmethod
    def BIG_INT() -> TypeInformation:
        """A whole number of any size."""
        return _BIG_INT

    @staticmethod
    def BIG_DEC() -> TypeInformation:
        """A ``decimal.Decimal``."""
        return _BIG_DEC

    @staticmethod
    def INSTANT() -> TypeInformation:
        """An :class:`tamias.common.Instant`, or None."""
        return _INSTANT

    @staticmethod
    def SQL_DATE() -> TypeInformation:
        """A ``datetime.date``."""
        return _SQL_DATE

    @staticmethod
    def SQL_TIME() -> TypeInformation:
        """A ``datetime.time``, to the millisecond."""
        return _SQL_TIME

    @staticmethod
    def SQL_TIMESTAMP() -> TypeInformation:
        """A ``datetime.datetime`` without a zone, to the millisecond."""
        return _SQL_TIMESTAMP

    @staticmethod
    def PICKLED_BYTE_ARRAY() -> TypeInformation:
        """Any Python object that pickles; what an undeclared stream has."""
        return _PICKLED

    @staticmethod
    def ROW(field_types: Sequence[TypeInformation]) -> RowTypeInfo:
        """A :class:`tamias.common.Row` with fields ``f0``, ``f1`` and so on."""
        return RowTypeInfo(field_types)

    @staticmethod
    def ROW_NAMED(field_names: Sequence[str], field_types: Sequence[TypeInformation]) -> RowTypeInfo:
        """A :class:`tamias.common.Row` with named fields."""
        return RowTypeInfo(field_types, field_names)

    @staticmethod
    def TUPLE(field_types: Sequence[TypeInformation]) -> TupleTypeInfo:
        """A ``tuple``; its fields are never None."""
        return TupleTypeInfo(field_types)

    @staticmethod
    def POJO(record_class: type) -> PojoTypeInfo:
        """Instances of a dataclass or a ``NamedTuple``; as state they may gain and lose fields."""
        return PojoTypeInfo(record_class)

    @staticmethod
    def PRIMITIVE_ARRAY(element_type: TypeInformation) -> PrimitiveArrayTypeInfo:
        """A ``list`` of numbers, or ``bytes`` for BYTE; its elements are never None."""
        return PrimitiveArrayTypeInfo(element_type)

    @staticmethod
    def BASIC_ARRAY(element_type: TypeInformation) -> BasicArrayTypeInfo:
        """A ``list`` of values of a basic type, or None."""
        return BasicArrayTypeInfo(element_type)

    @staticmethod
    def OBJECT_ARRAY(element_type: TypeInformation) -> ObjectArrayTypeInfo:
        """A ``list`` of values of any type, or None."""
        return ObjectArrayTypeInfo(element_type)

    @staticmethod
    def MAP(key_type_info: TypeInformation, value_type_info: TypeInformation) -> MapTypeInfo:
        """A ``dict``; its values may be None."""
        return MapTypeInfo(key_type_info, value_type_info)

    @staticmethod
    def LIST(element_type_info: TypeInformation) -> ListTypeInfo:
        """A ``list``; its elements are never None."""
        return ListTypeInfo(element_type_info)
