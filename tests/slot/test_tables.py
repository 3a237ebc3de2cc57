"""Resident tables in a slot: writes take effect with the driver's commit, once, and only those it names."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekorn.engine.spark.task_side.table_access import TableAccess
from ekorn.errors import SlotLostError
from ekorn.links.link import connect
from ekorn.slot.slot_server import SlotServer
from ekorn.slot.tables.partitions import ELEMENTS_PER_PART
from ekorn.slot.tables.table_host import TableHost
from ekorn.slot_protocol.messages import Done
from ekorn.slot_protocol.slot_config import SlotConfig
from ekorn.slot_protocol.table_messages import (
    BeginTables,
    CommitTables,
    Fence,
    LookUp,
    NamedWrite,
    ReadTable,
    TableKind,
    TablePartition,
    WriteTable,
)
from ekorn.types.by_value import dumps

SECRET = b"s" * 32
KINDS = (TableKind.SOLUTION, TableKind.INDEX, TableKind.BAG)
SOLUTION, INDEX, BAG = (TablePartition(table, 0) for table in range(3))


class Tables:
    """A host, and the requests that a driver and its tasks put to it."""

    def __init__(self, folder: Path, memory_bytes: int = 1 << 20) -> None:
        self.host = TableHost(0, lambda: str(folder))
        self.begin(1, memory_bytes)

    def begin(self, attempt: int, memory_bytes: int = 1 << 20) -> None:
        self.fence = Fence(attempt, 0)
        self.host.answer(BeginTables(attempt, KINDS, memory_bytes))

    def write(self, target: TablePartition, token: str, *parts: Any, fence: Fence | None = None) -> NamedWrite:
        write = NamedWrite(target, token)
        for part in parts:
            self.host.answer(WriteTable(fence or self.fence, write, dumps(part)))
        return write

    def commit(self, *writes: NamedWrite) -> None:
        self.host.answer(CommitTables(self.fence, writes))
        self.fence = Fence(self.fence.attempt, self.fence.commits + 1)

    def look_up(self, target: TablePartition, *keys: Any, fence: Fence | None = None) -> list[Any]:
        found: list[Any] = pickle.loads(self.host.answer(LookUp(fence or self.fence, target, dumps(list(keys)))))
        return found

    def read(self, target: TablePartition) -> list[Any]:
        found: list[Any] = []
        while part := self.host.answer(ReadTable(self.fence, target, len(found))):
            found.append(pickle.loads(part))
        return [element for part in found for element in part]


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    return Tables(tmp_path)


def keyed(*elements: tuple[Any, ...]) -> tuple[Any, ...]:
    return [element[0] for element in elements], list(elements)


def test_a_delta_is_seen_after_the_commit_and_not_before(tables: Tables) -> None:
    tables.commit(tables.write(SOLUTION, "first", keyed((1, "a"), (2, "b"))))
    delta = tables.write(SOLUTION, "delta", keyed((2, "c"), (3, "d")))
    assert tables.look_up(SOLUTION, 1, 2, 3) == [((1, "a"),), ((2, "b"),), ()]
    tables.commit(delta)
    assert tables.look_up(SOLUTION, 1, 2, 3) == [((1, "a"),), ((2, "c"),), ((3, "d"),)]
    assert sorted(tables.read(SOLUTION)) == [(1, "a"), (2, "c"), (3, "d")]


def test_the_last_element_of_a_key_wins_within_a_write(tables: Tables) -> None:
    tables.commit(tables.write(SOLUTION, "t", keyed((1, "a"), (1, "b")), keyed((1, "c"))))
    assert tables.read(SOLUTION) == [(1, "c")]


def test_only_the_write_that_the_driver_names_takes_effect(tables: Tables) -> None:
    speculative = tables.write(BAG, "second run of the task", ["x", "y"])
    counted = tables.write(BAG, "first run of the task", ["x"])
    tables.commit(counted)
    assert tables.read(BAG) == ["x"]
    with pytest.raises(SlotLostError, match="no write second run"):
        tables.commit(speculative)


def test_a_bag_holds_what_was_written_last(tables: Tables) -> None:
    tables.commit(tables.write(BAG, "1", [1, 2], [3]))
    tables.commit(tables.write(BAG, "2", [4]))
    assert tables.read(BAG) == [4]
    empty = tables.write(BAG, "3")
    tables.host.answer(WriteTable(tables.fence, empty, b""))
    tables.commit(empty)
    assert tables.read(BAG) == []


def test_an_index_returns_all_elements_of_a_key(tables: Tables) -> None:
    tables.commit(tables.write(INDEX, "t", keyed((1, "a"), (2, "b"), (1, "c"))))
    assert [sorted(found) for found in tables.look_up(INDEX, 1, 2, 3)] == [[(1, "a"), (1, "c")], [(2, "b")], []]


def test_a_task_of_an_earlier_superstep_is_refused(tables: Tables) -> None:
    before = tables.fence
    tables.commit(tables.write(SOLUTION, "t", keyed((1, "a"))))
    with pytest.raises(SlotLostError):
        tables.look_up(SOLUTION, 1, fence=before)
    with pytest.raises(SlotLostError):
        tables.write(SOLUTION, "late", keyed((1, "z")), fence=before)


def test_a_new_attempt_begins_with_empty_tables_and_refuses_tasks_of_the_old_one(tables: Tables) -> None:
    tables.commit(tables.write(SOLUTION, "t", keyed((1, "a"))))
    before = tables.fence
    tables.begin(2)
    assert tables.look_up(SOLUTION, 1) == [()]
    with pytest.raises(SlotLostError):
        tables.write(SOLUTION, "late", keyed((1, "z")), fence=before)


def test_writes_beyond_the_memory_wait_on_disk(tmp_path: Path) -> None:
    tables = Tables(tmp_path, memory_bytes=100)
    tables.commit(tables.write(BAG, "t", *[[n] * 100 for n in range(20)]))
    assert tables.read(BAG) == [n for n in range(20) for _ in range(100)]


@given(st.lists(st.lists(st.tuples(st.integers(0, 9), st.integers()), max_size=5), max_size=6))
def test_a_solution_set_equals_a_dictionary(deltas: list[list[tuple[int, int]]]) -> None:
    tables, model = Tables(Path()), {}
    for number, delta in enumerate(deltas):
        assert tables.look_up(SOLUTION, *range(10)) == [(model[key],) if key in model else () for key in range(10)]
        tables.commit(tables.write(SOLUTION, str(number), keyed(*delta)))
        model.update({element[0]: element for element in delta})
    assert sorted(tables.read(SOLUTION)) == sorted(model.values())


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SlotServer]:
    started = SlotServer(SlotConfig(0, str(tmp_path / "socket"), SECRET, str(tmp_path / "f"), []))
    started.start()
    yield started
    started.stop()


def test_a_task_writes_and_reads_over_its_connection(server: SlotServer) -> None:
    control = connect(server.address, SECRET)

    def told(request: BeginTables | CommitTables) -> BaseException | None:
        control.send(dumps(request))
        done: Done = pickle.loads(control.receive())
        return done.error

    assert told(BeginTables(1, KINDS, 1 << 20)) is None
    task = TableAccess((server.address,), SECRET, Fence(1, 0))
    many = range(2 * ELEMENTS_PER_PART + 1)
    writes = task.new_write(SOLUTION), task.new_write(BAG)
    task.write_part(writes[0], dumps(([*many], [(n, "x") for n in many])))
    task.write_part(writes[1], dumps([*many]))
    assert told(CommitTables(task.fence, writes)) is None
    assert isinstance(told(CommitTables(task.fence, writes)), SlotLostError)  # the superstep is committed once
    with pytest.raises(SlotLostError):
        task.look_up(SOLUTION, [1])
    task = TableAccess((server.address,), SECRET, Fence(1, 1))
    reading = task.read(BAG)
    assert [next(reading), task.look_up(SOLUTION, [1, -1]), next(reading)] == [0, [((1, "x"),), ()], 1]
    assert list(reading) == list(many)[2:]
    assert list(task.read(SOLUTION)) == [(n, "x") for n in many]


def test_a_task_names_the_slot_that_is_gone(server: SlotServer, tmp_path: Path) -> None:
    gone = TableAccess((server.address, str(tmp_path / "nobody")), SECRET, Fence(1, 0))
    with pytest.raises(SlotLostError) as error:
        gone.look_up(TablePartition(0, 3), [1])
    assert error.value.slot == 1


# --------------------------------------------------------------------------------------------------- memory and parts


class Spilling(Tables):
    """Tables with room for so many bytes of writes, which counts how often something had to go to disk."""

    def __init__(self, folder: Path, memory_bytes: int) -> None:
        self.spilled = 0
        super().__init__(folder, memory_bytes)

        def where() -> str:
            self.spilled += 1
            return str(folder)

        self.host = TableHost(0, where)
        self.begin(1, memory_bytes)


@pytest.mark.parametrize("target", [SOLUTION, INDEX])
def test_a_write_that_took_effect_gives_its_memory_back(tmp_path: Path, target: TablePartition) -> None:
    tables = Spilling(tmp_path, 600)
    for number in range(5):
        tables.commit(tables.write(target, "a", keyed((number, "x" * 300))))
    assert tables.spilled == 0
    tables.write(target, "a", keyed((7, "x" * 300)), keyed((8, "x" * 300)))
    assert tables.spilled == 1


def test_a_write_that_the_driver_does_not_name_gives_its_memory_back(tmp_path: Path) -> None:
    tables = Spilling(tmp_path, 600)
    for _ in range(5):
        tables.write(SOLUTION, "late", keyed((1, "x" * 300)))
        tables.commit()
    assert tables.spilled == 0


def test_a_bag_gives_its_memory_back_when_it_is_replaced_and_when_the_tables_begin_anew(tmp_path: Path) -> None:
    tables = Spilling(tmp_path, 900)
    for attempt in (2, 3, 4):
        for _ in range(3):
            tables.commit(tables.write(BAG, "a", ["x" * 300]))
        tables.write(BAG, "b", ["x" * 300])
        tables.begin(attempt, 900)
        assert tables.read(BAG) == []
    assert tables.spilled == 0


def test_the_parts_of_a_solution_set_are_read_from_any_place_by_several_tasks(tables: Tables) -> None:
    count = 2 * ELEMENTS_PER_PART + 500
    tables.commit(tables.write(SOLUTION, "a", keyed(*((number,) for number in range(count)))))

    def part(number: int) -> list[int]:
        found = tables.host.answer(ReadTable(tables.fence, SOLUTION, number))
        return [element[0] for element in pickle.loads(found)] if found else []

    whole = [list(range(start, min(start + ELEMENTS_PER_PART, count))) for start in range(0, count, ELEMENTS_PER_PART)]
    for order in ([0, 1, 2], [0, 0, 1], [2, 0, 1], [1, 2, 1, 2, 0], [0, 2, 1]):
        assert [part(number) for number in order] == [whole[number] for number in order]
    assert [part(3), part(4), part(2)] == [[], [], whole[2]]


def test_a_solution_set_is_read_again_after_it_has_changed(tables: Tables) -> None:
    tables.commit(tables.write(SOLUTION, "a", keyed(*((number, 0) for number in range(ELEMENTS_PER_PART + 1)))))
    assert tables.host.answer(ReadTable(tables.fence, SOLUTION, 0))
    tables.commit(tables.write(SOLUTION, "a", keyed((5, 1), (-1, 1))))
    found = pickle.loads(tables.host.answer(ReadTable(tables.fence, SOLUTION, 1)))
    assert found == [(ELEMENTS_PER_PART, 0), (-1, 1)]


def test_closed_tables_answer_nobody(tables: Tables) -> None:
    tables.commit(tables.write(SOLUTION, "a", keyed((1, 1))))
    tables.host.close()
    with pytest.raises(SlotLostError, match="it hosts the tables of None"):
        tables.look_up(SOLUTION, 1)


def test_an_index_is_not_read_and_a_bag_not_looked_up(tables: Tables) -> None:
    with pytest.raises(TypeError, match="only looked up by key"):
        tables.host.answer(ReadTable(tables.fence, INDEX, 0))
    with pytest.raises(TypeError, match="has no keys"):
        tables.look_up(BAG, 1)
