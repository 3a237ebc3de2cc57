"""The state of one key as a query returns it: a copy that can be read but not changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn

from ekorn.errors import UnsupportedOperationError
from ekorn.functions.state.state_handles import (
    AggregatingState,
    FoldingState,
    ListState,
    MapState,
    ReducingState,
    State,
    ValueState,
)

__all__ = [
    "ImmutableAggregatingState",
    "ImmutableFoldingState",
    "ImmutableListState",
    "ImmutableMapState",
    "ImmutableReducingState",
    "ImmutableValueState",
    "immutable_state",
]


def _refuse() -> NoReturn:
    raise UnsupportedOperationError("a queried state is a copy: only the job can change its state")


class ImmutableValueState(ValueState[Any]):
    """The value of a key."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def value(self) -> Any:
        return self._value

    def update(self, value: Any) -> NoReturn:
        _refuse()

    def clear(self) -> NoReturn:
        _refuse()


class _ImmutableResult:
    """A state whose content is one result over all values that were added for a key."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def get(self) -> Any:
        """Return the result."""
        return self._value

    def add(self, value: Any) -> NoReturn:
        """Raise: only the job changes its state."""
        _refuse()

    def clear(self) -> NoReturn:
        """Raise: only the job changes its state."""
        _refuse()


class ImmutableReducingState(_ImmutableResult, ReducingState[Any]):
    """The reduced value of a key."""


class ImmutableAggregatingState(_ImmutableResult, AggregatingState[Any, Any]):
    """The result of the aggregate function for a key."""


class ImmutableFoldingState(_ImmutableResult, FoldingState[Any, Any]):
    """The folded value of a key."""


class ImmutableListState(ListState[Any]):
    """The list of a key."""

    def __init__(self, elements: list[Any]) -> None:
        self._elements = elements

    def get(self) -> Iterator[Any]:
        return iter(self._elements)

    def add(self, value: Any) -> NoReturn:
        _refuse()

    def update(self, values: list[Any]) -> NoReturn:
        _refuse()

    def add_all(self, values: list[Any]) -> NoReturn:
        _refuse()

    def clear(self) -> NoReturn:
        _refuse()


class ImmutableMapState(MapState[Any, Any]):
    """The map of a key."""

    def __init__(self, entries: Iterable[tuple[Any, Any]]) -> None:
        self._entries = dict(entries)

    def get(self, key: Any) -> Any:
        return self._entries.get(key)

    def contains(self, key: Any) -> bool:
        return key in self._entries

    def items(self) -> Iterable[tuple[Any, Any]]:
        return iter(list(self._entries.items()))

    def keys(self) -> Iterable[Any]:
        return iter(list(self._entries))

    def values(self) -> Iterable[Any]:
        return iter(list(self._entries.values()))

    def is_empty(self) -> bool:
        return not self._entries

    def put(self, key: Any, value: Any) -> NoReturn:
        _refuse()

    def put_all(self, dict_value: dict[Any, Any]) -> NoReturn:
        _refuse()

    def remove(self, key: Any) -> NoReturn:
        _refuse()

    def clear(self) -> NoReturn:
        _refuse()


_STATES: dict[str, Callable[[Any], State]] = {
    "value": ImmutableValueState,
    "list": ImmutableListState,
    "map": ImmutableMapState,
    "reducing": ImmutableReducingState,
    "aggregating": ImmutableAggregatingState,
    "folding": ImmutableFoldingState,
}


def immutable_state(kind: str, content: Any) -> State:
    """Return a state of this kind with the content of a query's answer."""
    return _STATES[kind](content)
