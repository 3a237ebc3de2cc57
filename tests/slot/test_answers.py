"""Answers that a slot keeps for repeated tasks, and partitions of tables that let go of their memory."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from ekorn.graph.addresses import SubtaskId
from ekorn.operators.epoch import Ack
from ekorn.slot.epochs.task_answers import AskedEpoch, AskingTask, KeptAnswers, TaskAnswer, TaskGone, picklable
from ekorn.slot.tables.partitions import ELEMENTS_PER_PART, Write, new_partition
from ekorn.slot_protocol.table_messages import TableKind

SUBTASK, OTHER = SubtaskId(1, 0), SubtaskId(1, 1)


class Message:
    def __init__(self, data: bytes) -> None:
        self._data = data

    def read(self) -> bytes:
        return self._data


class Spool:
    """Keeps messages in memory, and counts how often it was closed."""

    def __init__(self) -> None:
        self.closed = 0

    def add(self, *parts: bytes) -> Message:
        return Message(b"".join(parts))

    def close(self) -> None:
        self.closed += 1


def answer(attempt: int, epoch: int) -> tuple[TaskAnswer, Spool]:
    spool = Spool()
    return TaskAnswer(AskedEpoch(attempt, epoch), spool), spool  # type: ignore[arg-type]


def test_the_newest_answer_of_each_subtask_is_kept_and_the_others_are_closed() -> None:
    kept = KeptAnswers()
    first, first_spool = answer(0, 5)
    second, second_spool = answer(1, 0)  # a later attempt is later, whatever its number
    other, other_spool = answer(0, 5)
    kept.keep(SUBTASK, first)
    kept.keep(OTHER, other)
    assert kept.find(SUBTASK, AskedEpoch(0, 5)) is first and first_spool.closed == 0
    kept.keep(SUBTASK, second)
    assert first_spool.closed == 1 and second_spool.closed == 0
    assert kept.find(SUBTASK, AskedEpoch(1, 0)) is second
    assert kept.find(SUBTASK, AskedEpoch(0, 5)) is None and kept.find(OTHER, AskedEpoch(0, 5)) is other
    for late in ((1, 0), (0, 9)):
        refused, spool = answer(*late)
        kept.keep(SUBTASK, refused)
        assert spool.closed == 1 and kept.find(SUBTASK, AskedEpoch(1, 0)) is second
    kept.forget()
    assert second_spool.closed == other_spool.closed == 1
    assert kept.find(SUBTASK, AskedEpoch(1, 0)) is None


class Gone:
    """A link whose peer has ended."""

    def send(self, *parts: bytes) -> None:
        raise BrokenPipeError("gone")


def test_a_task_that_is_gone_is_told_from_files_of_the_subtask() -> None:
    task = AskingTask(Gone())  # type: ignore[arg-type]
    assert task.gone is None
    with pytest.raises(TaskGone, match="the task that asked for the epoch is gone") as raised:
        task.send(Ack(1, 0, 0))
    assert task.gone is raised.value


class OneWay(Exception):
    def __init__(self, first: str, second: str) -> None:
        super().__init__(first)


def test_an_error_that_cannot_travel_travels_as_its_text() -> None:
    error = ValueError("no")
    assert picklable(error) is error
    assert str(picklable(OneWay("one", "two"))) == "OneWay: one"


# ------------------------------------------------------------------------------------------------------ partitions


def written(*parts: Any) -> tuple[Write, Spool]:
    spool = Spool()
    write = Write(spool)  # type: ignore[arg-type]
    for part in parts:
        write.add(pickle.dumps(part))
    return write, spool


@pytest.mark.parametrize("kind", [TableKind.SOLUTION, TableKind.INDEX])
def test_a_table_by_key_takes_a_write_and_lets_go_of_everything(kind: TableKind) -> None:
    table = new_partition(kind)
    write, spool = written((["a", "b"], [1, 2]), (["a"], [3]))
    table.apply(write)
    assert spool.closed == 1
    assert [list(found) for found in table.look_up(["a", "b", "c"])] == [
        [3] if kind is TableKind.SOLUTION else [1, 3],
        [2],
        [],
    ]
    table.close()
    assert [list(found) for found in table.look_up(["a", "b"])] == [[], []]


def test_a_bag_is_its_last_write() -> None:
    table = new_partition(TableKind.BAG)
    assert table.part(0) == b""
    first, first_spool = written("x")
    table.apply(first)
    assert pickle.loads(table.part(0)) == "x" and table.part(1) == b""
    second, second_spool = written("y", "z")
    table.apply(second)
    assert first_spool.closed == 1 and second_spool.closed == 0
    assert [pickle.loads(table.part(number)) for number in (1, 0)] == ["z", "y"]
    table.close()
    table.close()
    assert second_spool.closed == 1 and table.part(0) == b""


def test_a_solution_set_is_read_in_parts_of_a_thousand() -> None:
    table = new_partition(TableKind.SOLUTION)
    keys = list(range(2 * ELEMENTS_PER_PART))
    table.apply(written((keys, keys))[0])
    assert ELEMENTS_PER_PART == 1_000
    assert [pickle.loads(table.part(number)) for number in (0, 1, 1)] == [keys[:1_000], keys[1_000:], keys[1_000:]]
    assert table.part(2) == b""
