"""The table of kinds of keyed state: everything that depends on the kind of a state is looked up here.

A row of `KINDS` says how a kind is kept, read, written, timed and queried. Three other tables have columns for code
that this one must not import, by the same names:

    rocksdb/handles.py                  the table in RocksDB and the handles on it, if they are not those of the heap
    queryable/immutable_states.py       the handle that a client of a query gets
    state_processor/entry_columns.py    the columns of rows, for each shape of entries

docs/extending.md says how to add a kind.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import methodcaller
from typing import Any, NamedTuple

from ekorn.functions.state.state_descriptors import (
    AggregatingStateDescriptor,
    FoldingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from ekorn.functions.state.state_handles import (
    AggregatingState,
    FoldingState,
    ListState,
    MapState,
    ReducingState,
    ValueState,
)
from ekorn.state.entry_shapes import LIST, MAP, ONE_VALUE, PANE, SESSIONS, Convert, DeclaredShape, EntryShape
from ekorn.state.snapshots import WINDOWED
from ekorn.state.table_handles import (
    TableAggregatingState,
    TableFoldingState,
    TableListState,
    TableMapState,
    TableReducingState,
    TableValueState,
)
from ekorn.state.ttl_handles import (
    TtlAggregatingState,
    TtlFoldingState,
    TtlListState,
    TtlMapState,
    TtlReducingState,
    TtlValueState,
)

__all__ = ["KINDS", "Handles", "StateKind", "bare_kind", "kind_of", "shape_of"]


class Handles(NamedTuple):
    """The classes of the handles on one kind of state in one backend.

    A handle is constructed with the cell of the current key, the table and the descriptor. A handle on a state that
    expires also takes an `Expiry`.
    """

    lasting: type[Any]
    expiring: type[Any]  # the handle on a state with a time to live


@dataclass(frozen=True)
class StateKind:
    """One kind of keyed state.

    Attributes:
        descriptor: The class that declares such a state; its `kind` is the name of the kind.
        interface: The class through which functions use such a state.
        shape: The shape of the entries.
        handles: The handles on heap tables.
        timed: The methods of a handle that are timed if the job asks for it, each with the word for the access in
            Flink's name of the metric.
        content: Returns the content of a handle as a plain value.
        result: Given a descriptor, returns the function from a kept value to its result; None if they are the same.
    """

    descriptor: type[StateDescriptor]
    interface: type
    shape: DeclaredShape
    handles: Handles
    timed: dict[str, str]
    content: Convert
    result: Callable[[Any], Convert] | None = None

    @property
    def name(self) -> str:
        """The name of the kind, also in checkpoints."""
        return self.descriptor.kind


_ADDING = {"get": "Get", "add": "Add", "clear": "Clear"}

_ROWS = (
    StateKind(
        ValueStateDescriptor,
        ValueState,
        ONE_VALUE,
        Handles(TableValueState, TtlValueState),
        timed={"value": "Get", "update": "Update", "clear": "Clear"},
        content=methodcaller("value"),
    ),
    StateKind(
        ListStateDescriptor,
        ListState,
        LIST,
        Handles(TableListState, TtlListState),
        timed=_ADDING | {"add_all": "AddAll", "update": "Update"},
        content=lambda handle: list(handle.get()),
    ),
    StateKind(
        MapStateDescriptor,
        MapState,
        MAP,
        Handles(TableMapState, TtlMapState),
        timed={
            "get": "Get", "put": "Put", "put_all": "PutAll", "remove": "Remove", "contains": "Contains",
            "is_empty": "IsEmpty", "items": "EntriesInit", "keys": "KeysInit", "values": "ValuesInit", "clear": "Clear",
        },
        content=lambda handle: dict(handle.items()),
    ),
    StateKind(
        ReducingStateDescriptor,
        ReducingState,
        ONE_VALUE,
        Handles(TableReducingState, TtlReducingState),
        timed=_ADDING,
        content=methodcaller("get"),
    ),
    StateKind(
        AggregatingStateDescriptor,
        AggregatingState,
        ONE_VALUE,
        Handles(TableAggregatingState, TtlAggregatingState),
        timed=_ADDING,
        content=methodcaller("get"),
        result=lambda descriptor: descriptor.agg_function.get_result,
    ),
    StateKind(
        FoldingStateDescriptor,
        FoldingState,
        ONE_VALUE,
        Handles(TableFoldingState, TtlFoldingState),
        timed=_ADDING,
        content=methodcaller("get"),
    ),
)  # fmt: skip

KINDS: dict[str, StateKind] = {kind.name: kind for kind in _ROWS}

_OF_WINDOW_OPERATORS: dict[str, EntryShape] = {"panes": PANE, "slices": PANE, "sessions": SESSIONS}


def kind_of(descriptor: object) -> StateKind | None:
    """Return the kind of state that a descriptor declares; None if it does not declare keyed state."""
    return KINDS.get(descriptor.kind) if isinstance(descriptor, StateDescriptor) else None


def bare_kind(kind: str) -> str:
    """Return the kind in the description of a state without its scope: `list` for `window-list`."""
    return kind.removeprefix(WINDOWED)


def shape_of(kind: str) -> EntryShape:
    """Return the shape of the entries of a state, by the kind in its description. Other tables have one value."""
    bare = bare_kind(kind)
    return KINDS[bare].shape if bare in KINDS else _OF_WINDOW_OPERATORS.get(bare, ONE_VALUE)
