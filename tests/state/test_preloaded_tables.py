"""State that is read before the checkpoint exists which is restored: what follows is added, or all is read again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ekorn.keygroups import KeyGroupRange, key_group_range, key_groups_of
from ekorn.state.restored_tables import PreloadedTables, read_tables
from ekorn.state.snapshots import OperatorRestore
from ekorn.storage.memory import MemoryFiles
from tests.examples_by_profile import examples
from tests.state.backends import BACKENDS, EVERYTHING, GROUPS
from tests.state.keyed_machine import Subtask, Target


class Reads(MemoryFiles):
    """Files in memory, and the paths that were read."""

    def __init__(self) -> None:
        super().__init__()
        self.paths: list[str] = []

    def read(self, path: str) -> bytes:
        self.paths.append(path)
        return super().read(path)


class Job:
    """Two subtasks with state on the heap, and their checkpoints."""

    def __init__(self, store: MemoryFiles, *, incremental: bool = True) -> None:
        self.store = store
        make = BACKENDS["heap" if incremental else "heap, whole snapshots"]
        self.subtasks = [Subtask(make, key_group_range(GROUPS, 2, index)) for index in range(2)]
        self.checkpoint_id = 0

    def update(self, subtask: int, key: int, value: str | None, state: str = "value") -> None:
        of = self.subtasks[subtask]
        of.backend.cell[0] = key
        handle: Any = of.handles[state]
        handle.clear() if value is None else handle.update(value)

    def fill(self, count: int) -> None:
        for key in range(count):
            self.update(self.owner_of(key), key, "x" * 50)

    def owner_of(self, key: int) -> int:
        (group,) = key_groups_of([key], GROUPS)
        return 0 if group <= self.subtasks[0].groups[1] else 1

    def checkpoint(self) -> OperatorRestore:
        self.checkpoint_id += 1
        parts = tuple(each.capture(self.checkpoint_id).write(Target(self.store)) for each in self.subtasks)
        for each in self.subtasks:
            each.backend.snapshot_completed(self.checkpoint_id)
        infos = self.subtasks[0].backend.infos()
        return OperatorRestore("operator", parts, (), infos, self.checkpoint_id, GROUPS, "counts")


def preloaded(restored: OperatorRestore, store: MemoryFiles, groups: KeyGroupRange) -> PreloadedTables:
    return PreloadedTables(restored, store, groups, lambda: None)


CHANGES = st.lists(st.tuples(st.integers(0, 249), st.none() | st.text(max_size=3)), max_size=12)


@settings(max_examples=examples(60), deadline=None)
@given(before=CHANGES, rounds=st.lists(CHANGES, min_size=1, max_size=4), parallelism=st.integers(1, 5), data=st.data())
def test_state_that_was_read_in_advance_becomes_that_of_the_later_checkpoint(before, rounds, parallelism, data):
    job = Job(MemoryFiles())
    job.fill(250)
    for key, value in before:
        job.update(job.owner_of(key), key, value)
    early = job.checkpoint()
    groups = key_group_range(GROUPS, parallelism, data.draw(st.integers(0, parallelism - 1)))
    tables = preloaded(early, job.store, groups)
    late = early
    for changes in rounds:
        for key, value in changes:
            job.update(job.owner_of(key), key, value)
        late = job.checkpoint()
    found = tables.read_on(late, job.store)
    assert found is not None, "so few changes begin no new chain"
    assert {table.info.name: table for table in found} == {
        table.info.name: table for table in read_tables(late, job.store, groups)
    }


def test_files_that_were_read_in_advance_are_not_read_again():
    store = Reads()
    job = Job(store)
    job.fill(250)
    early = job.checkpoint()
    tables = preloaded(early, store, EVERYTHING)
    job.update(job.owner_of(7), 7, "new")
    late = job.checkpoint()
    store.paths.clear()
    assert tables.read_on(late, store) is not None
    read = {file.path for part in early.keyed for file in part.files}
    assert store.paths and read.isdisjoint(store.paths)


@pytest.mark.parametrize("incremental", [True, False])
def test_checkpoint_that_does_not_build_on_what_was_read_is_read_as_a_whole(incremental):
    """An entry that is gone is in no file of a chain that began anew, and would stay."""
    job = Job(MemoryFiles(), incremental=incremental)
    job.fill(20)
    tables = preloaded(job.checkpoint(), job.store, EVERYTHING)
    job.update(job.owner_of(7), 7, None)
    late = job.checkpoint()
    while incremental and any(len(part.files) > 1 for part in late.keyed):
        for key in range(8, 20):
            job.update(job.owner_of(key), key, "y" * 60)
        late = job.checkpoint()
    assert tables.read_on(late, job.store) is None


def test_part_that_the_later_checkpoint_does_not_have_is_not_restored():
    job = Job(MemoryFiles())
    job.fill(20)
    early = job.checkpoint()
    late = replace(early, keyed=early.keyed[:1])
    assert preloaded(early, job.store, EVERYTHING).read_on(late, job.store) is None


def test_part_that_came_since_is_read():
    job = Job(MemoryFiles())
    job.fill(20)
    late = job.checkpoint()
    found = preloaded(replace(late, keyed=late.keyed[:1]), job.store, EVERYTHING).read_on(late, job.store)
    assert found is not None
    assert list(found) == list(read_tables(late, job.store, EVERYTHING))


def test_other_files_of_the_same_key_groups_are_not_taken_for_those_that_were_read():
    job, other = Job(MemoryFiles()), Job(MemoryFiles())
    for each in (job, other):
        each.fill(20)
    tables = preloaded(job.checkpoint(), job.store, EVERYTHING)
    assert tables.read_on(other.checkpoint(), other.store) is None


def test_state_with_another_number_of_key_groups_is_not_what_was_read():
    job = Job(MemoryFiles())
    early = job.checkpoint()
    tables = preloaded(early, job.store, EVERYTHING)
    assert tables.read_on(replace(early, max_parallelism=GROUPS + 1), job.store) is None


def test_descriptions_are_those_of_the_later_checkpoint():
    job = Job(MemoryFiles())
    job.fill(20)
    early = job.checkpoint()
    tables = preloaded(early, job.store, EVERYTHING)
    renamed = tuple(replace(info, type_text="another") for info in early.states)
    found = tables.read_on(replace(early, states=renamed), job.store)
    assert found is not None
    assert [table.info.type_text for table in found] == ["another"]


def test_reading_ends_with_what_a_pause_raises():
    job = Job(MemoryFiles())
    job.fill(20)

    def pause() -> None:
        raise MemoryError("enough")

    with pytest.raises(MemoryError, match="enough"):
        PreloadedTables(job.checkpoint(), job.store, EVERYTHING, pause)
