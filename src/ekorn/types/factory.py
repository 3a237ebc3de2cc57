"""`Types`: the factory by which programs declare the types of their streams and states."""

from __future__ import annotations

from collections.abc import Sequence

from ekorn.types.basic_types import (
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
from ekorn.types.composite_types import (
    BasicArrayTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
)
from ekorn.types.pojo import PojoTypeInfo
from ekorn.types.type_information import TypeInformation

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
    """Creates every type that a stream or a state can be declared with.

    >>> Types.TUPLE([Types.STRING(), Types.LONG()])
    TupleTypeInfo(String, Long)
    """

    @staticmethod
    def STRING() -> TypeInformation:
        """Declare text: ``str``."""
        return _STRING

    @staticmethod
    def BYTE() -> TypeInformation:
        """Declare integers of 8 bits, from -128 to 127."""
        return _BYTE

    @staticmethod
    def BOOLEAN() -> TypeInformation:
        """Declare truth values: ``bool``."""
        return _BOOLEAN

    @staticmethod
    def SHORT() -> TypeInformation:
        """Declare integers of 16 bits."""
        return _SHORT

    @staticmethod
    def INT() -> TypeInformation:
        """Declare integers of 32 bits."""
        return _INT

    @staticmethod
    def LONG() -> TypeInformation:
        """Declare integers of 64 bits."""
        return _LONG

    @staticmethod
    def FLOAT() -> TypeInformation:
        """Declare floating-point numbers that are rounded to 32 bits."""
        return _FLOAT

    @staticmethod
    def DOUBLE() -> TypeInformation:
        """Declare floating-point numbers of 64 bits: ``float``."""
        return _DOUBLE

    @staticmethod
    def CHAR() -> TypeInformation:
        """Declare a single character: ``str``."""
        return _CHAR

    @staticmethod
    def BIG_INT() -> TypeInformation:
        """Declare integers of any size."""
        return _BIG_INT

    @staticmethod
    def BIG_DEC() -> TypeInformation:
        """Declare decimal numbers: ``decimal.Decimal``."""
        return _BIG_DEC

    @staticmethod
    def INSTANT() -> TypeInformation:
        """Declare points in time: :class:`ekorn.common.Instant`, or None."""
        return _INSTANT

    @staticmethod
    def SQL_DATE() -> TypeInformation:
        """Declare dates: ``datetime.date``."""
        return _SQL_DATE

    @staticmethod
    def SQL_TIME() -> TypeInformation:
        """Declare times of day: ``datetime.time``, to the millisecond."""
        return _SQL_TIME

    @staticmethod
    def SQL_TIMESTAMP() -> TypeInformation:
        """Declare dates with a time and without a zone: ``datetime.datetime``, to the millisecond."""
        return _SQL_TIMESTAMP

    @staticmethod
    def PICKLED_BYTE_ARRAY() -> TypeInformation:
        """Declare any Python object that pickles; the type of a stream without a declared type."""
        return _PICKLED

    @staticmethod
    def ROW(field_types: Sequence[TypeInformation]) -> RowTypeInfo:
        """Declare rows (:class:`ekorn.common.Row`) with fields ``f0``, ``f1`` and so on."""
        return RowTypeInfo(field_types)

    @staticmethod
    def ROW_NAMED(field_names: Sequence[str], field_types: Sequence[TypeInformation]) -> RowTypeInfo:
        """Declare rows (:class:`ekorn.common.Row`) with named fields."""
        return RowTypeInfo(field_types, field_names)

    @staticmethod
    def TUPLE(field_types: Sequence[TypeInformation]) -> TupleTypeInfo:
        """Declare tuples whose fields are never None."""
        return TupleTypeInfo(field_types)

    @staticmethod
    def POJO(record_class: type) -> PojoTypeInfo:
        """Declare instances of a dataclass or a ``NamedTuple``; in state, the class may gain and lose fields."""
        return PojoTypeInfo(record_class)

    @staticmethod
    def PRIMITIVE_ARRAY(element_type: TypeInformation) -> PrimitiveArrayTypeInfo:
        """Declare lists of numbers, or ``bytes`` for BYTE; the elements are never None."""
        return PrimitiveArrayTypeInfo(element_type)

    @staticmethod
    def BASIC_ARRAY(element_type: TypeInformation) -> BasicArrayTypeInfo:
        """Declare lists of values of a basic type, or None."""
        return BasicArrayTypeInfo(element_type)

    @staticmethod
    def OBJECT_ARRAY(element_type: TypeInformation) -> ObjectArrayTypeInfo:
        """Declare lists of values of any type, or None."""
        return ObjectArrayTypeInfo(element_type)

    @staticmethod
    def MAP(key_type_info: TypeInformation, value_type_info: TypeInformation) -> MapTypeInfo:
        """Declare dicts; the values may be None."""
        return MapTypeInfo(key_type_info, value_type_info)

    @staticmethod
    def LIST(element_type_info: TypeInformation) -> ListTypeInfo:
        """Declare lists whose elements are never None."""
        return ListTypeInfo(element_type_info)
