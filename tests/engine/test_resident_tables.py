"""Resident tables in slot processes: a lost slot ends the attempt, and the slots end with the tables."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from ekorn.config.settings.deployment_settings import PythonDependencies
from ekorn.engine.slots.local_pool import LocalSlotPool
from ekorn.engine.slots.resident_tables import ResidentTables
from ekorn.engine.spark.task_side.table_access import TableAccess
from ekorn.errors import SlotLostError
from ekorn.slot_protocol.table_messages import TableKind, TablePartition
from ekorn.types.by_value import dumps


@pytest.fixture
def tables() -> Iterator[ResidentTables]:
    pool = LocalSlotPool(2, PythonDependencies())
    pool.begin_start()
    tables = ResidentTables(pool, [TableKind.SOLUTION], 1 << 20)
    yield tables
    tables.close()


def fill(tables: ResidentTables) -> None:
    access = TableAccess(tables.addresses, tables.secret, tables.fence)
    writes = [access.new_write(TablePartition(0, partition)) for partition in range(3)]
    for write in writes:
        key = write.target.partition
        access.write_part(write, dumps(([key], [(key, "x")])))
    tables.commit(writes)


def elements(tables: ResidentTables) -> list[tuple[int, str]]:
    access = TableAccess(tables.addresses, tables.secret, tables.fence)
    return [element for p in range(3) for element in access.read(TablePartition(0, p))]


def test_a_lost_slot_is_replaced_and_all_tables_begin_anew(tables: ResidentTables) -> None:
    tables.begin()
    fill(tables)
    assert elements(tables) == [(0, "x"), (1, "x"), (2, "x")]
    assert tables.lost() is None
    os.kill(tables.slot_pids[1], signal.SIGKILL)
    with pytest.raises(SlotLostError, match=r"slot 1 .*killed by signal 9"):
        tables.commit([])
    lost = tables.lost()
    assert lost is not None
    assert lost.slot == 1
    tables.begin()
    assert elements(tables) == []
    fill(tables)
    assert elements(tables) == [(0, "x"), (1, "x"), (2, "x")]


def test_the_slots_end_with_the_tables(tables: ResidentTables) -> None:
    tables.begin()
    pids = tables.slot_pids
    tables.close()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
