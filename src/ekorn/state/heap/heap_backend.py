"""The heap backend: keyed state in dictionaries, one `Table` per state."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from ekorn.clock import Clock, SystemClock
from ekorn.errors import StateError
from ekorn.functions.state.state_ttl import StateTtlConfig
from ekorn.keygroups import KeyGroupRange, user_key
from ekorn.state.declared import Declaration
from ekorn.state.evolution.restore_checks import migrate
from ekorn.state.heap.change_log import ChangeLog, FullTables
from ekorn.state.heap.expiry import expire
from ekorn.state.heap.heap_timers import HeapTimers
from ekorn.state.keyed_backend import CapturedState, KeyedStateBackend, KeyedStates, Translate
from ekorn.state.kinds import Handles, StateKind
from ekorn.state.restored_tables import ReadTables, read_tables
from ekorn.state.snapshots import WINDOWED, OperatorRestore, StateInfo
from ekorn.state.table import Table, ignore_change
from ekorn.state.table_states import TableStates
from ekorn.state.ttl_handles import Expiry
from ekorn.storage.file_store import FileStore


class HeapTables:
    """The tables of one operator on the heap."""

    def __init__(self, backend: KeyedStateBackend, *, tracked: bool, clock: Clock) -> None:
        self.tracked = tracked
        self.clock = clock
        self.backend = backend
        self.by_name: dict[str, Table] = {}
        self.restored: dict[str, StateInfo] = {}
        self.operator = ""

    def table(self, declared: Declaration) -> Table:
        """Return the table of a state; create it on first use.

        Raises:
            StateError: A state of this name is declared differently.
        """
        info = declared.info
        table = self.by_name.get(info.name)
        if table is None:
            table = self.by_name[info.name] = Table(info, tracked=self.tracked)
        if table.declared is None:
            self.take_over(table, declared)
        elif table.declared.info != info:
            raise StateError(
                f"state {info.name!r} is declared twice: as {table.info.summary} and as {info.summary}; "
                f"give the second one another name"
            )
        return table

    def handles(self, kind: StateKind) -> Handles:
        """Return the handles on the tables of a kind of state."""
        return kind.handles

    def take_over(self, table: Table, declared: Declaration) -> None:
        """Convert the restored entries of a table to what the job declares."""
        migration = migrate(self.restored.get(declared.info.name), declared, self.operator)
        if migration is not None:
            table.load({address: migration.entry(entry) for address, entry in table.data.items()})
            if table.mark is not ignore_change:
                table.changed.update(table.data)
        table.info, table.declared = declared.info, declared

    def expire(self, table: Table, config: StateTtlConfig) -> Expiry:
        """Apply a time to live to a table and return what its handle needs to know."""
        return expire(table, config, self.clock, self.backend.every_record)


class HeapStateBackend(TableStates, KeyedStateBackend):
    """Keyed state of one operator in one subtask, in memory."""

    def __init__(
        self, *, tracked: bool, incremental: bool = True, clock: Clock | None = None, read: ReadTables = read_tables
    ) -> None:
        KeyedStateBackend.__init__(self)
        tables = HeapTables(self, tracked=tracked, clock=clock or SystemClock())
        TableStates.__init__(self, tables, self.cell)
        self.heap = tables
        self._log = ChangeLog(incremental=incremental)
        self._read = read

    @property
    def tracked(self) -> bool:
        return self.heap.tracked

    def in_windows(self, prefix: str) -> KeyedStates:
        return TableStates(self.heap, self.window_cell, prefix, WINDOWED)

    def adopt(self, table: Table) -> None:
        info = table.info
        restored = self.heap.by_name.get(info.name) or Table(info, tracked=False)
        declared = Declaration(info, table.codec(), None, self.key_type)
        self.heap.take_over(restored, declared)
        self.heap.by_name[info.name] = table
        table.info, table.declared = declared.info, declared
        table.load(restored.data)

    def timers(self, name: str, *, windowed: bool) -> HeapTimers:
        timers = HeapTimers(name, tracked=self.tracked, windowed=windowed)
        self.adopt(timers)
        return timers

    def on_heap(self) -> dict[str, Collection[Any]]:
        return {name: table.in_memory() for name, table in list(self.heap.by_name.items())}

    def has_entries(self, state_name: str) -> bool:
        table = self.heap.by_name.get(state_name)
        return table is not None and bool(table.data)

    def keys(self, state_name: str) -> Iterator[Any]:
        table = self.heap.by_name.get(state_name)
        return iter(()) if table is None else iter([user_key(k) for k in table.data])

    def keys_of(self, state_names: Collection[str]) -> Iterator[Any]:
        tables = [self.heap.by_name[name] for name in state_names if name in self.heap.by_name]
        return iter(dict.fromkeys(key for table in tables for key in table.data))

    def entries(self, state_name: str) -> Iterator[tuple[Any, Any]]:
        table = self.heap.by_name.get(state_name)
        if table is None:
            return iter(())
        leave_out, table.leave_out = table.leave_out, None
        whole = table.whole()
        table.leave_out = leave_out
        return zip(whole.keys, whole.values, strict=True)

    def entry(self, state_name: str, key: Any) -> Any:
        return self.heap.by_name[state_name].data.get(key)

    def declaration(self, state_name: str) -> Declaration:
        declared = self.heap.by_name[state_name].declared
        assert declared is not None, "the program has asked for the state"
        return declared

    def drop_all(self) -> None:
        for table in self.heap.by_name.values():
            table.drop()

    def snapshot(self, checkpoint_id: int) -> CapturedState:
        return self._log.capture(checkpoint_id, self.heap.by_name)

    def full_snapshot(self, checkpoint_id: int) -> CapturedState:
        return FullTables([table.whole() for table in self.heap.by_name.values()])

    def snapshot_completed(self, checkpoint_id: int) -> None:
        self._log.completed(checkpoint_id)

    def restore(
        self,
        restored: OperatorRestore,
        store: FileStore,
        key_groups: KeyGroupRange,
        translate: Translate | None = None,
    ) -> None:
        self.expect(restored)
        tables = {table.info.name: table for table in self._read(restored, store, key_groups)}
        if translate is not None:
            translate(tables)
        for info, entries in tables.values():
            self.load(info, entries)

    def expect(self, restored: OperatorRestore) -> None:
        """Store the descriptions from the checkpoint, to compare them with what the job declares."""
        self.heap.restored = restored.keyed_infos()
        self.heap.operator = restored.label

    def load(self, info: StateInfo, entries: dict[Any, Any]) -> None:
        """Take over the restored entries of a state that the job has not asked for yet."""
        assert info.name not in self.heap.by_name, "restore is called once, before any state is asked for"
        self.heap.restored.setdefault(info.name, info)
        table = self.heap.by_name[info.name] = Table(info, tracked=self.heap.tracked)
        table.data = entries

    def undeclared(self) -> tuple[str, ...]:
        return tuple(name for name, table in self.heap.by_name.items() if table.declared is None)

    def infos(self) -> tuple[StateInfo, ...]:
        return tuple(t.saved_as() for t in self.heap.by_name.values())

    def close(self) -> None:
        self.heap.by_name.clear()
        self._handles.clear()
