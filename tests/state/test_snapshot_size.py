"""Snapshots and restores hold one file in memory beside the state, and a large state is cut into files of that size."""

import itertools
import random
import tracemalloc

import pytest

from ekorn.functions.state.state_descriptors import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from ekorn.keygroups import KeyGroupRange
from ekorn.state.canonical_format import CHUNK_BYTES, PAYLOAD_BYTES, TableEntries, decode_file, encode_payloads
from ekorn.state.snapshots import OperatorRestore, StateInfo
from ekorn.state.state_files import write_state
from ekorn.storage.local import LocalFiles
from ekorn.storage.memory import MemoryFiles
from tests.state.backends import BACKENDS, EVERYTHING, GROUPS, heap, rocksdb

MB = 1 << 20
SLACK = 3 * PAYLOAD_BYTES  # a payload, its copy behind the header of the file, and the chunks of the next one


class Target:
    """The target of one subtask's snapshot."""

    names = itertools.count()

    def __init__(self, store, payload_bytes=PAYLOAD_BYTES):
        self.store, self.bytes_written, self.payload_bytes = store, 0, payload_bytes

    def shared(self, label):
        return f"shared/{label}-{next(self.names)}"

    exclusive = shared

    def write(self, path, payload):
        return write_state(self.store, path, payload, 0)


def filled(make, entries):
    """Return a backend with a value state."""
    backend = make()
    state = backend.state(ValueStateDescriptor("state"))
    for key, value in entries:
        backend.cell[0] = key
        state.update(value)
    return backend


def written(captured, target):
    captured.key_groups = EVERYTHING
    return captured.write(target)


def restore_into(make, part, store, groups=EVERYTHING):
    backend = make(groups)
    backend.restore(OperatorRestore("op", (part,), max_parallelism=GROUPS, label="'count'"), store, groups)
    return backend


def values_of(backend, keys):
    state = backend.state(ValueStateDescriptor("state"))
    found = {}
    for key in keys:
        backend.cell[0] = key
        if (value := state.value()) is not None:
            found[key] = value
    return found


def peak_of(action):
    """Return what an action returns, and the most memory that it took while it ran."""
    tracemalloc.start()
    try:
        return action(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def large():
    """Return 200 MB in 200 entries, which RocksDB cannot compress."""
    return [(key, random.Random(key).randbytes(MB)) for key in range(200)]


def small():
    """Return 400,000 entries, which take about 60 MB in a table."""
    return [(key, key * 1_000_003) for key in range(400_000)]


@pytest.mark.heavy
@pytest.mark.parametrize("kind", ["snapshot", "full_snapshot"])
@pytest.mark.parametrize("make", [large, small])
def test_a_snapshot_takes_one_file_of_memory_beside_the_state(tmp_path, kind, make):
    entries = make()
    backend, store = filled(heap, entries), LocalFiles(tmp_path)
    captured, to_capture = peak_of(lambda: getattr(backend, kind)(1))
    part, to_write = peak_of(lambda: written(captured, Target(store)))
    references = len(entries) * (8 + 8)  # to a key and a value
    keys = len(entries) * 64  # the set of changed keys is handed over, and copied once
    assert to_capture < references + keys + MB, f"{to_capture / MB:.0f} MB to capture the state"
    assert to_write < SLACK, f"{to_write / MB:.0f} MB to write the state"
    assert values_of(restore_into(heap, part, store), dict(entries)) == dict(entries)


@pytest.mark.heavy
def test_a_canonical_savepoint_of_rocksdb_takes_one_file_of_memory_however_large_the_values(tmp_path):
    backend, store = filled(rocksdb, large()), LocalFiles(tmp_path)
    captured = backend.full_snapshot(1)
    part, to_write = peak_of(lambda: written(captured, Target(store)))
    assert to_write < SLACK, f"{to_write / MB:.0f} MB to write the state"
    assert len(part.files) > 10
    backend.close()


@pytest.mark.heavy
def test_checkpoints_of_rocksdb_are_written_and_fetched_in_pieces(tmp_path):
    backend, store = filled(rocksdb, large()), LocalFiles(tmp_path)
    captured = backend.snapshot(1)
    part, to_write = peak_of(lambda: written(captured, Target(store)))
    backend.close()
    assert sum(file.size for file in part.files) > 100 * MB
    restored, to_restore = peak_of(lambda: restore_into(rocksdb, part, store))
    assert to_write < SLACK, f"{to_write / MB:.0f} MB to write the state"
    assert to_restore < SLACK, f"{to_restore / MB:.0f} MB to restore the state"
    restored.close()


@pytest.mark.heavy
@pytest.mark.parametrize("groups", [EVERYTHING, KeyGroupRange(0, GROUPS // 2)], ids=["same", "rescaled"])
def test_a_restore_takes_one_file_of_memory_beside_the_state(tmp_path, groups):
    store = LocalFiles(tmp_path)
    part = written(filled(heap, large()).snapshot(1), Target(store))
    backend, to_restore = peak_of(lambda: restore_into(heap, part, store, groups))
    state_bytes = sum(len(value) for _, value in backend.entries("state"))
    assert to_restore < state_bytes + SLACK, f"{to_restore / MB:.0f} MB to restore {state_bytes / MB:.0f} MB"


@pytest.mark.heavy
def test_a_restore_builds_the_table_of_small_entries_once(tmp_path):
    store = LocalFiles(tmp_path)
    entries = small()
    part = written(filled(heap, entries).snapshot(1), Target(store))
    tracemalloc.start()
    try:
        backend = restore_into(heap, part, store)
        state_bytes, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(list(backend.keys("state"))) == len(entries)
    assert peak_bytes < 1.4 * state_bytes, f"{peak_bytes / MB:.0f} MB to restore {state_bytes / MB:.0f} MB"


# ------------------------------------------------------------------------------------------------------------- cutting


@pytest.mark.parametrize("after", ["heap", "rocksdb", "rocksdb, cramped"])
@pytest.mark.parametrize("before", BACKENDS)
def test_a_state_above_the_bound_is_cut_into_files_and_restored_at_any_parallelism(before, after):
    store, bound = MemoryFiles(), 2_000
    entries = {f"key-{n}": f"{n}" * 50 for n in range(500)}
    backend = filled(BACKENDS[before], entries.items())
    part = written(backend.full_snapshot(1), Target(store, bound))
    backend.close()
    assert len(part.files) > 20
    assert max(file.size for file in part.files) < 2 * bound
    found = {}
    for groups in (KeyGroupRange(0, 6), KeyGroupRange(7, GROUPS - 1)):
        restored = restore_into(BACKENDS[after], part, store, groups)
        mine = values_of(restored, entries)
        restored.close()
        assert mine and not found.keys() & mine.keys()
        found |= mine
    assert found == entries


def test_changes_above_the_bound_are_cut_too_and_win_over_what_was_there():
    store, bound = MemoryFiles(), 2_000
    entries = {f"key-{n}": "old" * 20 for n in range(1_000)}
    backend = filled(heap, entries.items())
    written(backend.snapshot(1), Target(store, bound))
    backend.snapshot_completed(1)
    state = backend.state(ValueStateDescriptor("state"))
    for n in range(400):
        backend.cell[0] = f"key-{n}"
        state.update("new" * 20) if n < 300 else state.clear()
    before = len(written(backend.snapshot(2), target := Target(store, bound)).files)
    backend.snapshot_completed(2)
    backend.cell[0] = "key-0"
    state.update("newest")
    part = written(backend.snapshot(3), target)
    assert len(part.files) == before + 1, "changes are written on top of the whole, cut or not"
    expected = {key: value for n, (key, value) in enumerate(entries.items()) if n >= 400}
    expected |= {f"key-{n}": "new" * 20 for n in range(300)} | {"key-0": "newest"}
    assert values_of(restore_into(heap, part, store), entries) == expected


def test_what_changes_while_a_snapshot_is_written_is_not_in_it():
    store = MemoryFiles()
    backend = heap()
    value = backend.state(ValueStateDescriptor("value"))
    listed = backend.state(ListStateDescriptor("list"))
    mapped = backend.state(MapStateDescriptor("map"))

    def change(number):
        for key in range(100):
            backend.cell[0] = key
            value.update([number])
            listed.add([number])
            mapped.put(number, [number])

    class Meanwhile(Target):
        def write(self, path, payload):
            change(2)
            return super().write(path, payload)

    change(1)
    part = written(backend.snapshot(1), Meanwhile(store, 1_000))
    assert len(part.files) > 3
    restored = restore_into(heap, part, store)
    for key in range(100):
        restored.cell[0] = key
        assert restored.state(ValueStateDescriptor("value")).value() == [1]
        assert list(restored.state(ListStateDescriptor("list"))) == [[1]]
        assert dict(restored.state(MapStateDescriptor("map")).items()) == {1: [1]}


def chunks_of(payload):
    """Return the sizes of the chunks of a payload, and the chunks."""
    store = MemoryFiles()
    chunks = list(decode_file(store, write_state(store, "f", payload, 0)))
    return [len(repr(chunk)) for chunk in chunks], chunks


def test_chunks_are_cut_by_bytes_and_an_entry_is_never_cut():
    sizes = [10] * 5_000 + [3_000] * 50 + [100_000] + [10] * 5_000
    keys, values = list(range(len(sizes))), [b"x" * size for size in sizes]
    table = TableEntries(StateInfo("s", "value"), keys, values, list(range(20_000)), full=True)
    payloads = list(encode_payloads([table], payload_bytes=50_000, chunk_bytes=5_000))
    assert [len(p) for p in payloads if len(p) > 60_000] == [max(map(len, payloads))] and len(payloads) > 5
    chunks = [chunk for payload in payloads for chunk in chunks_of(payload)[1]]
    assert all(sum(map(len, c.values)) <= 5_000 or c.values == [b"x" * 100_000] for c in chunks)
    assert [k for c in chunks for k in c.keys] == keys and [v for c in chunks for v in c.values] == values
    assert [k for c in chunks for k in c.gone] == list(range(20_000))
    assert len(chunks) < 200, "chunks grow again after large entries"


@pytest.mark.soak
def test_a_single_value_above_4_gib_is_saved_and_restored(tmp_path):
    size = (4 << 30) + CHUNK_BYTES
    backend, store = filled(heap, [("small", 1), ("large", bytearray(size)), ("last", 2)]), LocalFiles(tmp_path)
    part = written(backend.full_snapshot(1), Target(store))
    backend.close()
    del backend
    assert sum(file.size for file in part.files) > size
    restored = restore_into(heap, part, store)
    assert values_of(restored, ["small", "last"]) == {"small": 1, "last": 2}
    restored.cell[0] = "large"
    found = restored.state(ValueStateDescriptor("state")).value()
    assert type(found) is bytearray and len(found) == size
