"""Windows as built-in values. State tables and checkpoints hold no class of ekorn, and none of the program."""

from __future__ import annotations

from abc import ABC, abstractmethod
from io import BytesIO
from typing import Any

from ekorn.functions.windows.window_arithmetic import SavedSpan
from ekorn.functions.windows.window_values import (
    CountWindow,
    CountWindowSerializer,
    GlobalWindow,
    GlobalWindowSerializer,
    TimeWindow,
    TimeWindowSerializer,
)
from ekorn.types.serializer import TypeSerializer


class WindowCodec(ABC):
    """Turns the windows of one assigner into built-in values and back."""

    @abstractmethod
    def encode(self, window: Any) -> Any: ...

    @abstractmethod
    def decode(self, encoded: Any) -> Any: ...


class _TimeWindowCodec(WindowCodec):
    def encode(self, window: TimeWindow) -> SavedSpan:
        return (window.start, window.end)

    def decode(self, encoded: SavedSpan) -> TimeWindow:
        return TimeWindow(*encoded)


class _CountWindowCodec(WindowCodec):
    def encode(self, window: CountWindow) -> int:
        return window.id

    def decode(self, encoded: int) -> CountWindow:
        return CountWindow(encoded)


class _GlobalWindowCodec(WindowCodec):
    def encode(self, window: GlobalWindow) -> tuple[()]:
        return ()

    def decode(self, encoded: tuple[()]) -> GlobalWindow:
        return GlobalWindow.get()


class _SerializedWindowCodec(WindowCodec):
    """Encodes a window class of the program as the bytes that its serializer writes."""

    def __init__(self, serializer: TypeSerializer[Any]) -> None:
        self._serializer = serializer

    def encode(self, window: Any) -> bytes:
        stream = BytesIO()
        self._serializer.serialize(window, stream)
        return stream.getvalue()

    def decode(self, encoded: bytes) -> Any:
        return self._serializer.deserialize(BytesIO(encoded))


_CODECS: dict[type, type[WindowCodec]] = {
    TimeWindowSerializer: _TimeWindowCodec,
    CountWindowSerializer: _CountWindowCodec,
    GlobalWindowSerializer: _GlobalWindowCodec,
}


def codec_for(serializer: TypeSerializer[Any]) -> WindowCodec:
    """Return the codec for the windows that an assigner's serializer writes."""
    known = _CODECS.get(type(serializer))
    return known() if known is not None else _SerializedWindowCodec(serializer)
