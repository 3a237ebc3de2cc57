"""Serializers for a program's own types, and the snapshots that record which version wrote a checkpoint."""

from ekorn.types.serializer import (
    SerializerTypeInfo,
    SimpleTypeSerializerSnapshot,
    TypeSerializer,
    TypeSerializerSchemaCompatibility,
    TypeSerializerSnapshot,
    VoidNamespaceSerializer,
)

__all__ = [
    "SerializerTypeInfo",
    "SimpleTypeSerializerSnapshot",
    "TypeSerializer",
    "TypeSerializerSchemaCompatibility",
    "TypeSerializerSnapshot",
    "VoidNamespaceSerializer",
]
