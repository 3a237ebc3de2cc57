"""`Types`: the types that programs declare for streams and state."""

from ekorn.types.basic_types import (
    BasicTypeInfo,
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
from ekorn.types.factory import Types
from ekorn.types.pojo import PojoTypeInfo
from ekorn.types.type_information import TypeInformation

__all__ = [
    "BasicArrayTypeInfo",
    "BasicTypeInfo",
    "BigDecimalTypeInfo",
    "BigIntegerTypeInfo",
    "BooleanTypeInfo",
    "DateTypeInfo",
    "DoubleTypeInfo",
    "FloatTypeInfo",
    "InstantTypeInfo",
    "IntegerTypeInfo",
    "ListTypeInfo",
    "MapTypeInfo",
    "ObjectArrayTypeInfo",
    "PickledBytesTypeInfo",
    "PojoTypeInfo",
    "PrimitiveArrayTypeInfo",
    "RowTypeInfo",
    "StringTypeInfo",
    "TimeTypeInfo",
    "TimestampTypeInfo",
    "TupleTypeInfo",
    "TypeInformation",
    "Types",
]
