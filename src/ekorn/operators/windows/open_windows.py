"""The open windows of a key: windows that stay as they are assigned, and windows that merge; and their codecs.

The triggered window operator chooses one of the two classes when it opens and calls it for every record.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from io import BytesIO
from typing import Any

from ekorn.functions.state.state_descriptors import ListStateDescriptor
from ekorn.functions.windows.assigner_contract import MergingWindowAssigner
from ekorn.functions.windows.window_arithmetic import SavedSpan
from ekorn.functions.windows.window_values import (
    CountWindow,
    CountWindowSerializer,
    GlobalWindow,
    GlobalWindowSerializer,
    TimeWindow,
    TimeWindowSerializer,
)
from ekorn.state.keyed_backend import KeyedStates
from ekorn.types.serializer import TypeSerializer

OPEN_WINDOWS = "_window/open"
"""The name of the state with a key's open windows, where windows merge."""

OnMerge = Callable[[Any, list[Any]], None]
"""Called with the window that results, and the windows that it replaces."""


class OpenWindows(ABC):
    """The open windows of the current key."""

    @abstractmethod
    def add(self, window: Any) -> Any:
        """Add an assigned window, and return the window that its records belong to."""

    @abstractmethod
    def has(self, window: Any) -> bool:
        """Return whether the current key has a window open."""

    @abstractmethod
    def retire(self, window: Any) -> None:
        """Remove a window that is over."""


class PlainWindows(OpenWindows):
    """Windows that do not merge. Their contents and timers are their whole state."""

    def add(self, window: Any) -> Any:
        return window

    def has(self, window: Any) -> bool:
        return True

    def retire(self, window: Any) -> None:
        pass


class MergingWindows(OpenWindows):
    """Windows that merge, kept as state of the current key."""

    def __init__(
        self, states: KeyedStates, assigner: MergingWindowAssigner[Any, Any], codec: WindowCodec, on_merge: OnMerge
    ) -> None:
        self._state = states.state(ListStateDescriptor(OPEN_WINDOWS))
        self._assigner = assigner
        self._codec = codec
        self._on_merge = on_merge

    def has(self, window: Any) -> bool:
        return self._codec.encode(window) in self._state.get()

    def add(self, window: Any) -> Any:
        decode = self._codec.decode
        there = [decode(w) for w in self._state.get()]
        collected = _CollectedMerges()
        self._assigner.merge_windows([*there, window] if window not in there else there, collected)
        result, is_merged = window, False
        for merged, becomes in collected.merges:
            replaced = [w for w in merged if w in there]
            if window in merged:
                result, is_merged = becomes, True
            there = [w for w in there if w not in merged]
            there.append(becomes)
            if replaced and replaced != [becomes]:
                self._on_merge(becomes, replaced)
        if not is_merged and window not in there:
            there.append(window)
        self._state.update([self._codec.encode(w) for w in there])
        return result

    def retire(self, window: Any) -> None:
        encoded = self._codec.encode(window)
        self._state.update([w for w in self._state.get() if w != encoded])


class _CollectedMerges(MergingWindowAssigner.MergeCallback[Any]):
    def __init__(self) -> None:
        self.merges: list[tuple[list[Any], Any]] = []

    def merge(self, to_be_merged: Iterable[Any], merge_result: Any) -> None:
        self.merges.append((list(to_be_merged), merge_result))


class WindowCodec(ABC):
    """Turns the windows of one assigner into built-in values and back.

    State tables and checkpoints hold no class of ekorn, and none of the program.
    """

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
