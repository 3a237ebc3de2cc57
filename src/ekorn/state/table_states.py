"""Hand out state handles on tables: one class for the heap, the base of the one for RocksDB.

The tables of either backend look alike to a handle (`table_handles.TableOfValues`), so most kinds of state use the same
handles with both backends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from ekorn.errors import QueryableNameTwice, StateError
from ekorn.functions.record_functions import FoldFunction, ReduceFunction
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
from ekorn.functions.state.state_ttl import StateTtlConfig
from ekorn.state.declared import Declaration, declare, says_the_same
from ekorn.state.expiry import Expiry
from ekorn.state.keyed_backend import KeyedStateBackend, KeyedStates
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

H = TypeVar("H")


class Tables(Protocol):
    """The tables of one operator in one backend."""

    backend: KeyedStateBackend

    def table(self, declared: Declaration) -> Any:
        """Return the table of a state; create it on first use.

        Raises:
            StateError: A state of this name is declared differently.
        """

    def expire(self, table: Any, kind: str, config: StateTtlConfig) -> Expiry:
        """Apply a time to live to a table and return what its handle needs to know."""


class TableStates(KeyedStates):
    """Hand out handles on tables: per key, or per key and window."""

    def __init__(self, tables: Tables, cell: list[Any], name_prefix: str = "", kind_prefix: str = "") -> None:
        self._tables = tables
        self._cell = cell
        self._name_prefix = name_prefix
        self._kind_prefix = kind_prefix
        self._handles: dict[str, Any] = {}
        self._asked_with: dict[str, StateDescriptor] = {}

    def value_state(self, descriptor: ValueStateDescriptor) -> ValueState[Any]:
        return self._handle(
            descriptor,
            "value",
            lambda t: TableValueState(self._cell, t, descriptor.default_value),
            lambda t, expiry: TtlValueState(self._cell, t, expiry),
        )

    def list_state(self, descriptor: ListStateDescriptor) -> ListState[Any]:
        return self._handle(
            descriptor,
            "list",
            lambda t: TableListState(self._cell, t),
            lambda t, expiry: TtlListState(self._cell, t, expiry),
        )

    def map_state(self, descriptor: MapStateDescriptor) -> MapState[Any, Any]:
        return self._handle(
            descriptor,
            "map",
            lambda t: TableMapState(self._cell, t),
            lambda t, expiry: TtlMapState(self._cell, t, expiry),
        )

    def reducing_state(self, descriptor: ReducingStateDescriptor) -> ReducingState[Any]:
        reduce = descriptor.get_reduce_function()
        call = reduce.reduce if isinstance(reduce, ReduceFunction) else reduce
        return self._handle(
            descriptor,
            "reducing",
            lambda t: TableReducingState(self._cell, t, call),
            lambda t, expiry: TtlReducingState(self._cell, t, expiry, call),
        )

    def aggregating_state(self, descriptor: AggregatingStateDescriptor) -> AggregatingState[Any, Any]:
        function = descriptor.get_agg_function()
        return self._handle(
            descriptor,
            "aggregating",
            lambda t: TableAggregatingState(self._cell, t, function),
            lambda t, expiry: TtlAggregatingState(self._cell, t, expiry, function),
        )

    def folding_state(self, descriptor: FoldingStateDescriptor) -> FoldingState[Any, Any]:
        fold = descriptor.get_fold_function()
        call = fold.fold if isinstance(fold, FoldFunction) else fold
        initial = descriptor.initial_value
        return self._handle(
            descriptor,
            "folding",
            lambda t: TableFoldingState(self._cell, t, call, initial),
            lambda t, expiry: TtlFoldingState(self._cell, t, expiry, call, initial),
        )

    def _handle(
        self,
        descriptor: StateDescriptor,
        kind: str,
        make: Callable[[Any], H],
        make_expiring: Callable[[Any, Expiry], H],
    ) -> H:
        handle: H | None = self._handles.get(descriptor.name)
        if handle is not None and says_the_same(self._asked_with.get(descriptor.name), descriptor):
            return handle  # some functions ask for their state with every record
        tables = self._tables
        name = self._name_prefix + descriptor.name
        table = tables.table(declare(descriptor, self._kind_prefix + kind, tables.backend.key_type, name))
        self._asked_with[descriptor.name] = descriptor
        if descriptor.queryable_name is not None:
            self._make_queryable(descriptor.queryable_name, descriptor)
        if handle is None:
            config = descriptor.ttl_config
            if config is None:
                handle = make(table)
            else:
                handle = make_expiring(table, tables.expire(table, kind, config))
            self._handles[descriptor.name] = handle
        return handle

    def _make_queryable(self, queryable_name: str, descriptor: StateDescriptor) -> None:
        if self._kind_prefix:
            raise StateError(
                f"state {descriptor.name!r} has a value for each key and window, and cannot be queried by key alone"
            )
        known = self._tables.backend.queryable.setdefault(queryable_name, descriptor)
        if known.name != descriptor.name:
            raise QueryableNameTwice(queryable_name, f"state {known.name!r} and state {descriptor.name!r}")
