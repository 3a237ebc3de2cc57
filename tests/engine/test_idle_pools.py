"""Slots of an iteration that has ended serve the next one, hold nothing meanwhile, and end after a while."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from ekorn.config.settings.deployment_settings import PythonDependencies
from ekorn.engine.slots.idle_pools import IdlePools, PoolKind, ReusedSlotPool
from ekorn.engine.slots.resident_tables import ResidentTables
from ekorn.engine.slots.slot_handle import Heartbeat, SlotHandle
from ekorn.engine.spark.task_side.table_access import TableAccess
from ekorn.errors import SlotLostError
from ekorn.slot_protocol.messages import Request
from ekorn.slot_protocol.table_messages import TableKind, TablePartition
from ekorn.types.by_value import dumps

pytestmark = pytest.mark.long

KIND = PoolKind.of_this_driver(1, PythonDependencies(), Heartbeat())


@pytest.fixture
def idle() -> Iterator[IdlePools]:
    pools = IdlePools(seconds=600)
    yield pools
    pools.end_all()


def started(idle: IdlePools, kind: PoolKind = KIND) -> tuple[ReusedSlotPool, ResidentTables]:
    pool = idle.take(kind)
    tables = ResidentTables(pool, [TableKind.BAG], 1 << 20)
    tables.begin()
    return pool, tables


def pids(pool: ReusedSlotPool) -> list[int]:
    return [slot.process.pid for slot in pool.slots]


def is_gone(pid: int) -> bool:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False


def test_the_next_iteration_uses_the_same_slots_and_finds_them_empty(idle: IdlePools) -> None:
    pool, tables = started(idle)
    zombie = TableAccess(tables.addresses, tables.secret, tables.fence)
    write = zombie.new_write(TablePartition(0, 0))
    zombie.write_part(write, dumps([1, 2]))
    tables.commit([write])
    tables.close()
    again, its_tables = started(idle)
    assert pids(again) == pids(pool)
    access = TableAccess(its_tables.addresses, its_tables.secret, its_tables.fence)
    assert list(access.read(TablePartition(0, 0))) == []
    with pytest.raises(SlotLostError, match="hosts the tables of"):
        zombie.write_part(write, dumps([3]))  # a task of the first iteration that Spark gave up
    its_tables.close()


def test_two_iterations_at_a_time_have_slots_of_their_own(idle: IdlePools) -> None:
    (first, its_tables), (second, other_tables) = started(idle), started(idle)
    assert not set(pids(first)) & set(pids(second))
    its_tables.close()
    other_tables.close()


def test_slots_of_another_kind_are_not_used(idle: IdlePools) -> None:
    pool, tables = started(idle)
    tables.close()
    other, other_tables = started(idle, replace(KIND, import_path=("/elsewhere",)))
    assert not set(pids(pool)) & set(pids(other))
    other_tables.close()


def test_a_pool_that_lost_a_slot_is_not_kept(idle: IdlePools) -> None:
    pool, tables = started(idle)
    (pid,) = pids(pool)
    os.kill(pid, signal.SIGKILL)
    tables.close()
    again, its_tables = started(idle)
    assert again is not pool
    assert pids(again) != [pid]
    its_tables.close()


def test_a_slot_that_dies_while_it_is_idle_is_replaced(idle: IdlePools) -> None:
    pool, tables = started(idle)
    (pid,) = pids(pool)
    tables.close()
    os.kill(pid, signal.SIGKILL)
    assert is_gone(pid)
    again, its_tables = started(idle)
    assert pids(again) != [pid]
    its_tables.close()


def test_idle_slots_end_after_a_while() -> None:
    idle = IdlePools(seconds=0.05)
    pool, tables = started(idle)
    (pid,) = pids(pool)
    tables.close()
    assert is_gone(pid)


def test_all_idle_slots_end_with_the_driver(idle: IdlePools) -> None:
    pool, tables = started(idle)
    (pid,) = pids(pool)
    tables.close()
    idle.end_all()
    assert is_gone(pid)


def test_slots_that_cannot_drop_their_data_end() -> None:
    class Unable:
        """A slot that answers with an error."""

        process = SimpleNamespace(alive=True)

        def tell(self, request: Request) -> None:
            """Do nothing: the answer is the same to all."""

        def answer(self) -> Exception:
            return OSError("no space left")

        def close(self) -> None:
            self.closed = True

    idle = IdlePools(seconds=600)
    pool, slot = ReusedSlotPool(KIND, idle), Unable()
    pool.slots = cast(list[SlotHandle], [slot])
    with pytest.raises(OSError, match="no space left"):
        pool.shutdown()
    assert slot.closed
    assert not os.path.exists(pool.folder)
