"""`TypeSerializer`: writes one value to a stream of bytes and reads it back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from io import BytesIO
from typing import Generic, TypeVar

__all__ = ["TypeSerializer", "VoidNamespaceSerializer"]

T = TypeVar("T")


class TypeSerializer(ABC, Generic[T]):
    """Serializes values of one type; used for windows of a program's own and for state that must not be pickled."""

    @abstractmethod
    def serialize(self, element: T, stream: BytesIO) -> None:
        """Write a value at the stream's position."""

    @abstractmethod
    def deserialize(self, stream: BytesIO) -> T:
        """Read the value that begins at the stream's position."""


class VoidNamespaceSerializer(TypeSerializer[bytes]):
    """Writes nothing and reads an empty value: the namespace of state that belongs to no window."""

    def serialize(self, element: bytes, stream: BytesIO) -> None:
        """Write nothing."""

    def deserialize(self, stream: BytesIO) -> bytes:
        """An empty value."""
        return b""
