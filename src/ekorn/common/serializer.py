"""Serializers for a program's own types, and the snapshots that record which version wrote a checkpoint."""

from ekorn.types.nullable_serializer import NullableSerializer, NullableSerializerSnapshot
from ekorn.types.serializer import (
    SerializerTypeInfo,
    SimpleTypeSerializerSnapshot,
    TypeSerializer,
    TypeSerializerSchemaCompatibility,
    TypeSerializerSnapshot,
    VoidNamespaceSerializer,
)

__all__ = [
    "NullableSerializer",
    "NullableSerializerSnapshot",
    "SerializerTypeInfo",
    "SimpleTypeSerializerSnapshot",
    "TypeSerializer",
    "TypeSerializerSchemaCompatibility",
    "TypeSerializerSnapshot",
    "VoidNamespaceSerializer",
]
