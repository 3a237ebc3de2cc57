"""The state of one key of a batch, as functions of rows have it: for `ctx.per_key()`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ekorn.functions.state.state_handles import AggregatingState, ListState, MapState, ReducingState, ValueState
from ekorn.operators.columns.batch_collections import ListsOfBatch, MapsOfBatch
from ekorn.operators.columns.batch_reductions import AggregatingOfBatch, ReducingOfBatch
from ekorn.operators.columns.batch_values import ValuesOfBatch
from ekorn.operators.columns.state_of_batch import StateOfBatch
from ekorn.types.by_value import own

__all__ = ["state_of_key"]


def state_of_key(state: StateOfBatch, at: int) -> Any:
    """Return the state of the key at a position of the batch."""
    for kind, make in _OF_KEY.items():
        if isinstance(state, kind):
            return make(state, at)
    raise AssertionError(f"{state!r} is none of the kinds of batch_states.py")


class _OfKey:
    def __init__(self, state: Any, at: int) -> None:
        self._state = state
        self._at = at

    def clear(self) -> None:
        self._state.clear_key(self._at)


class _Value(_OfKey, ValueState[Any]):
    def value(self) -> Any:
        return own(self._state.value_of(self._at))

    def update(self, value: Any) -> None:
        self._state.set_value(self._at, own(value))


class _List(_OfKey, ListState[Any]):
    def get(self) -> Iterable[Any]:
        return iter(list(map(own, self._state.list_of(self._at))))

    def add(self, value: Any) -> None:
        self._state.add_to(self._at, [own(value)])

    def add_all(self, values: Iterable[Any]) -> None:
        self._state.add_to(self._at, list(map(own, values)))

    def update(self, values: Iterable[Any]) -> None:
        self._state.replace(self._at, list(map(own, values)))


class _Map(_OfKey, MapState[Any, Any]):
    def get(self, key: Any) -> Any:
        return own(self._state.value_of(self._at, key))

    def put(self, key: Any, value: Any) -> None:
        self._state.set_value(self._at, key, own(value))

    def put_all(self, dict_value: dict[Any, Any]) -> None:
        for key, value in dict(dict_value or ()).items():
            self.put(key, value)

    def remove(self, key: Any) -> None:
        self._state.remove_value(self._at, key)

    def contains(self, key: Any) -> bool:
        found: bool = self._state.has(self._at, key)
        return found

    def items(self) -> Iterable[tuple[Any, Any]]:
        return iter([(key, own(value)) for key, value in self._state.map_of(self._at).items()])

    def keys(self) -> Iterable[Any]:
        return iter(list(self._state.map_of(self._at)))

    def values(self) -> Iterable[Any]:
        return iter([own(value) for value in self._state.map_of(self._at).values()])

    def is_empty(self) -> bool:
        return not self._state.map_of(self._at)


class _Reducing(_OfKey, ReducingState[Any]):
    def get(self) -> Any:
        return own(self._state.result_of(self._at))

    def add(self, value: Any) -> None:
        self._state.add_to(self._at, own(value))


class _Aggregating(_OfKey, AggregatingState[Any, Any]):
    def get(self) -> Any:
        return own(self._state.result_of(self._at))

    def add(self, value: Any) -> None:
        self._state.add_to(self._at, own(value))


_OF_KEY: dict[type[StateOfBatch], Any] = {
    ValuesOfBatch: _Value,
    ListsOfBatch: _List,
    MapsOfBatch: _Map,
    ReducingOfBatch: _Reducing,
    AggregatingOfBatch: _Aggregating,
}
