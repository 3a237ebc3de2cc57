"""Checkpoints of RocksDB: written files, shared files, damaged files, and rescaling."""

import gc
import itertools
import os
from dataclasses import replace
from weakref import WeakSet

import pytest

from ekorn.checkpoint.checkpoint_directory import Listing
from ekorn.checkpoint.file_names import SnapshotNames
from ekorn.checkpoint.metadata import CheckpointMetadata, OperatorMetadata
from ekorn.checkpoint.retention import Retention
from ekorn.errors import CorruptFileError, StateError
from ekorn.functions.state.state_descriptors import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from ekorn.keygroups import key_group, key_group_range, state_key
from ekorn.state.canonical_format import PAYLOAD_BYTES
from ekorn.state.rocksdb.limits import RocksLimits
from ekorn.state.rocksdb.store import RocksStore
from ekorn.state.rocksdb.tables import Shared
from ekorn.state.snapshots import OperatorRestore, OperatorSnapshot
from ekorn.state.state_files import write_state
from ekorn.storage.memory import MemoryFiles
from tests.state.backends import EVERYTHING, GROUPS, SMALL, heap, rocksdb

KEYS = [f"key-{n}" for n in range(2000)]


class Target:
    """The target of one checkpoint's snapshot, with the file names that slots use."""

    payload_bytes = PAYLOAD_BYTES

    def __init__(self, store, checkpoint_id, inline_threshold=0):
        self.store, self.checkpoint_id, self.threshold = store, checkpoint_id, inline_threshold
        self.names = SnapshotNames(0, 0, "1.0")
        self.bytes_written = 0
        self.written = []

    def shared(self, label):
        return self.names.shared(self.checkpoint_id)

    def exclusive(self, label):
        return self.names.exclusive(self.checkpoint_id)

    def write(self, path, payload):
        self.bytes_written += len(payload)
        self.written.append(path)
        return write_state(self.store, path, payload, self.threshold)


class Job:
    """One subtask with a count per key, and its checkpoints."""

    def __init__(self, make=rocksdb, restored=None, groups=EVERYTHING, **more):
        self.store, self.ids = (restored[1] if restored else MemoryFiles()), itertools.count(1)
        self.groups = groups
        self.backend = make(groups, **more)
        if restored is not None:
            self.backend.restore(restored[0], self.store, groups)
        self.count = self.backend.state(ValueStateDescriptor("count"))

    def write(self, keys, value):
        for key in keys:
            self.backend.cell[0] = key
            self.count.update(value)

    def read(self, key):
        self.backend.cell[0] = key
        return self.count.value()

    def checkpoint(self, complete=True, checkpoint_id=None, **options):
        checkpoint_id = checkpoint_id or next(self.ids)
        captured = self.backend.snapshot(checkpoint_id)
        captured.key_groups = self.groups
        target = Target(self.store, checkpoint_id, **options)
        self.files = captured.write(target)
        if complete:
            self.backend.snapshot_completed(checkpoint_id)
        return target

    def restored(self):
        infos = self.backend.infos()
        return OperatorRestore("operator", (self.files,), (), infos, 1, GROUPS), self.store


@pytest.fixture
def job():
    job = Job()
    yield job
    job.backend.close()


def sorted_files(files):
    return {name: file.path for name, file in zip(files.names, files.files, strict=True) if name.endswith(".sst")}


# --------------------------------------------------------------------------------------------------------- incremental


def test_a_second_checkpoint_writes_what_changed_and_refers_to_the_rest(job):
    job.write([f"key-{n}" for n in range(4000)], 1)
    first = job.checkpoint()
    before = sorted_files(job.files)
    job.write(KEYS[:20], 2)
    second = job.checkpoint()
    after = sorted_files(job.files)
    assert set(before.values()) < set(after.values())
    assert second.bytes_written < first.bytes_written / 4  # the two small files matter in so small a state
    new = [path for path in second.written if path.startswith("shared/")]
    assert len(new) == len(after) - len(before) == 1
    assert job.store.size(new[0]) < sum(job.store.size(path) for path in before.values()) / 10


def test_when_nothing_changed_nothing_is_shared_anew(job):
    job.write(KEYS, 1)
    job.checkpoint()
    again = job.checkpoint()
    assert not [path for path in again.written if path.startswith("shared/")]


def test_without_incremental_checkpoints_everything_is_written_each_time_to_files_of_its_own():
    job = Job(incremental=False)
    job.write(KEYS, 1)
    sizes = [job.checkpoint().bytes_written for _ in range(2)]
    assert sizes[1] >= sizes[0]
    assert not job.store.list("shared")
    assert {path.split("/")[0] for path in sorted_files(job.files).values()} == {"chk-2"}
    job.backend.close()


def test_what_an_aborted_checkpoint_wrote_is_written_again(job):
    job.write(KEYS[:1000], 1)
    job.checkpoint()
    base = set(sorted_files(job.files).values())
    job.write(KEYS[1000:], 2)
    given_up = job.checkpoint(complete=False)
    for path in given_up.written:
        job.store.delete(path)
    job.checkpoint()
    files = set(sorted_files(job.files).values())
    assert base <= files
    assert not files & set(given_up.written)
    again = Job(restored=job.restored())
    assert [again.read(key) for key in (KEYS[0], KEYS[-1])] == [1, 2]
    again.backend.close()


def test_small_files_are_kept_inside_the_metadata(job):
    job.write(KEYS[:3], 1)
    job.checkpoint(inline_threshold=100_000)
    assert all(file.path is None for file in job.files.files)
    again = Job(restored=job.restored())
    assert again.read(KEYS[0]) == 1
    again.backend.close()


def metadata_of(checkpoint_id, files):
    snapshot = OperatorSnapshot("0" * 32, None, "count", keyed=files)
    operator = OperatorMetadata("0" * 32, None, "count", 1, GROUPS, (snapshot,), (False,))
    return CheckpointMetadata(checkpoint_id, "job", "job", 0, (operator,))


def test_files_go_when_no_retained_checkpoint_refers_to_them(job):
    retention, kept = Retention(num_retained=1), set()
    for checkpoint_id in range(1, 13):
        job.write(KEYS, checkpoint_id)
        job.checkpoint()
        listing = Listing(shared=tuple(f"shared/{name}" for name in job.store.list("shared")))
        written = metadata_of(checkpoint_id, job.files)
        gone = retention.completed(written, pending=frozenset(), listing=listing, newest_id=checkpoint_id)
        for path in gone.files:
            job.store.delete(path)
        kept = set(sorted_files(job.files).values())
        assert {f"shared/{name}" for name in job.store.list("shared")} == kept
    # A merge replaces earlier files: the twelve checkpoints wrote more files than are left.
    assert len(kept) < 12
    again = Job(restored=job.restored())
    assert {again.read(key) for key in KEYS} == {12}
    again.backend.close()


def test_a_restored_job_refers_to_the_files_it_was_restored_from_if_they_are_its_own(job):
    job.write(KEYS, 1)
    job.checkpoint()
    for reuses, wanted in ((True, set(sorted_files(job.files).values())), (False, set())):
        again = Job(restored=job.restored(), reuses_restored=reuses)
        again.write(KEYS[:5], 2)
        again.checkpoint(checkpoint_id=7)
        assert set(sorted_files(again.files).values()) & set(sorted_files(job.files).values()) == wanted
        third = Job(restored=again.restored())
        assert [third.read(key) for key in (KEYS[0], KEYS[-1])] == [2, 1]
        third.backend.close()
        again.backend.close()


def test_nothing_is_left_on_disk_by_a_checkpoint_or_by_a_backend_that_is_closed(job):
    job.write(KEYS, 1)
    job.checkpoint()
    folder = job.backend.folder
    assert os.listdir(folder) == ["db"]
    job.backend.close()
    assert not os.path.exists(folder)


def test_a_snapshot_that_is_written_leaves_nothing_on_disk_although_it_is_referred_to(job):
    job.write(KEYS, 1)
    for number, capture in enumerate((job.backend.snapshot, job.backend.full_snapshot, job.backend.native_snapshot), 1):
        captured = capture(number)
        captured.key_groups = job.groups
        assert captured.write(Target(job.store, number)).files
        assert os.listdir(job.backend.folder) == ["db"]


def test_a_snapshot_that_is_never_written_leaves_nothing_on_disk(job):
    job.write(KEYS, 1)
    for capture in (job.backend.snapshot, job.backend.full_snapshot, job.backend.native_snapshot):
        captured = capture(1)
        assert len(os.listdir(job.backend.folder)) == 2
        del captured
        gc.collect()
        assert os.listdir(job.backend.folder) == ["db"]


def test_large_values_take_up_more_room(job, monkeypatch):
    monkeypatch.setattr(Shared, "in_slot", WeakSet([job.backend.rocks.shared]))  # without the instances of other tests
    notes = job.backend.state(ValueStateDescriptor("notes"))
    table = job.backend.rocks.by_name["notes"]
    for key in range(500):
        job.backend.cell[0] = key
        notes.update(b"x" * 100_000)
    assert len(table.data) * 100_000 < SMALL.cache_bytes
    job.write(KEYS, 1)
    assert len(job.backend.rocks.by_name["count"].data) > len(KEYS) * 0.9  # all but the first, of unknown size
    table.make_room()
    table.limit[0] = 10**6  # as if earlier values had been small
    for key in range(500):
        job.backend.cell[0] = key
        assert len(notes.value()) == 100_000
    assert len(table.data) * 100_000 < SMALL.cache_bytes


@pytest.mark.parametrize("size", [1, 3, 255, 256, 257, 600])
def test_a_map_keeps_its_order_from_call_to_call_though_room_is_made_in_between(job, size):
    job.backend.cell[0] = "key"
    state = job.backend.state(MapStateDescriptor("map"))
    table = job.backend.rocks.by_name["map"]
    state.put_all({n: -n for n in reversed(range(size + 2))})
    state.remove(size)
    state.remove(size + 1)
    seen = [list(state.keys())]
    for _ in range(3):
        table.limit[0] = 0  # the next call makes room
        seen.append([-value for value in state.values()])
    assert sorted(seen[0]) == list(range(size))
    assert all(order == seen[0] for order in seen)


def test_an_operator_without_state_has_no_instance():
    backend = rocksdb()
    captured = backend.snapshot(1)
    captured.key_groups = EVERYTHING
    files = captured.write(Target(MemoryFiles(), 1))
    assert (files.format, files.files) == ("heap", ())
    assert os.listdir(backend.folder) == []
    backend.close()


def test_large_files_are_written_in_pieces():
    job = Job(limits=RocksLimits(piece_bytes=1000))
    job.write(KEYS, 1)
    job.checkpoint()
    assert any(name.endswith(".sst+2") for name in job.files.names)
    assert all(file.size <= 1000 for file in job.files.files)
    before = {file.path for file in job.files.files}
    job.write(KEYS[:5], 2)
    job.checkpoint()
    assert len(before & {file.path for file in job.files.files}) > 3
    for make in (rocksdb, heap):
        again = Job(make, restored=job.restored())
        assert [again.read(key) for key in (KEYS[0], KEYS[-1])] == [2, 1]
        again.backend.close()
    job.backend.close()
    names = list(job.files.names)
    first = next(number for number, name in enumerate(names) if name.endswith("+1"))
    job.files = replace(job.files, names=(*names[:first], names[first][:-1] + "2", *names[first + 1 :]))
    with pytest.raises(CorruptFileError, match="a file called"):
        Job(restored=job.restored())


# --------------------------------------------------------------------------------------------------------------- damage


def damaged(store, path, how):
    data = store.read(path)
    store.delete(path)
    if how == "flipped":
        store.write(path, data[:100] + bytes([data[100] ^ 1]) + data[101:])
    elif how == "torn":
        store.write(path, data[:-10])


@pytest.mark.parametrize("how", ["missing", "flipped", "torn"])
@pytest.mark.parametrize("make", [rocksdb, heap])
def test_a_damaged_file_is_named(job, how, make):
    job.write(KEYS, 1)
    job.checkpoint()
    path = max(sorted_files(job.files).values(), key=job.store.size)
    damaged(job.store, path, how)
    with pytest.raises(CorruptFileError, match=path):
        Job(make, restored=job.restored())


def test_a_file_that_is_none_of_rocksdbs_is_refused(job):
    job.write(KEYS[:3], 1)
    job.checkpoint()
    names = tuple("../evil" if name == "CURRENT" else name for name in job.files.names)
    job.files = replace(job.files, names=names)
    with pytest.raises(CorruptFileError, match="evil"):
        Job(restored=job.restored())


@pytest.mark.parametrize("make", [rocksdb, heap])
def test_a_format_nobody_knows_is_refused(job, make):
    job.write(KEYS[:3], 1)
    job.checkpoint()
    job.files = replace(job.files, format="punched cards")
    with pytest.raises(CorruptFileError, match="punched cards"):
        Job(make, restored=job.restored())


def test_damage_on_the_local_disk_is_an_error_and_no_silent_end(job):
    job.write(KEYS, 1)
    job.checkpoint()
    folder = os.path.join(job.backend.folder, "copy")
    job.backend.rocks.store.checkpoint(folder)
    for name in os.listdir(folder):
        if name.endswith(".sst"):
            with open(os.path.join(folder, name), "r+b") as file:
                file.seek(200)
                file.write(b"\xff" * 2000)
    store = RocksStore(folder, SMALL)
    with pytest.raises(StateError, match="cannot read RocksDB"):
        list(store.scan(b"", b"\xff"))
    store.close()


# ------------------------------------------------------------------------------------------------------------ rescaling


def many_states(backend):
    return (
        backend.state(ValueStateDescriptor("value")),
        backend.state(ListStateDescriptor("list")),
        backend.state(MapStateDescriptor("map")),
    )


def test_several_instances_become_one_and_one_several():
    """States are numbered in the order of their first use, so two instances may number them differently."""
    store, parts, infos = MemoryFiles(), [], ()
    for index in range(3):
        groups = key_group_range(GROUPS, 3, index)
        backend = rocksdb(groups)
        if index == 1:
            backend.state(MapStateDescriptor("map"))
            backend.state(ValueStateDescriptor("elsewhere"))
        value, listed, entries = many_states(backend)
        for key in KEYS:
            if groups[0] <= key_group(key, GROUPS) <= groups[1]:
                backend.cell[0] = state_key(key)
                value.update(key)
                for part in range(3):
                    listed.add((key, part))
                    entries.put(part, key)
                    if key < "key-11":
                        backend.rocks.by_name["list"].make_room()  # one piece for each element
        captured = backend.snapshot(1)
        captured.key_groups = groups
        parts.append(captured.write(Target(store, 1)))
        infos = max(infos, backend.infos(), key=len)
        backend.close()
    for parallelism in (1, 2, 4):
        seen = 0
        for index in range(parallelism):
            groups = key_group_range(GROUPS, parallelism, index)
            mine = tuple(p for p in parts if p.key_group_first <= groups[1] and groups[0] <= p.key_group_last)
            backend = rocksdb(groups)
            backend.restore(OperatorRestore("operator", mine, (), infos, 1, GROUPS), store, groups)
            value, listed, entries = many_states(backend)
            keys = list(backend.keys("value"))
            assert set(keys) == {key for key in KEYS if groups[0] <= key_group(key, GROUPS) <= groups[1]}
            seen += len(keys)
            for key in keys[:200]:
                backend.cell[0] = state_key(key)
                assert value.value() == key
                assert list(listed.get()) == [(key, part) for part in range(3)]
                assert dict(entries.items()) == dict.fromkeys(range(3), key)
                listed.add("new")
                backend.rocks.by_name["list"].make_room()
                assert list(listed.get())[-1] == "new"
            backend.close()
        assert seen == len(KEYS)


def captured_files(backend, groups, store, checkpoint_id):
    captured = backend.snapshot(checkpoint_id)
    captured.key_groups = groups
    return captured.write(Target(store, checkpoint_id))


def key_in(groups):
    return next(key for key in KEYS if groups[0] <= key_group(key, GROUPS) <= groups[1])


def test_what_one_half_deleted_does_not_come_back_with_the_other(job):
    """Both halves were restored from one instance, and each has removed the other's part."""
    job.write(KEYS, 1)
    job.checkpoint()
    whole, store = job.restored()
    parts = []
    for index in range(2):
        groups = key_group_range(GROUPS, 2, index)
        half = Job(restored=(whole, store), groups=groups)
        for key in KEYS:
            if groups[0] <= key_group(key, GROUPS) <= groups[1] and key != key_in(groups):
                half.backend.cell[0] = key
                half.count.clear()
        parts.append(captured_files(half.backend, groups, store, 10 + index))
        half.backend.close()
    for given in (parts, parts[::-1]):
        again = rocksdb()
        again.restore(replace(whole, keyed=tuple(given)), store, EVERYTHING)
        again.state(ValueStateDescriptor("count"))
        assert set(again.keys("count")) == {key_in(key_group_range(GROUPS, 2, index)) for index in range(2)}
        again.close()


def test_what_is_added_to_a_list_after_a_merge_comes_last():
    """The largest instance is opened. The instance added to it has higher numbers for the pieces of its lists."""
    store, parts = MemoryFiles(), []
    ranges = [key_group_range(GROUPS, 2, index) for index in range(2)]
    for groups, pieces in zip(ranges, (1, 50), strict=True):
        backend = rocksdb(groups)
        backend.cell[0] = key_in(groups)
        if pieces == 1:
            backend.state(ValueStateDescriptor("large")).update(os.urandom(100_000))
        listed = backend.state(ListStateDescriptor("list"))
        for number in range(pieces):
            listed.add(number)
            backend.rocks.by_name["list"].make_room()
        infos = backend.infos()
        parts.append(captured_files(backend, groups, store, 1))
        backend.close()
    backend = rocksdb()
    backend.restore(OperatorRestore("operator", tuple(parts), (), infos, 1, GROUPS), store, EVERYTHING)
    listed = backend.state(ListStateDescriptor("list"))
    backend.cell[0] = key_in(ranges[1])
    for number in (50, 51):
        listed.add(number)
        backend.rocks.by_name["list"].make_room()
    assert list(listed.get()) == list(range(52))
    backend.close()
