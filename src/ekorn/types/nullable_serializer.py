"""`NullableSerializer`: lets a serializer of the program that cannot write None write it."""

from __future__ import annotations

from io import BytesIO
from typing import Any, overload

from ekorn.types.global_names import find_global
from ekorn.types.published import publish
from ekorn.types.serializer import (
    TypeSerializer,
    TypeSerializerSchemaCompatibility,
    TypeSerializerSnapshot,
)
from ekorn.types.type_information import TypeInformation

__all__ = ["NullableSerializer", "NullableSerializerSnapshot"]

_VALUE, _NULL = b"\0", b"\1"


class NullableSerializer(TypeSerializer[Any]):
    """Writes a byte that says whether the value is None, and then the value with another serializer.

    State takes None without it: ekorn keeps None apart, and never passes it to the serializer of a state. A serializer
    that calls another one for parts of its values does need it.

    Example:
        >>> wrapped = NullableSerializer.wrap(my_serializer, False)  # doctest: +SKIP
    """

    def __init__(self, serializer: TypeSerializer[Any], padding: int = 0) -> None:
        """Wrap a serializer; programs call `wrap`.

        Args:
            serializer: Writes the values that are not None.
            padding: How many zeros are written after the byte of None.
        """
        self.original_serializer = serializer
        self.padding = padding

    @overload
    @staticmethod
    def wrap(
        original_serializer: TypeSerializer[Any], pad_null_value_if_fixed_len: bool = False
    ) -> TypeSerializer[Any]: ...

    @overload
    @staticmethod
    def wrap(original_serializer: TypeInformation, pad_null_value_if_fixed_len: bool = False) -> TypeInformation: ...

    @staticmethod
    def wrap(
        original_serializer: TypeSerializer[Any] | TypeInformation, pad_null_value_if_fixed_len: bool = False
    ) -> TypeSerializer[Any] | TypeInformation:
        """Return a serializer that also writes None.

        Args:
            original_serializer: The serializer. A `TypeInformation`, or a serializer that is wrapped already, is
                returned as it is: it has room for None.
            pad_null_value_if_fixed_len: Whether None takes as many bytes as a value, if all values have one length.
                The serializer says so with a method `get_length()`, which returns the length, or -1.
        """
        if isinstance(original_serializer, TypeInformation | NullableSerializer):
            return original_serializer
        if not isinstance(original_serializer, TypeSerializer):
            raise TypeError(f"NullableSerializer.wrap() takes a TypeSerializer, got {original_serializer!r}")
        length = getattr(original_serializer, "get_length", None)
        padding = max(length(), 0) if pad_null_value_if_fixed_len and callable(length) else 0
        return NullableSerializer(original_serializer, padding)

    @staticmethod
    def wrap_if_null_is_not_supported(
        original_serializer: TypeSerializer[Any], pad_null_value_if_fixed_len: bool = False
    ) -> TypeSerializer[Any]:
        """Return the serializer itself if it writes and reads None, otherwise one that does."""
        if NullableSerializer.check_if_null_supported(original_serializer):
            return original_serializer
        return NullableSerializer.wrap(original_serializer, pad_null_value_if_fixed_len)

    @staticmethod
    def check_if_null_supported(serializer: TypeSerializer[Any]) -> bool:
        """Return whether a serializer writes None and reads it again."""
        stream = BytesIO()
        try:
            serializer.serialize(None, stream)
            stream.seek(0)
            return serializer.deserialize(stream) is None
        except Exception:  # a serializer that is not made for None may raise anything
            return False

    def serialize(self, element: Any, stream: BytesIO) -> None:
        """Write whether there is a value, and the value."""
        if element is None:
            stream.write(_NULL + bytes(self.padding))
        else:
            stream.write(_VALUE)
            self.original_serializer.serialize(element, stream)

    def deserialize(self, stream: BytesIO) -> Any:
        """Read a value, or None."""
        if stream.read(1) == _NULL:
            stream.read(self.padding)
            return None
        return self.original_serializer.deserialize(stream)

    def snapshot_configuration(self) -> TypeSerializerSnapshot[Any]:
        """Return the padding and the snapshot of the wrapped serializer."""
        return NullableSerializerSnapshot(self.padding, self.original_serializer.snapshot_configuration())


class NullableSerializerSnapshot(TypeSerializerSnapshot[Any]):
    """The padding, and the snapshot of the wrapped serializer, which decides what it can read."""

    def __init__(self, padding: int = 0, nested: TypeSerializerSnapshot[Any] | None = None) -> None:
        self._padding = padding
        self._nested = nested

    def get_current_version(self) -> int:
        return 1

    def write_snapshot(self, stream: BytesIO) -> None:
        assert self._nested is not None, "only the snapshot of a serializer is written"
        kind = type(self._nested)
        heading = f"{self._padding} {self._nested.get_current_version()} {kind.__module__}:{kind.__qualname__}\n"
        stream.write(heading.encode())
        self._nested.write_snapshot(stream)

    def read_snapshot(self, read_version: int, stream: BytesIO) -> None:
        padding, version, name = stream.readline().decode().strip().split(" ")
        found = find_global(*name.split(":"))
        if not (isinstance(found, type) and issubclass(found, TypeSerializerSnapshot)):
            raise TypeError(f"{name} is not a snapshot of a serializer")  # no other class may be called
        self._padding, self._nested = int(padding), found()
        self._nested.read_snapshot(int(version), BytesIO(stream.read()))

    def restore_serializer(self) -> TypeSerializer[Any]:
        """Create a serializer that reads what the old one wrote."""
        assert self._nested is not None, "read_snapshot comes first"
        return NullableSerializer(self._nested.restore_serializer(), self._padding)

    def resolve_schema_compatibility(
        self, old_serializer_snapshot: TypeSerializerSnapshot[Any]
    ) -> TypeSerializerSchemaCompatibility[Any]:
        old = old_serializer_snapshot
        if not isinstance(old, NullableSerializerSnapshot):
            return TypeSerializerSchemaCompatibility.incompatible("it was written without a NullableSerializer")
        assert self._nested is not None and old._nested is not None
        nested = self._nested.resolve_schema_compatibility(old._nested)
        if nested.reconfigured is not None:
            reconfigured = NullableSerializer(nested.reconfigured, self._padding)
            nested = TypeSerializerSchemaCompatibility.compatible_with_reconfigured_serializer(reconfigured)
        if old._padding != self._padding and nested.kind in ("as is", "reconfigured"):
            return TypeSerializerSchemaCompatibility.compatible_after_migration()
        return nested


publish("ekorn.common.serializer", NullableSerializer, NullableSerializerSnapshot)
