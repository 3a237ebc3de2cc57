"""Broadcast state in memory: one map per subtask, which one side of an operator writes and the other reads.

Values are kept by value: changing a value that was read does not change the map.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

from ekorn.errors import UnsupportedOperationError
from ekorn.functions.state.state_handles import BroadcastState, ReadOnlyBroadcastState
from ekorn.state.declared import Declaration
from ekorn.state.operator_state_files import Mode
from ekorn.types.by_value import dumps


class _Entries(ReadOnlyBroadcastState[Any, Any]):
    """Read a map, which several handles may share."""

    __slots__ = ("_entries", "_find", "_key_of", "_loaded", "_name", "declared")

    def __init__(self, declared: Declaration, entries: dict[Any, Any]) -> None:
        assert declared.map_key is not None, "broadcast state is declared by a map"
        self.declared = declared
        self._name = declared.info.name
        self._entries = entries
        self._loaded = declared.value.loaded
        self._find = declared.map_key.lookup
        self._key_of = declared.map_key.loaded

    def get(self, key: Any) -> Any:  # hot
        kept = self._entries.get(self._find(key))
        return self._loaded(kept) if type(kept) is bytearray else kept

    def contains(self, key: Any) -> bool:
        return self._find(key) in self._entries

    def items(self) -> Iterator[tuple[Any, Any]]:  # hot
        loaded, key_of = self._loaded, self._key_of
        return iter([(key_of(k), loaded(v)) for k, v in self._entries.items()])

    def keys(self) -> Iterator[Any]:
        return iter([self._key_of(k) for k in self._entries])

    def values(self) -> Iterator[Any]:
        return iter([self._loaded(v) for v in self._entries.values()])

    def is_empty(self) -> bool:
        return not self._entries


class BroadcastView(_Entries):
    """The map for the side that is not broadcast. A write is refused and says where writing is allowed."""

    def put(self, key: Any, value: Any) -> NoReturn:
        """Refuse the call: this side may only read."""
        self._refuse("put")

    def put_all(self, dict_value: dict[Any, Any]) -> NoReturn:
        """Refuse the call: this side may only read."""
        self._refuse("put_all")

    def remove(self, key: Any) -> NoReturn:
        """Refuse the call: this side may only read."""
        self._refuse("remove")

    def clear(self) -> NoReturn:
        """Refuse the call: this side may only read."""
        self._refuse("clear")

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        self._refuse("[]=")

    def __delitem__(self, key: Any) -> NoReturn:
        self._refuse("del")

    def _refuse(self, call: str) -> NoReturn:
        raise UnsupportedOperationError(
            f"{call}: broadcast state {self._name!r} can only be read here; change it in process_broadcast_element, "
            "which every subtask calls with the same records, so that all of them hold the same"
        )


class BroadcastStore(_Entries, BroadcastState[Any, Any]):
    """The map for the broadcast side, and for checkpoints."""

    mode: Mode = "broadcast"

    def __init__(self, declared: Declaration) -> None:
        super().__init__(declared, {})
        assert declared.map_key is not None, "broadcast state is declared by a map"
        self._map_key = declared.map_key
        self._stored = declared.value.stored

    def load(self, entries: Iterable[tuple[Any, Any]]) -> None:
        """Load restored entries in their kept form."""
        self._entries.update(entries)

    def put(self, key: Any, value: Any) -> None:
        self._entries[self._map_key.stored(key)] = self._stored(value)

    def put_all(self, dict_value: dict[Any, Any]) -> None:
        given = dict(dict_value or ())
        self._entries.update({self._map_key.stored(key): self._stored(value) for key, value in given.items()})

    def remove(self, key: Any) -> None:
        self._entries.pop(self._find(key), None)

    def clear(self) -> None:
        self._entries.clear()

    def view(self) -> BroadcastView:
        """Return a handle that reads the same map."""
        return BroadcastView(self.declared, self._entries)

    def elements(self) -> list[Any]:
        """Return the entries, their keys and values as bytes."""
        key = self._map_key.as_bytes
        return [(key(k), bytes(v) if type(v) is bytearray else dumps(v)) for k, v in self._entries.items()]
