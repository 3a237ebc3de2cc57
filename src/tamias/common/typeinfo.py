"""`Types`: the types that programs declare for streams and state."""

from tamias.types.basic_types import (
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
from tamias.types.composite_types import (
    BasicArrayTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
)
from tamias.types.factory import Types
from tamias.types.pojo import PojoTypeInfo
from tamias.types.type_information import TypeInformation

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
