"""Serializers of a program's own: how a value becomes bytes, and how that may change from one release to the next."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Generic, Literal, TypeVar

from tamias.types.published import publish
from tamias.types.type_information import TypeInformation

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
    """Serializes values of one type; used for windows of a program's own and for state that must not be pickled.

    Give it to a state descriptor where its type goes: values are then written through it, to memory, disk and
    checkpoints. A checkpoint also keeps `snapshot_configuration()`, which decides after a restore whether the
    serializer that the program has by then can read what this one wrote.
    """

    @abstractmethod
    def serialize(self, element: T, stream: BytesIO) -> None:
        """Write a value at the stream's position."""

    @abstractmethod
    def deserialize(self, stream: BytesIO) -> T:
        """Read the value that begins at the stream's position."""

    def snapshot_configuration(self) -> TypeSerializerSnapshot[T]:
        """What a checkpoint keeps of this serializer; unless overridden: its class, which must stay the same."""
        return SimpleTypeSerializerSnapshot(type(self))


@dataclass(frozen=True)
class TypeSerializerSchemaCompatibility(Generic[T]):
    """Whether a serializer can read what an earlier one wrote."""

    kind: Literal["as is", "after migration", "reconfigured", "incompatible"]
    reason: str = ""
    reconfigured: TypeSerializer[T] | None = None

    @staticmethod
    def compatible_as_is() -> TypeSerializerSchemaCompatibility[Any]:
        """It reads the old bytes."""
        return TypeSerializerSchemaCompatibility("as is")

    @staticmethod
    def compatible_after_migration() -> TypeSerializerSchemaCompatibility[Any]:
        """It reads what it writes itself: every value is read by the old serializer and written by the new one."""
        return TypeSerializerSchemaCompatibility("after migration")

    @staticmethod
    def compatible_with_reconfigured_serializer(
        serializer: TypeSerializer[Any],
    ) -> TypeSerializerSchemaCompatibility[Any]:
        """This one, made from both, reads the old bytes; it is used from now on."""
        return TypeSerializerSchemaCompatibility("reconfigured", reconfigured=serializer)

    @staticmethod
    def incompatible(reason: str = "") -> TypeSerializerSchemaCompatibility[Any]:
        """The state cannot be restored; the reason is part of the error."""
        return TypeSerializerSchemaCompatibility("incompatible", reason)


class TypeSerializerSnapshot(ABC, Generic[T]):
    """What a checkpoint keeps of a serializer: enough to read old values and to judge a new serializer.

    A checkpoint holds the name of this class, a version and the bytes that `write_snapshot` wrote. On restore an
    instance is made without arguments and filled by `read_snapshot`, so the class must stay where it is, and must read
    every version it ever wrote.
    """

    @abstractmethod
    def get_current_version(self) -> int:
        """The version of what `write_snapshot` writes."""

    @abstractmethod
    def write_snapshot(self, stream: BytesIO) -> None:
        """Write the serializer's configuration."""

    @abstractmethod
    def read_snapshot(self, read_version: int, stream: BytesIO) -> None:
        """Take over a configuration that was written by that version of this class."""

    @abstractmethod
    def restore_serializer(self) -> TypeSerializer[T]:
        """A serializer that reads what was written under this configuration."""

    @abstractmethod
    def resolve_schema_compatibility(
        self, old_serializer_snapshot: TypeSerializerSnapshot[T]
    ) -> TypeSerializerSchemaCompatibility[T]:
        """Asked of the new serializer's snapshot: can the new one read what was written under the old one?"""


class SimpleTypeSerializerSnapshot(TypeSerializerSnapshot[T]):
    """For a serializer without configuration: it reads what its own class wrote, and nothing else."""

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
        """A new serializer of the class."""
        if self._class is None:
            raise TypeError(f"{self._class_name} was compared by name only; it reads its own values as they are")
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
    """The type of state that is written through a serializer of the program's own."""

    def __init__(self, serializer: TypeSerializer[Any]) -> None:
        self.serializer = serializer

    def _identity(self) -> tuple[Any, ...]:
        return (type(self.serializer),)

    def __repr__(self) -> str:
        return f"values written by {type(self.serializer).__name__}"


class VoidNamespaceSerializer(TypeSerializer[bytes]):
    """Writes nothing and reads an empty value: the namespace of state that belongs to no window."""

    def serialize(self, element: bytes, stream: BytesIO) -> None:
        """Write nothing."""

    def deserialize(self, stream: BytesIO) -> bytes:
        """An empty value."""
        return b""


publish("tamias.common.serializer", SimpleTypeSerializerSnapshot, SerializerTypeInfo, VoidNamespaceSerializer)
