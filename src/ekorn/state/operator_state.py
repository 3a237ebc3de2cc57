"""Operator state in memory: lists and broadcast maps that belong to a subtask and not to a key.

One side of an operator writes a broadcast map, the other side reads it. Values are kept by value: changing a value that
was read does not change the state.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NoReturn

from ekorn.errors import StateError, UnsupportedOperationError
from ekorn.functions.state.state_descriptors import ListStateDescriptor, MapStateDescriptor
from ekorn.functions.state.state_handles import BroadcastState, ListState, ReadOnlyBroadcastState
from ekorn.functions.state.state_stores import OperatorStateStore
from ekorn.state.codecs import Codec
from ekorn.state.declared import Declaration, declare
from ekorn.state.evolution.restore_checks import migrate
from ekorn.state.operator_state_files import Mode, OperatorState
from ekorn.state.raw_state import is_raw, raw_info
from ekorn.state.snapshots import StateInfo
from ekorn.state.table_handles import list_elements, none_in_list
from ekorn.types.by_value import dumps

KINDS_OF_MODES: dict[Mode, str] = {"split": "list-split", "union": "list-union", "broadcast": "broadcast"}


class OperatorStates(OperatorStateStore):
    """All operator state of one operator in one subtask.

    A restored state that the program does not ask for is kept, and written again with the next checkpoint. Raw state is
    not kept: each checkpoint contains only what the functions wrote for it.
    """

    def __init__(
        self, restored: OperatorState | None = None, saved: Sequence[StateInfo] = (), operator: str = ""
    ) -> None:
        """Start with restored state, or empty.

        Args:
            restored: The restored state of this subtask.
            saved: The descriptions of the states in the checkpoint.
            operator: The name of the operator, for messages.
        """
        self._restored: OperatorState = {n: state for n, state in (restored or {}).items() if not is_raw(n)}
        self.restored_raw: OperatorState = {n: state for n, state in (restored or {}).items() if is_raw(n)}
        self._raw: OperatorState = {}  # what functions wrote for the snapshot in progress
        self._raw_infos: tuple[StateInfo, ...] = ()
        self._saved = {info.name: info for info in saved if info.of_subtask}
        self._operator = operator
        self._states: dict[str, _ListStore | BroadcastStore] = {}

    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        return self._list(state_descriptor, "split")

    def get_union_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        return self._list(state_descriptor, "union")

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastStore:
        declared = self._declared(state_descriptor, "broadcast")
        found = self._states.get(state_descriptor.name)
        if found is None:
            found = self._states[state_descriptor.name] = BroadcastStore(declared)
            found.load(self._take(declared, "broadcast"))
        self._check_same(found, declared)
        assert isinstance(found, BroadcastStore), "the kind has just been compared"
        return found

    def get_registered_state_names(self) -> set[str]:
        return {name for name, mode in self._modes() if mode != "broadcast"}

    def get_registered_broadcast_state_names(self) -> set[str]:
        return {name for name, mode in self._modes() if mode == "broadcast"}

    def _modes(self) -> Iterator[tuple[str, Mode]]:
        yield from ((name, mode) for name, (mode, _) in self._restored.items())
        yield from ((name, state.mode) for name, state in self._states.items())

    def undeclared(self) -> tuple[str, ...]:
        """Return the names of restored states that the job has not asked for yet."""
        return tuple(self._restored)

    def infos(self) -> tuple[StateInfo, ...]:
        """Return a description of every state."""
        waiting = [
            self._saved.get(name, StateInfo(name, KINDS_OF_MODES[mode])) for name, (mode, _) in self._restored.items()
        ]
        return (*waiting, *(state.declared.saved_as() for state in self._states.values()), *self._raw_infos)

    def snapshot(self) -> OperatorState:
        """Return the elements of every state, each as bytes. Raw state is handed over and no longer kept."""
        raw, self._raw = self._raw, {}
        return self._restored | {name: (state.mode, state.elements()) for name, state in self._states.items()} | raw

    def on_heap(self) -> dict[str, Collection[Any]]:
        """Return the elements of each state, by its name."""
        return {name: state.kept for name, state in list(self._states.items())}

    def set_raw(self, written: OperatorState) -> None:
        """Replace the raw state by what functions wrote for the snapshot in progress."""
        self._raw = written
        self._raw_infos = tuple(raw_info(name, mode) for name, (mode, _) in written.items())

    def _list(self, descriptor: ListStateDescriptor, mode: Mode) -> ListState[Any]:
        declared = self._declared(descriptor, mode)
        found = self._states.get(descriptor.name)
        if found is None:
            kept = [element for (element,) in self._take(declared, mode)]
            found = self._states[descriptor.name] = _ListStore(declared, mode, kept)
        self._check_same(found, declared)
        assert isinstance(found, _ListStore), "the kind has just been compared"
        return found

    @staticmethod
    def _declared(descriptor: ListStateDescriptor | MapStateDescriptor, mode: Mode) -> Declaration:
        if is_raw(descriptor.name):
            raise StateError(
                f"operator state {descriptor.name!r} has a name that is reserved for raw state: give it another name"
            )
        # Flink: accepts a time to live and ignores it. A program that sets one expects the state to stay small.
        if descriptor.ttl_config is not None:
            raise StateError(
                f"operator state {descriptor.name!r} has a time to live, which only keyed state can have; "
                f"use keyed state, or remove old elements yourself"
            )
        return declare(descriptor, KINDS_OF_MODES[mode])

    @staticmethod
    def _check_same(found: _ListStore | BroadcastStore, declared: Declaration) -> None:
        if found.declared.info != declared.info:
            raise StateError(
                f"operator state {declared.info.name!r} is declared twice: as {found.declared.info.summary} and as "
                f"{declared.info.summary}; give the second one another name"
            )

    def _take(self, declared: Declaration, mode: Mode) -> Iterable[tuple[Any, ...]]:
        """Take the restored elements of a state, or its keys and values, in their kept form."""
        name = declared.info.name
        saved_mode, elements = self._restored.get(name, (mode, []))
        saved = self._saved.get(name)
        if saved is None and name in self._restored:
            saved = StateInfo(name, KINDS_OF_MODES[saved_mode])
        migration = migrate(saved, declared, self._operator)
        self._restored.pop(name, None)
        value = _as_restored(declared.value) if migration is None else migration.value
        if mode == "broadcast":
            assert declared.map_key is not None, "broadcast state is declared by a map"
            key = declared.map_key.restored
            return [(key(bytearray(k)), value(bytearray(v))) for k, v in elements]
        return [(value(bytearray(element)),) for element in elements]  # type: ignore[arg-type]


def _as_restored(codec: Codec) -> Any:
    """Return the function from the bytes of a value in a checkpoint to its kept form."""
    return lambda kept: codec.stored(codec.loaded(kept))


class _ListStore(ListState[Any]):
    def __init__(self, declared: Declaration, mode: Mode, elements: list[Any]) -> None:
        self.declared = declared
        self.mode = mode
        self._stored = declared.value.stored
        self._loaded = declared.value.loaded
        self._elements = elements

    def get(self) -> Iterator[Any]:
        return iter([self._loaded(e) for e in self._elements])

    def __iter__(self) -> Iterator[Any]:
        return self.get()

    def add(self, value: Any) -> None:
        if value is None:
            raise none_in_list()
        self._elements.append(self._stored(value))

    def add_all(self, values: Iterable[Any]) -> None:
        self._elements.extend(list_elements(values, self._stored))

    def update(self, values: Iterable[Any]) -> None:
        self._elements = list_elements(values, self._stored)

    def clear(self) -> None:
        self._elements = []

    @property
    def kept(self) -> Collection[Any]:
        """The elements as they are kept."""
        return self._elements

    def elements(self) -> list[Any]:
        """Return the elements as bytes."""
        return [bytes(e) if type(e) is bytearray else dumps(e) for e in self._elements]


# ------------------------------------------------------------------------------------------------------ broadcast state


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
            "which every subtask calls with the same records, so that the state stays the same in all of them"
        )


class BroadcastStore(_Entries, BroadcastState[Any, Any]):
    """The map for the broadcast side, and for checkpoints."""

    mode: Mode = "broadcast"

    def __init__(self, declared: Declaration) -> None:
        super().__init__(declared, {})
        assert declared.map_key is not None, "broadcast state is declared by a map"
        self._map_key = declared.map_key
        self._stored = declared.value.stored

    @property
    def kept(self) -> Collection[Any]:
        """The entries as they are kept."""
        return self._entries

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
