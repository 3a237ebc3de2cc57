"""Merging of RocksDB's files: the bytes that long series of checkpoints write, and the space on disk."""

import os
import random
import threading
import time
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

from ekorn.errors import StateError
from ekorn.functions.state.state_descriptors import ValueStateDescriptor
from ekorn.state.canonical_format import PAYLOAD_BYTES
from ekorn.state.rocksdb.compaction import Merging
from ekorn.state.rocksdb.limits import RocksLimits
from ekorn.state.rocksdb.store import SortedFile
from ekorn.state.snapshots import OperatorRestore
from ekorn.state.state_files import write_state
from ekorn.storage.memory import MemoryFiles
from tests.state.backends import EVERYTHING, GROUPS, SMALL, rocksdb

KEYS = 30_000
PART = KEYS // 100


class Target:
    """The target of a checkpoint. It counts the new shared files."""

    payload_bytes = PAYLOAD_BYTES

    def __init__(self, store):
        self.store = store
        self.bytes_written = self.shared_bytes = 0

    def shared(self, label):
        return self.exclusive("shared")

    def exclusive(self, label):
        return f"{label if label == 'shared' else 'chk'}/{uuid4()}"

    def write(self, path, payload):
        self.bytes_written += len(payload)
        if path.startswith("shared/"):
            self.shared_bytes += len(payload)
        return write_state(self.store, path, payload, 0)


class Job:
    """One subtask with a number per key."""

    def __init__(self, restored=None, store=None, **more):
        self.backend, self.store, self.checkpoints = rocksdb(**more), store or MemoryFiles(), 0
        if restored is not None:
            self.backend.restore(restored, self.store, EVERYTHING)
        self.number = self.backend.state(ValueStateDescriptor("number"))
        self.rocks = self.backend.rocks

    def write(self, keys, value):
        for key in keys:
            self.backend.cell[0] = key
            self.number.update(value)

    def delete(self, keys):
        for key in keys:
            self.backend.cell[0] = key
            self.number.clear()

    def checkpoint(self):
        """Take and complete a checkpoint; return the bytes of its new files once all merging is done."""
        self.checkpoints += 1
        target = Target(self.store)
        captured = self.backend.snapshot(self.checkpoints)
        captured.key_groups = EVERYTHING
        self.files = captured.write(target)
        self.backend.snapshot_completed(self.checkpoints)
        self.wait()
        return target.shared_bytes

    def wait(self):
        self.rocks.merging.wait()

    def on_disk(self):
        return sum(file.bytes for file in self.rocks.store.files())


def eventually(holds):
    """Wait for a condition, because RocksDB merges in the background; return whether it came true."""
    deadline = time.monotonic() + 60
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.05)
    return holds()


@pytest.fixture
def job():
    job = Job()
    yield job
    job.backend.close()


# ------------------------------------------------------------------------------------------------ series of checkpoints


def test_checkpoints_of_a_state_of_which_one_in_a_hundred_changes_stay_small(job):
    chance = random.Random(7)
    job.write(range(KEYS), 1)
    full = job.checkpoint()
    later = []
    for value in range(2, 42):
        job.write(chance.sample(range(KEYS), PART), value)
        later.append(job.checkpoint())
    assert sum(later) / len(later) < full * 0.05  # 2 of these 4 percent are the fixed parts of small files
    assert sorted(later)[len(later) // 2] < full * 0.03
    assert eventually(lambda: len(job.rocks.store.files()) < 16)
    assert job.on_disk() < 2.5 * full


def test_checkpoints_of_a_state_whose_entries_come_and_go_stay_small(job):
    job.write(range(KEYS), 1)
    full = job.checkpoint()
    later = []
    for first in range(0, 40 * PART, PART):
        job.delete(range(first, first + PART))
        job.write(range(KEYS + first, KEYS + first + PART), 1)
        later.append(job.checkpoint())
    assert sum(later) / len(later) < full * 0.10
    assert eventually(lambda: job.on_disk() < 2.5 * full)


# ------------------------------------------------------------------------------------------------- the first checkpoint


def test_the_files_of_a_first_load_are_merged_before_they_are_written(job):
    job.write(range(KEYS), 1)
    job.rocks.flush()
    job.rocks.store.flush()
    assert len(job.rocks.store.files()) > 1
    job.checkpoint()
    assert len(job.rocks.store.files()) == 1


def test_large_ones_are_left_to_rocksdb():
    job = Job(limits=RocksLimits(settle_bytes=1000))
    job.write(range(KEYS), 1)
    job.checkpoint()
    assert len(job.rocks.store.files()) > 1
    job.backend.close()


@pytest.mark.parametrize("reuses_restored", [True, False])
def test_restored_files_are_merged_only_if_they_are_written_again(job, reuses_restored):
    job.write(range(KEYS), 1)
    job.checkpoint()
    job.write(range(PART), 2)
    job.checkpoint()
    restored = OperatorRestore("operator", (job.files,), (), job.backend.infos(), 1, GROUPS)
    again = Job(restored, job.store, reuses_restored=reuses_restored)
    written = again.checkpoint()
    assert len(again.rocks.store.files()) == (2 if reuses_restored else 1)
    assert (written == 0) == reuses_restored
    again.backend.close()


# ------------------------------------------------------------------------------------------------------------ deletions


FEW = RocksLimits(few_deletions=100)  # so few suffice, because RocksDB may merge some of the files itself first


def test_a_state_that_has_shrunk_leaves_the_disk():
    job = Job(limits=FEW)
    job.write(range(KEYS), "a value of some length")
    job.checkpoint()
    before = job.on_disk()
    job.delete(range(KEYS // 3))
    job.checkpoint()
    assert job.on_disk() > before / 2  # less than half of the entries are dead
    job.delete(range(KEYS // 3, KEYS - PART))
    job.checkpoint()
    assert job.on_disk() < before / 20
    job.backend.close()


def test_without_checkpoints_too():
    job = Job(tracked=False, limits=FEW)
    job.write(range(KEYS), "a value of some length")
    job.rocks.flush()
    job.rocks.store.flush()
    before = job.on_disk()
    job.delete(range(KEYS))
    job.rocks.flush()
    job.rocks.store.flush()
    job.backend.end_epoch()
    job.wait()
    assert job.on_disk() < before / 20
    job.backend.close()


def test_nothing_is_merged_where_that_is_asked_for():
    job = Job(settings=replace(SMALL, compaction_style="NONE"), limits=FEW)
    job.write(range(KEYS), 1)
    job.checkpoint()
    loaded = len(job.rocks.store.files())
    assert loaded > 1
    job.delete(range(KEYS))
    job.checkpoint()
    assert len(job.rocks.store.files()) > loaded
    job.backend.close()


def test_that_merging_failed_is_said_with_the_next_checkpoint(job, monkeypatch):
    def fail():
        raise StateError("no space left")

    job.write(range(10), 1)
    job.checkpoint()
    monkeypatch.setattr(job.rocks.store, "compact", fail)
    job.rocks.merging.begin()
    job.wait()
    with pytest.raises(StateError, match="no space left"):
        job.checkpoint()


def test_a_backend_can_be_closed_while_files_are_merged(job, monkeypatch):
    begun, compact = threading.Event(), job.rocks.store.compact

    def compact_and_say_so():
        begun.set()
        for _ in range(100):  # after the cancellation each attempt is short
            compact()

    monkeypatch.setattr(job.rocks.store, "compact", compact_and_say_so)
    job.write(range(KEYS), 1)
    job.rocks.flush()
    job.rocks.merging.begin()
    assert begun.wait(60)
    job.backend.close()
    assert not job.rocks.is_open
    assert not os.path.exists(job.backend.folder)


# --------------------------------------------------------------------------------------------- the rules, one by one


class Files:
    """A store of which only the files matter. A merge lasts until it is cancelled, or is over at once."""

    def __init__(self, *files, lasts=False):
        self._files, self._lasts = list(files), lasts
        self._cancelled = threading.Event()
        self.calls: list[str] = []
        self.deletions = self.deleted_by_range = 0
        self.begun = threading.Event()

    def files(self):
        return self._files

    def flush(self):
        self.calls.append("flush")

    def compact(self):
        self.begun.set()
        ended = self._cancelled.wait(60) if self._lasts else True
        self.calls.append("compact" if ended else "compact, not cancelled")

    def cancel(self):
        self.calls.append("cancel")
        self._cancelled.set()


def merging_of(store: Any, limits=None, **more):
    return Merging(store, limits or RocksLimits(), **more)


def file_of(size_bytes=1, entries=1, deletions=0):
    return SortedFile(size_bytes, entries, deletions)


def test_a_merge_that_is_running_is_cancelled_and_then_over():
    store = Files(lasts=True)
    merging = merging_of(store)
    merging.begin()
    assert store.begun.wait(60)
    assert merging.is_busy
    merging.stop()
    assert store.calls == ["cancel", "compact"]
    assert not merging.is_busy


def test_nothing_is_cancelled_where_nothing_is_merged():
    store = Files()
    merging = merging_of(store)
    merging.stop()
    merging.begin()
    merging.wait()
    merging.stop()
    assert store.calls == ["compact"]


@pytest.mark.parametrize(
    ("sizes", "merged"), [([], False), ([100], False), ([60, 40], True), ([60, 41], False), ([30, 30, 40], True)]
)
def test_several_files_are_settled_up_to_a_size(sizes, merged):
    store = Files(*(file_of(size) for size in sizes))
    merging_of(store, RocksLimits(settle_bytes=100)).settle()
    assert store.calls == ["flush", *(["compact"] if merged else [])]


@pytest.mark.parametrize(
    ("counted", "entries", "deletions", "merged"),
    [
        (10, 30, 10, True),  # 20 entries live, 10 are deletions of others
        (10, 31, 10, False),
        (9, 30, 10, False),  # too few since the last merge to look at the files
        (10, 12, 9, False),  # RocksDB has merged some of them itself
        (10, 12, 10, True),
    ],
)
def test_files_are_merged_when_half_of_their_entries_are_deleted(counted, entries, deletions, merged):
    store = Files(file_of(entries=entries - 5, deletions=deletions - 4), file_of(entries=5, deletions=4))
    store.deletions = counted
    merging = merging_of(store, RocksLimits(few_deletions=10))
    merging.tidy()
    merging.wait()
    assert store.calls == (["compact"] if merged else [])
    assert store.deletions == (0 if merged else counted)


def test_one_merge_runs_at_a_time():
    store = Files(file_of(entries=1, deletions=1), lasts=True)
    merging = merging_of(store, RocksLimits(few_deletions=1))
    for _ in range(2):
        store.deletions = 1
        merging.tidy()
        assert store.begun.wait(60)
    merging.stop()
    assert store.calls == ["cancel", "compact"]


def test_nothing_is_settled_or_tidied_where_merging_is_not_allowed():
    store = Files(file_of(deletions=1), file_of(deletions=1))
    store.deletions = 2
    merging = merging_of(store, RocksLimits(few_deletions=1), is_allowed=False)
    merging.settle()
    merging.tidy()
    merging.wait()
    assert store.calls == []
