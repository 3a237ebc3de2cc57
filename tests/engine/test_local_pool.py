"""Slots that are children of the driver: none stays behind when one of them cannot be started."""

from __future__ import annotations

from typing import Any

import pytest

from ekorn.config.settings.deployment_settings import PythonDependencies
from ekorn.engine.slots import local_pool
from ekorn.engine.slots.local_pool import LocalSlotPool
from ekorn.errors import DeploymentError


class Process:
    """Stands in for the process of a slot."""

    def __init__(self, config: Any, *rest: Any) -> None:
        self.number = config.slot
        self.alive = True
        MADE.append(self)

    def wait_ready(self) -> str:
        if self.number in BROKEN:
            raise DeploymentError("a slot process did not start")
        return f"s{self.number}"

    def wait_for_end(self) -> str:
        return "it was killed"

    def end(self) -> None:
        self.alive = False


class Slot:
    """Stands in for the handle of a slot."""

    def __init__(self, number: int, address: str, secret: bytes, process: Process) -> None:
        self.number = number
        self.process = process

    def connect(self, *arguments: Any) -> None:
        pass

    def tell(self, request: Any) -> None:
        pass

    def close(self) -> None:
        self.process.end()


MADE: list[Process] = []
BROKEN: set[int] = set()


@pytest.fixture
def pool(monkeypatch):
    monkeypatch.setattr(local_pool, "ChildSlotProcess", Process)
    monkeypatch.setattr(local_pool, "SlotHandle", Slot)
    MADE.clear()
    BROKEN.clear()
    made = LocalSlotPool(2, PythonDependencies())
    yield made
    made.shutdown()
    assert living() == []


def living() -> list[int]:
    return sorted(process.number for process in MADE if process.alive)


def test_slots_that_are_gone_are_replaced(pool):
    pool.begin_start()
    assert pool.ensure() == [0, 1]
    assert len(MADE) == 2
    MADE[1].alive = False
    assert pool.ensure() == [1]
    assert [slot.process.alive for slot in pool.slots] == [True, True]
    assert pool.ensure() == []


def test_a_first_start_that_fails_leaves_no_slot_behind(pool):
    pool.begin_start()
    BROKEN.add(1)
    with pytest.raises(DeploymentError):
        pool.ensure()
    assert living() == []
    BROKEN.clear()
    assert pool.ensure() == [0, 1]


def test_a_start_of_more_slots_that_fails_leaves_those_in_use(pool):
    pool.ensure()
    pool.resize(4)
    BROKEN.add(3)
    with pytest.raises(DeploymentError):
        pool.ensure()
    assert living() == [0, 1]
    with pytest.raises(DeploymentError):
        pool.prepare(5)
    assert living() == [0, 1]
    BROKEN.clear()
    assert pool.ensure() == [2, 3]


def test_slots_that_were_made_ready_are_taken_into_use(pool):
    pool.ensure()
    pool.prepare(3)
    assert living() == [0, 1, 2]
    pool.resize(3)
    assert pool.ensure() == []
    assert [slot.number for slot in pool.slots] == [0, 1, 2]
    pool.resize(1)
    assert living() == [0]


def test_a_slot_that_is_gone_is_replaced_by_the_one_that_was_begun(pool):
    pool.ensure()
    MADE[1].alive = False
    pool.begin_replacing()
    pool.begin_replacing()
    assert len(MADE) == 3, "one is enough"
    assert pool.ensure() == [1]
    assert len(MADE) == 3 and pool.slots[1].process is MADE[2]


def test_a_slot_that_was_begun_and_is_not_needed_any_more_ends(pool):
    pool.ensure()
    MADE[1].alive = False
    pool.begin_replacing()
    pool.resize(1)
    assert pool.ensure() == []
    assert living() == [0]
