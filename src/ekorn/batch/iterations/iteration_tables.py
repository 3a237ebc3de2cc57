"""The resident tables of an iteration, as its plan refers to them: by number, before the slots exist."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ekorn.batch.plan.data_set_specs import InputSplit
from ekorn.batch.plan.partitioning import Partitioning
from ekorn.batch.tasks.table_operators import TableSplit, Written
from ekorn.engine.slots.resident_tables import ResidentTables
from ekorn.engine.slots.slot_pool import SlotPool
from ekorn.engine.spark.task_side.table_access import TableAccess
from ekorn.errors import SlotLostError
from ekorn.slot_protocol.table_messages import TableKind, TablePartition

__all__ = ["IterationTables", "TableSource"]


class IterationTables:
    """The tables of one iteration. Tables are added while the plan of a superstep is made, and start empty.

    Attributes:
        partitionings: What is known of the partitions of tables that are read as a source.
    """

    def __init__(self) -> None:
        self._kinds: list[TableKind] = []
        self._resident: ResidentTables | None = None
        self.partitionings: dict[int, Partitioning] = {}

    def add(self, kind: TableKind) -> int:
        """Add a table; return its number."""
        self._kinds.append(kind)
        return len(self._kinds) - 1

    def start(self, pool: SlotPool, memory_bytes: int) -> None:
        """Take over the slots that will hold the tables."""
        self._resident = ResidentTables(pool, self._kinds, memory_bytes)

    def begin(self) -> None:
        """Begin an attempt of the iteration with empty tables."""
        self._started.begin()

    def access(self) -> TableAccess:
        """Return what the tasks of the next Spark job need to reach the tables."""
        started = self._started
        return TableAccess(started.addresses, started.secret, started.fence)

    def commit(self, written: Iterable[Written]) -> None:
        """Let what the tasks of a Spark job wrote take effect."""
        self._started.commit(write for each in written for write in each.writes)

    def lost(self) -> SlotLostError | None:
        """Return the error of a slot that is gone, or None if all are there."""
        return self._started.lost()

    def close(self) -> None:
        """End the slots."""
        if self._resident is not None:
            self._resident.close()

    @property
    def _started(self) -> ResidentTables:
        assert self._resident is not None, "start() comes first"
        return self._resident


@dataclass(frozen=True, eq=False)
class TableSource:
    """A table as the source of a plan. Each run reads the table as it is then."""

    tables: IterationTables
    table: int

    @property
    def partitioning(self) -> Partitioning | None:
        """Return what is known of the table's partitions."""
        return self.tables.partitionings.get(self.table)

    def splits(self, parallelism: int, parameters: Mapping[str, str]) -> Sequence[InputSplit]:
        """Return one split for each partition of the table."""
        access = self.tables.access()
        return [TableSplit(access, TablePartition(self.table, number)) for number in range(parallelism)]
