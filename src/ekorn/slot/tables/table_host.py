"""Hosts the partitions of resident tables that lie in one slot. It knows nothing of connections."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable
from typing import assert_never

from ekorn.errors import SlotLostError
from ekorn.faults import point
from ekorn.slot.spool import Spool, SpoolMemory
from ekorn.slot.tables.partitions import Partition, Write, new_partition
from ekorn.slot_protocol.table_messages import (
    BeginTables,
    CommitTables,
    Fence,
    LookUp,
    NamedWrite,
    ReadTable,
    TableKind,
    TablePartition,
    TableRequest,
    WriteTable,
)
from ekorn.types.by_value import dumps


class TableHost:
    """The resident tables of one slot. Thread-safe.

    Args:
        slot: The number of the slot, for errors.
        folder: Returns the folder for what exceeds the memory. Called when something does.
    """

    def __init__(self, slot: int, folder: Callable[[], str]) -> None:
        self._slot = slot
        self._folder = folder
        self._lock = threading.Lock()
        self._memory = SpoolMemory()
        self._fence: Fence | None = None  # before the first attempt
        self._kinds: tuple[TableKind, ...] = ()
        self._partitions: dict[TablePartition, Partition] = {}
        self._writes: dict[NamedWrite, Write] = {}  # since the last commit

    def answer(self, request: TableRequest) -> bytes:
        """Perform a request; return what the peer asked for.

        Raises:
            SlotLostError: The request is of another attempt or another superstep than the tables.
        """
        with self._lock:
            match request:
                case BeginTables():
                    self._begin(request)
                case CommitTables(fence, writes):
                    self._check(fence)
                    self._commit(writes)
                case WriteTable(fence, write, part):
                    self._check(fence)
                    self._write(write, part)
                case LookUp(fence, target, keys):
                    self._check(fence)
                    return dumps(self._partition(target).look_up(pickle.loads(keys)))
                case ReadTable(fence, target, number):
                    point("table-read", self._slot)
                    self._check(fence)
                    return self._partition(target).part(number)
                case _:
                    assert_never(request)
            return b""

    def close(self) -> None:
        """Drop all tables."""
        with self._lock:
            self._drop()
            self._fence = None

    def _begin(self, request: BeginTables) -> None:
        self._drop()
        self._memory.limit_bytes = request.memory_bytes
        self._kinds = request.kinds
        self._fence = Fence(request.attempt, 0)

    def _check(self, fence: Fence) -> None:
        if fence != self._fence:
            raise SlotLostError(self._slot, f"it hosts the tables of {self._fence}, not of {fence}")

    def _write(self, write: NamedWrite, part: bytes) -> None:
        point("table-write", self._slot)
        found = self._writes.get(write)
        if found is None:
            found = self._writes[write] = Write(Spool(self._memory, self._folder))
        if part:
            found.add(part)

    def _commit(self, writes: tuple[NamedWrite, ...]) -> None:
        assert self._fence is not None, "checked before"
        point("table-commit", self._slot)
        for named in writes:
            write = self._writes.pop(named, None)
            if write is None:
                raise SlotLostError(self._slot, f"it has no write {named.token} to {named.target}")
            self._partition(named.target).apply(write)
        self._drop_writes()
        self._fence = Fence(self._fence.attempt, self._fence.commits + 1)

    def _partition(self, target: TablePartition) -> Partition:
        found = self._partitions.get(target)
        if found is None:
            found = self._partitions[target] = new_partition(self._kinds[target.table])
        return found

    def _drop(self) -> None:
        for partition in self._partitions.values():
            partition.close()
        self._partitions = {}
        self._drop_writes()

    def _drop_writes(self) -> None:
        for write in self._writes.values():
            write.close()
        self._writes = {}
