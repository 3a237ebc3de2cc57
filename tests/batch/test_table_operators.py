"""The operators that look up resident tables and write them, against a slot in this process."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ekorn.batch.plan.data_set_specs import Order, SortField
from ekorn.batch.plan.iteration_specs import WriteTarget
from ekorn.batch.plan.record_keys import FieldKeys
from ekorn.batch.tasks.table_operators import (
    SearchedTable,
    TableCoGroup,
    TableJoin,
    TableSplit,
    WriteTables,
    Written,
)
from ekorn.batch.tasks.task_context import TaskJobInfo, TaskRuntimeContext
from ekorn.batch.tasks.task_operator import TaskOperator
from ekorn.engine.spark.task_side.table_access import TableAccess
from ekorn.links.link import Link, connect
from ekorn.slot.slot_server import SlotServer
from ekorn.slot_protocol.messages import Done
from ekorn.slot_protocol.slot_config import SlotConfig
from ekorn.slot_protocol.table_messages import BeginTables, CommitTables, Fence, TableKind, TablePartition
from ekorn.types.by_value import dumps

SECRET = b"s" * 32
SOLUTION, INDEX, BAG = range(3)
PARTITION = 1
FIRST = FieldKeys(((0,),))
SECOND = FieldKeys(((1,),))


class Slot:
    """A slot with three tables, and what the driver does to them."""

    def __init__(self, server: SlotServer) -> None:
        self._server = server
        self._control: Link = connect(server.address, SECRET)
        self._attempt = 0
        self.begin()

    def begin(self) -> None:
        self._attempt += 1
        self.fence = Fence(self._attempt, 0)
        self._tell(BeginTables(self._attempt, (TableKind.SOLUTION, TableKind.INDEX, TableKind.BAG), 1 << 20))

    def access(self) -> TableAccess:
        return TableAccess((self._server.address,), SECRET, self.fence)

    def fill(self, records: list[Any], *targets: WriteTarget) -> Written:
        (written,) = ran(WriteTables("write", self.access(), targets), records)
        self._tell(CommitTables(self.fence, written.writes))
        self.fence = Fence(self.fence.attempt, self.fence.commits + 1)
        return cast("Written", written)

    def read(self, table: int) -> list[Any]:
        return list(TableSplit(self.access(), TablePartition(table, PARTITION)).read())

    def _tell(self, request: BeginTables | CommitTables) -> None:
        self._control.send(dumps(request))
        done: Done = pickle.loads(self._control.receive())
        assert done.error is None


def ran(operator: TaskOperator, records: list[Any]) -> list[Any]:
    """Run an operator in subtask `PARTITION` of 2."""
    operator.open(TaskRuntimeContext(TaskJobInfo("0" * 32, "job"), operator, PARTITION, 2, 0))
    found = list(operator.run(iter(records)))
    operator.close()
    return found


@pytest.fixture(scope="module")
def slot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slot]:
    folder: Path = tmp_path_factory.mktemp("slot")
    server = SlotServer(SlotConfig(0, str(folder / "s"), SECRET, str(folder / "f"), []))
    server.start()
    yield Slot(server)
    server.stop()


def join(slot: Slot, table: int, records: list[Any], function: Any = None, **options: bool) -> list[Any]:
    searched = SearchedTable(slot.access(), table, SECOND, options.get("is_first", False))
    chosen = {name: options.get(name, False) for name in ("keeps_unmatched", "flat")}
    return ran(TableJoin("join", function, {}, searched, **chosen), records)


Records = st.lists(st.tuples(st.sampled_from([0, 1, 2, None]), st.integers(0, 3)), max_size=12)
shared_slot = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, *settings().suppress_health_check])


@shared_slot
@given(Records, Records)
def test_a_join_with_an_index_equals_two_loops(slot: Slot, elements: list[Any], records: list[Any]) -> None:
    slot.begin()
    slot.fill(elements, WriteTarget(INDEX, FIRST, drops_none=True))
    probing = [(value, key) for key, value in records]
    pairs = [(r, e) for r in probing for e in elements if r[1] == e[0] and e[0] is not None]
    assert Counter(join(slot, INDEX, probing)) == Counter(pairs)
    swapped = [(e, r) for r, e in pairs]
    assert Counter(join(slot, INDEX, probing, is_first=True)) == Counter(swapped)
    alone = [(r, None) for r in probing if r[1] is None or r[1] not in {e[0] for e in elements}]
    assert Counter(join(slot, INDEX, probing, keeps_unmatched=True)) == Counter(pairs + alone)
    twice = join(slot, INDEX, probing, lambda r, e: [r, e] if e[1] else None, flat=True)
    assert Counter(twice) == Counter(x for r, e in pairs if e[1] for x in (r, e))


def test_more_records_than_one_look_up_takes(slot: Slot) -> None:
    slot.begin()
    many = [(n % 7, n) for n in range(2_500)]
    slot.fill([(n, str(n)) for n in range(5)], WriteTarget(SOLUTION, FIRST))
    joined = join(slot, SOLUTION, [(n, key) for key, n in many], lambda record, element: (*record, element[1]))
    assert sorted(joined) == sorted((n, key, str(key)) for key, n in many if key < 5)


@pytest.mark.parametrize("table_first", [False, True])
def test_a_co_group_sees_each_group_of_the_records_and_the_element(slot: Slot, table_first: bool) -> None:
    slot.begin()
    slot.fill([(0, "zero"), (1, "one"), (9, "nobody asks")], WriteTarget(SOLUTION, FIRST))

    def both(first: Iterator[Any], second: Iterator[Any]) -> Iterator[Any]:
        elements, group = (list(first), list(second)) if table_first else (list(second), list(first))
        yield group[0][0], elements, [value for _, value in group]

    records = [(0, n) for n in range(2_300)] + [(5, 1)] + [(1, n) for n in range(3)]
    searched = SearchedTable(slot.access(), SOLUTION, FIRST, table_first)
    descending = (SortField((1,), Order.DESCENDING),)
    operator = TableCoGroup("group", both, {}, searched, sort=descending, memory_mb=512)
    assert sorted(ran(operator, records)) == [
        (0, [(0, "zero")], list(range(2_299, -1, -1))),
        (1, [(1, "one")], [2, 1, 0]),
        (5, [], [1]),
    ]


def test_one_pass_writes_the_delta_and_the_work_set(slot: Slot) -> None:
    slot.begin()
    records = [(n % 3, n) for n in range(20_000)]
    written = slot.fill(records, WriteTarget(SOLUTION, FIRST), WriteTarget(BAG))
    assert (written.record_count, len(written.writes)) == (20_000, 2)
    assert slot.read(BAG) == records
    assert sorted(slot.read(SOLUTION)) == [(0, 19_998), (1, 19_999), (2, 19_997)]
    assert slot.fill([], WriteTarget(BAG)).record_count == 0
    assert slot.read(BAG) == []
    assert slot.fill([1, 2]).writes == ()  # only counts
