"""Serializers of a program's own types, and the snapshots that say which version wrote a checkpoint."""

from tamias.types.serializer import (
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
