"""State handles: the interfaces through which a function reads and writes its state.

A handle of keyed state addresses the key of the record or timer in progress: a function creates the handle once in
`open`, and the handle then reads and writes a different value for every key. Reads return copies: changing an object
that was read has no effect until the object is written back.

`state_descriptors` declares states; `state_stores` hands out the handles.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
IN = TypeVar("IN")
OUT = TypeVar("OUT")


class State(ABC):
    """The base of all state handles."""

    @abstractmethod
    def clear(self) -> None:
        """Remove the value of the current key."""


class ValueState(State, Generic[T]):
    """One value per key."""

    @abstractmethod
    def value(self) -> T | None:
        """Return the value; if there is none, the default of the descriptor, which is None unless it was set."""

    @abstractmethod
    def update(self, value: T | None) -> None:
        """Set the value; None removes it."""


class AppendingState(State, Generic[IN, OUT]):
    """State to which values are added."""

    @abstractmethod
    def get(self) -> OUT | None:
        """Return the result over the values added so far."""

    @abstractmethod
    def add(self, value: IN) -> None:
        """Add one value."""


class MergingState(AppendingState[IN, OUT]):
    """State that can be merged with another one of its kind, as merging windows need."""


class ReducingState(MergingState[T, T]):
    """The values added so far, reduced to one value; None if there are none."""


class AggregatingState(MergingState[IN, OUT]):
    """The result of an `AggregateFunction` over the values added so far; None if there are none."""


class FoldingState(AppendingState[IN, OUT]):
    """The values added so far, folded into an accumulator; None if there are none."""


class ListState(MergingState[T, Iterable[T]]):
    """One list per key, in the order of adding."""

    @abstractmethod
    def get(self) -> Iterable[T]:
        """Return the elements; an empty iterable if there are none."""

    @abstractmethod
    def update(self, values: list[T]) -> None:
        """Replace the list; an empty list removes it."""

    @abstractmethod
    def add_all(self, values: list[T]) -> None:
        """Append all values."""

    def __iter__(self) -> Iterator[T]:
        return iter(self.get())


class MapEntry(NamedTuple, Generic[K, V]):
    """One entry of a map: a pair of key and value, with the getters of Java's `Map.Entry`."""

    key: K
    value: V

    def get_key(self) -> K:
        """Return the key."""
        return self.key

    def get_value(self) -> V:
        """Return the value."""
        return self.value


class MapState(State, Generic[K, V]):
    """One map per key. The order of iteration is not specified."""

    @abstractmethod
    def get(self, key: K) -> V | None:
        """Return the value under a key of the map, or None."""

    @abstractmethod
    def put(self, key: K, value: V) -> None:
        """Set the value under a key of the map; None is a value like any other."""

    @abstractmethod
    def put_all(self, dict_value: dict[K, V]) -> None:
        """Set all entries of a dict."""

    @abstractmethod
    def remove(self, key: K) -> None:
        """Remove a key of the map, if the map has it."""

    @abstractmethod
    def contains(self, key: K) -> bool:
        """Return whether the map has the key."""

    @abstractmethod
    def items(self) -> Iterable[tuple[K, V]]:
        """Return all entries."""

    def entries(self) -> Iterable[MapEntry[K, V]]:
        """Return all entries, as `items` does, under Java's name and with the getters of its entries."""
        return (MapEntry(key, value) for key, value in self.items())

    def iterator(self) -> Iterator[MapEntry[K, V]]:
        """Return an iterator over all entries. In Java it has this name; in Python `iter` of a map is over its keys."""
        return iter(self.entries())

    @abstractmethod
    def keys(self) -> Iterable[K]:
        """Return all keys of the map."""

    @abstractmethod
    def values(self) -> Iterable[V]:
        """Return all values of the map."""

    @abstractmethod
    def is_empty(self) -> bool:
        """Return whether the map has no entries."""

    def __getitem__(self, key: K) -> V | None:
        return self.get(key)

    def __setitem__(self, key: K, value: V) -> None:
        self.put(key, value)

    def __delitem__(self, key: K) -> None:
        self.remove(key)

    def __contains__(self, key: K) -> bool:
        return self.contains(key)

    def __iter__(self) -> Iterator[K]:
        return iter(self.keys())


class ReadOnlyBroadcastState(State, Generic[K, V]):
    """Broadcast state on the side that is not broadcast."""

    @abstractmethod
    def get(self, key: K) -> V | None:
        """Return the value under a key, or None."""

    @abstractmethod
    def contains(self, key: K) -> bool:
        """Return whether the state has the key."""

    @abstractmethod
    def items(self) -> Iterable[tuple[K, V]]:
        """Return all entries."""

    def immutable_entries(self) -> Iterable[MapEntry[K, V]]:
        """Return all entries, as `items` does, under Java's name and with the getters of its entries."""
        return (MapEntry(key, value) for key, value in self.items())

    @abstractmethod
    def keys(self) -> Iterable[K]:
        """Return all keys."""

    @abstractmethod
    def values(self) -> Iterable[V]:
        """Return all values."""

    @abstractmethod
    def is_empty(self) -> bool:
        """Return whether there are no entries."""

    def __getitem__(self, key: K) -> V | None:
        return self.get(key)

    def __contains__(self, key: K) -> bool:
        return self.contains(key)

    def __iter__(self) -> Iterator[K]:
        return iter(self.keys())


class BroadcastState(ReadOnlyBroadcastState[K, V]):
    """Broadcast state on the broadcast side.

    Every subtask has its own copy. The copies stay equal only if every subtask makes the same changes for the same
    broadcast records.
    """

    @abstractmethod
    def put(self, key: K, value: V) -> None:
        """Set the value under a key."""

    @abstractmethod
    def put_all(self, dict_value: dict[K, V]) -> None:
        """Set all entries of a dict."""

    @abstractmethod
    def remove(self, key: K) -> None:
        """Remove a key."""

    def entries(self) -> Iterable[MapEntry[K, V]]:
        """Return all entries. In Java a change of the result changes the state; here `put` and `remove` do."""
        return self.immutable_entries()

    def iterator(self) -> Iterator[MapEntry[K, V]]:
        """Return an iterator over all entries."""
        return iter(self.entries())

    def __setitem__(self, key: K, value: V) -> None:
        self.put(key, value)

    def __delitem__(self, key: K) -> None:
        self.remove(key)
