"""Operator state in memory: lists and broadcast maps that belong to a subtask, not to a key."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from typing import Any

from tamias.contracts.state import ListState, ListStateDescriptor, MapStateDescriptor, OperatorStateStore
from tamias.errors import StateError
from tamias.state.broadcast import BroadcastStore
from tamias.state.operator_state import Mode, OperatorState
from tamias.state.snapshots import StateInfo
from tamias.wire.values import dumps, loaded, stored


class OperatorStates(OperatorStateStore):
    """All operator state of one operator in one subtask.

    A restored state that nobody asks for stays and is written again with the next checkpoint.
    """

    def __init__(self, restored: OperatorState | None = None) -> None:
        self._restored: OperatorState = dict(restored or {})
        self._states: dict[str, _ListStore | BroadcastStore] = {}

    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        return self._list(state_descriptor, "split")

    def get_union_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        return self._list(state_descriptor, "union")

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastStore:
        _refuse_ttl(state_descriptor)
        found = self._states.get(state_descriptor.name)
        if found is None:
            found = BroadcastStore(state_descriptor.name)
            for key, value in self._take(state_descriptor.name, "broadcast"):
                found.put(pickle.loads(key), pickle.loads(value))
            self._states[state_descriptor.name] = found
        if not isinstance(found, BroadcastStore):
            raise self._mixed(state_descriptor.name, found.mode, "broadcast")
        return found

    def get_registered_state_names(self) -> set[str]:
        return set(self._states)

    def infos(self) -> tuple[StateInfo, ...]:
        """What states there are."""
        kinds = {"split": "list-split", "union": "list-union", "broadcast": "broadcast"}
        modes = {name: mode for name, (mode, _) in self._restored.items()}
        modes |= {name: state.mode for name, state in self._states.items()}
        return tuple(StateInfo(name, kinds[mode]) for name, mode in modes.items())

    def snapshot(self) -> OperatorState:
        """Every state as its elements, pickled."""
        return self._restored | {name: (state.mode, state.elements()) for name, state in self._states.items()}

    def _list(self, descriptor: ListStateDescriptor, mode: Mode) -> ListState[Any]:
        _refuse_ttl(descriptor)
        found = self._states.get(descriptor.name)
        if found is None:
            elements = [pickle.loads(e) for e in self._take(descriptor.name, mode)]
            found = self._states[descriptor.name] = _ListStore(mode, elements)
        if not isinstance(found, _ListStore) or found.mode != mode:
            raise self._mixed(descriptor.name, found.mode, mode)
        return found

    def _take(self, name: str, mode: Mode) -> Iterable[Any]:
        saved_mode, elements = self._restored.get(name, (mode, []))
        if saved_mode != mode:
            raise self._mixed(name, saved_mode, mode)
        self._restored.pop(name, None)
        return elements

    @staticmethod
    def _mixed(name: str, one: str, other: str) -> StateError:
        return StateError(f"operator state {name!r} is {one} state and cannot be asked for as {other} state")


def _refuse_ttl(descriptor: ListStateDescriptor | MapStateDescriptor) -> None:
    # Flink: takes the setting and does nothing with it. Whoever sets it expects the state to stay small.
    if descriptor.ttl_config is not None:
        raise StateError(
            f"operator state {descriptor.name!r} has a time to live, which only keyed state can have; "
            f"use keyed state, or remove old elements yourself"
        )


class _ListStore(ListState[Any]):
    def __init__(self, mode: Mode, elements: list[Any]) -> None:
        self.mode = mode
        self._elements = [stored(e) for e in elements]

    def get(self) -> Iterator[Any]:
        return iter([loaded(e) for e in self._elements])

    def __iter__(self) -> Iterator[Any]:
        return self.get()

    def add(self, value: Any) -> None:
        self._elements.append(stored(value))

    def add_all(self, values: Iterable[Any]) -> None:
        self._elements.extend(stored(v) for v in values)

    def update(self, values: Iterable[Any]) -> None:
        self._elements = [stored(v) for v in values]

    def clear(self) -> None:
        self._elements = []

    def elements(self) -> list[Any]:
        return [bytes(e) if type(e) is bytearray else dumps(e) for e in self._elements]
