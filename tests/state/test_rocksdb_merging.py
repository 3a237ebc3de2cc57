"""Merging of RocksDB's files: the bytes that long series of checkpoints write, and the space on disk."""

import os
import random
import threading
import time
from dataclasses import replace
from uuid import uuid4

import pytest

from tamias.errors import StateError
from tamias.functions.state_descriptors import ValueStateDescriptor
from tamias.state.canonical_format import PAYLOAD_BYTES
from tamias.state.rocksdb.limits import RocksLimits
from tamias.state.snapshots import OperatorRestore
from tamias.state.state_files import write_state
from tamias.storage.memory import MemoryFiles
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
        self.number = self.backend.value_state(ValueStateDescriptor("number"))
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
