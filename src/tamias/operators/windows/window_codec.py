"""Windows as built-in values: in state tables and checkpoints no class of ours or the user's appears."""

from __future__ import annotations

from abc import ABC, abstractmethod
from io import BytesIO
from typing import Any

from tamias.functions.windows import (
    CountWindow,
    CountWindowSerializer,
    GlobalWindow,
    GlobalWindowSerializer,
    TimeWindow,
    TimeWindowSerializer,
)
from tamias.types.serializer import TypeSerializer


class WindowCodec(ABC):
    """Turns the windows of one assigner into built-in values and back."""

    @abstractmethod
    def encode(self, window: Any) -> Any: ...

    @abstractmethod
    def decode(self, encoded: Any) -> Any: ...


class _Time(WindowCodec):
    def encode(self, window: TimeWindow) -> tuple[int, int]:
        return (window.start, window.end)

    def decode(self, encoded: tuple[int, int]) -> TimeWindow:
        return TimeWindow(*encoded)


class _Count(WindowCodec):
    def encode(self, window: CountWindow) -> int:
        return window.id

    def decode(self, encoded: int) -> CountWindow:
        return CountWindow(encoded)


class _Global(WindowCodec):
    def encode(self, window: GlobalWindow) -> tuple[()]:
        return ()

    def decode(self, encoded: tuple[()]) -> GlobalWindow:
        return GlobalWindow.get()


class _Custom(WindowCodec):
    """A window class of the user's: the bytes that its serializer writes."""

    def __init__(self, serializer: TypeSerializer[Any]) -> None:
        self._serializer = serializer

    def encode(self, window: Any) -> bytes:
        stream = BytesIO()
        self._serializer.serialize(window, stream)
        return stream.getvalue()

    def decode(self, encoded: bytes) -> Any:
        return self._serializer.deserialize(BytesIO(encoded))


def codec_for(serializer: TypeSerializer[Any]) -> WindowCodec:
    """The codec that fits an assigner's serializer."""
    known: dict[type, type[WindowCodec]] = {
        TimeWindowSerializer: _Time,
        CountWindowSerializer: _Count,
        GlobalWindowSerializer: _Global,
    }
    found = known.get(type(serializer))
    return found() if found is not None else _Custom(serializer)
