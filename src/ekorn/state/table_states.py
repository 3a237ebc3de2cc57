"""Hand out state handles on tables: the same for both backends, and for every kind of state.

The backend's `Tables` make the tables and choose the handles on them; `kinds.py` has the kinds.
"""

from __future__ import annotations

from typing import Any, Protocol

from ekorn.errors import QueryableNameTwice, StateError
from ekorn.functions.state.state_descriptors import StateDescriptor
from ekorn.functions.state.state_ttl import StateTtlConfig
from ekorn.state.declared import Declaration, declare, says_the_same
from ekorn.state.keyed_backend import KeyedStateBackend, KeyedStates
from ekorn.state.kinds import KINDS, Handles, StateKind
from ekorn.state.ttl_handles import Expiry


class Tables(Protocol):
    """The tables of one operator in one backend."""

    backend: KeyedStateBackend

    def table(self, declared: Declaration) -> Any:
        """Return the table of a state; create it on first use.

        Raises:
            StateError: A state of this name is declared differently.
        """

    def handles(self, kind: StateKind) -> Handles:
        """Return the handles on the tables of a kind of state."""

    def expire(self, table: Any, config: StateTtlConfig) -> Expiry:
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

    def state(self, descriptor: StateDescriptor) -> Any:
        name = descriptor.name
        handle = self._handles.get(name)
        if handle is not None and says_the_same(self._asked_with.get(name), descriptor):
            return handle  # some functions ask for their state with every record
        tables, kind = self._tables, KINDS[descriptor.kind]
        declared = declare(descriptor, self._kind_prefix + kind.name, tables.backend.key_type, self._name_prefix + name)
        table = tables.table(declared)
        self._asked_with[name] = descriptor
        if descriptor.queryable_name is not None:
            self._make_queryable(descriptor.queryable_name, descriptor)
        if handle is None:
            handles, config = tables.handles(kind), descriptor.ttl_config
            if config is None:
                handle = handles.lasting(self._cell, table, descriptor)
            else:
                handle = handles.expiring(self._cell, table, descriptor, tables.expire(table, config))
            self._handles[name] = handle
        return handle

    def _make_queryable(self, queryable_name: str, descriptor: StateDescriptor) -> None:
        if self._kind_prefix:
            raise StateError(
                f"state {descriptor.name!r} has a value for each key and window, and cannot be queried by key alone"
            )
        known = self._tables.backend.queryable.setdefault(queryable_name, descriptor)
        if known.name != descriptor.name:
            raise QueryableNameTwice(queryable_name, f"state {known.name!r} and state {descriptor.name!r}")
