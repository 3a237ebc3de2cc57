"""The windows that a key has open, where windows merge."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tamias.functions.assigner_contract import MergingWindowAssigner
from tamias.functions.state_descriptors import ListStateDescriptor
from tamias.operators.windows.window_codec import WindowCodec
from tamias.state.keyed_backend import KeyedStates

OnMerge = Callable[[Any, list[Any]], None]
"""Called with the window that results, and those that it replaces."""


class MergingWindows:
    """The open windows of the current key, kept as its state."""

    def __init__(self, states: KeyedStates, assigner: MergingWindowAssigner[Any, Any], codec: WindowCodec) -> None:
        self._state = states.list_state(ListStateDescriptor("_window/open"))
        self._assigner = assigner
        self._codec = codec

    def has(self, window: Any) -> bool:
        """Whether the current key has this window open."""
        return self._codec.encode(window) in self._state.get()

    def add(self, window: Any, on_merge: OnMerge) -> Any:
        """Add a window, merge it with those it belongs to, and answer the window it became part of."""
        decode = self._codec.decode
        there = [decode(w) for w in self._state.get()]
        collected = _Collected()
        self._assigner.merge_windows([*there, window] if window not in there else there, collected)
        result, is_merged = window, False
        for merged, becomes in collected.merges:
            replaced = [w for w in merged if w in there]
            if window in merged:
                result, is_merged = becomes, True
            there = [w for w in there if w not in merged]
            there.append(becomes)
            if replaced and replaced != [becomes]:
                on_merge(becomes, replaced)
        if not is_merged and window not in there:
            there.append(window)
        self._save(there)
        return result

    def retire(self, window: Any) -> None:
        """Forget a window that is over."""
        encoded = self._codec.encode(window)
        self._state.update([w for w in self._state.get() if w != encoded])

    def _save(self, windows: list[Any]) -> None:
        self._state.update([self._codec.encode(w) for w in windows])


class _Collected(MergingWindowAssigner.MergeCallback[Any]):
    def __init__(self) -> None:
        self.merges: list[tuple[list[Any], Any]] = []

    def merge(self, to_be_merged: Iterable[Any], merge_result: Any) -> None:
        self.merges.append((list(to_be_merged), merge_result))
