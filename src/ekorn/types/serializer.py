"""Serializers that programs bring: how a value becomes bytes, and how the bytes may change between releases."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Generic, Literal, TypeVar

from ekorn.types.published import publish
from ekorn.types.type_information import TypeInformation

__all__ = [
    "SerializerTypeInfo",
    "SimpleTypeSerializerSnapshot",
    "TypeSerializer",
    "TypeSerializerSchemaCompatibility",
    "TypeSerializerSnapshot",
    "VoidNamespaceSerializer",
]

T = TypeVar("T")


class TypeSerializer(ABC, Generic[T]):
    """Serializes values of one type, for window classes of the program and for state that must not be pickled.

    Pass the serializer to a state descriptor in place of a type: it then writes the values to memory, disk and
    checkpoints. A checkpoint also keeps the result of `snapshot_configuration()`, which decides on a restore whether
    the serializer of the new program can read the values that the old serializer wrote.
    """

    @abstractmethod
    def serialize(self, element: T, stream: BytesIO) -> None:
        """Write a value at the stream's position."""

    @abstractmethod
    def deserialize(self, stream: BytesIO) -> T:
        """Read the value that begins at the stream's position."""

    def snapshot_configuration(self) -> TypeSerializerSnapshot[T]:
        """Return what a checkpoint keeps of this serializer; by default its class, which must then stay the same."""
        return SimpleTypeSerializerSnapshot(type(self))


@dataclass(frozen=True)
class TypeSerializerSchemaCompatibility(Generic[T]):
    """Whether a serializer can read what an earlier serializer wrote."""

    kind: Literal["as is", "after migration", "reconfigured", "incompatible"]
    reason: str = ""
    reconfigured: TypeSerializer[T] | None = None

    @staticmethod
    def compatible_as_is() -> TypeSerializerSchemaCompatibility[Any]:
        """Answer that the new serializer reads the old bytes."""
        return TypeSerializerSchemaCompatibility("as is")

    @staticmethod
    def compatible_after_migration() -> TypeSerializerSchemaCompatibility[Any]:
        """Answer that every value must be read by the old serializer and written by the new one."""
        return TypeSerializerSchemaCompatibility("after migration")

    @staticmethod
    def compatible_with_reconfigured_serializer(
        serializer: TypeSerializer[Any],
    ) -> TypeSerializerSchemaCompatibility[Any]:
        """Answer that a third serializer, made from both, reads the old bytes and replaces the new serializer."""
        return TypeSerializerSchemaCompatibility("reconfigured", reconfigured=serializer)

    @staticmethod
    def incompatible(reason: str = "") -> TypeSerializerSchemaCompatibility[Any]:
        """Answer that the state cannot be restored; the reason becomes part of the error."""
        return TypeSerializerSchemaCompatibility("incompatible", reason)


class TypeSerializerSnapshot(ABC, Generic[T]):
    """The part of a serializer that a checkpoint keeps: enough to read old values and to judge a new serializer.

    A checkpoint holds the name of this class, a version and the bytes that `write_snapshot` wrote. A restore creates an
    instance without arguments and calls `read_snapshot`. The class must therefore keep its module and name, and must
    read every version that it ever wrote.
    """

    @abstractmethod
    def get_current_version(self) -> int:
        """Return the version of the bytes that `write_snapshot` writes."""

    @abstractmethod
    def write_snapshot(self, stream: BytesIO) -> None:
        """Write the serializer's configuration."""

    @abstractmethod
    def read_snapshot(self, read_version: int, stream: BytesIO) -> None:
        """Read a configuration that this class wrote in the given version."""

    @abstractmethod
    def restore_serializer(self) -> TypeSerializer[T]:
        """Create a serializer that reads the values that were written under this configuration."""

    @abstractmethod
    def resolve_schema_compatibility(
        self, old_serializer_snapshot: TypeSerializerSnapshot[T]
    ) -> TypeSerializerSchemaCompatibility[T]:
        """Say whether the serializer of this snapshot can read what the serializer of the old snapshot wrote."""


class SimpleTypeSerializerSnapshot(TypeSerializerSnapshot[T]):
    """The snapshot of a serializer without configuration, which reads only what its own class wrote."""

    def __init__(self, serializer_class: type[TypeSerializer[T]] | None = None) -> None:
        self._class_name = "" if serializer_class is None else _name(serializer_class)
        self._class = serializer_class

    def get_current_version(self) -> int:
        return 1

    def write_snapshot(self, stream: BytesIO) -> None:
        stream.write(self._class_name.encode())

    def read_snapshot(self, read_version: int, stream: BytesIO) -> None:
        self._class_name = stream.read().decode()

    def restore_serializer(self) -> TypeSerializer[T]:
        """Create a serializer of the class."""
        if self._class is None:
            raise TypeError(
                f"cannot create a {self._class_name}: this snapshot was read from a checkpoint and holds its name only"
            )
        return self._class()

    def resolve_schema_compatibility(
        self, old_serializer_snapshot: TypeSerializerSnapshot[T]
    ) -> TypeSerializerSchemaCompatibility[T]:
        old = old_serializer_snapshot
        if isinstance(old, SimpleTypeSerializerSnapshot) and old._class_name == self._class_name:
            return TypeSerializerSchemaCompatibility.compatible_as_is()
        was = old._class_name if isinstance(old, SimpleTypeSerializerSnapshot) else _name(type(old))
        return TypeSerializerSchemaCompatibility.incompatible(f"it was written by {was}, not by {self._class_name}")


def _name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


class SerializerTypeInfo(TypeInformation):
    """The type of state whose values a serializer of the program writes."""

    def __init__(self, serializer: TypeSerializer[Any]) -> None:
        self.serializer = serializer

    def _identity(self) -> tuple[Any, ...]:
        return (type(self.serializer),)

    def __repr__(self) -> str:
        return f"values written by {type(self.serializer).__name__}"


class VoidNamespaceSerializer(TypeSerializer[bytes]):
    """Writes nothing and reads an empty value: the serializer of the namespace of state outside windows."""

    def serialize(self, element: bytes, stream: BytesIO) -> None:
        """Write nothing."""

    def deserialize(self, stream: BytesIO) -> bytes:
        """Return an empty value."""
        return b""


publish("ekorn.common.serializer", SimpleTypeSerializerSnapshot, SerializerTypeInfo, VoidNamespaceSerializer)
