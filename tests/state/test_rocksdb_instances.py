"""What an instance of RocksDB records about its tables, and the files that a checkpoint of it consists of."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from ekorn.errors import CorruptFileError
from ekorn.functions.state.state_descriptors import ListStateDescriptor, ValueStateDescriptor
from ekorn.state.rocksdb.instance import InstanceMeta, read_meta
from ekorn.state.rocksdb.instance_files import Uploads, fetch, in_parallel
from ekorn.state.rocksdb.store import META, RocksStore
from ekorn.state.snapshots import ROCKSDB, KeyedFiles, StateFile, StateInfo
from ekorn.state.state_files import inline_state
from ekorn.storage.memory import MemoryFiles
from tests.state.backends import SMALL, rocksdb

RECORD = META + b"tables"


@pytest.fixture
def store(tmp_path: Path) -> Any:
    made = RocksStore(str(tmp_path / "db"), SMALL)
    yield made
    made.close()


def record(store: RocksStore, data: bytes) -> None:
    batch = store.batch()
    batch.put(RECORD, data)
    batch.done()


# ------------------------------------------------------------------------------------------------ the record of tables


def test_the_record_of_an_instance_is_read_back(store: RocksStore) -> None:
    states = [[3, "a", "value", False], [5, "b", "list", True]]
    record(store, json.dumps({"version": 1, "next_piece": 7, "states": states}).encode())
    infos = {3: StateInfo("a", "value", ttl=False), 5: StateInfo("b", "list", ttl=True)}
    assert read_meta(store) == InstanceMeta(7, infos)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "without a list of its states"),
        (b"{", r"a damaged list of states \(JSONDecodeError"),
        (b"[]", r"a damaged list of states \(TypeError"),
        (b"{}", r"a damaged list of states \(KeyError: 'version'"),
        (b'{"version": 1, "states": []}', r"a damaged list of states \(KeyError: 'next_piece'"),
        (b'{"version": 1, "next_piece": 1, "states": [[1, "a"]]}', r"a damaged list of states \(ValueError"),
        (b'{"version": 1, "next_piece": "x", "states": []}', r"a damaged list of states \(ValueError"),
        (b"[" * 100_000, r"a damaged list of states \(RecursionError"),
        (b'{"version": 3}', "keyed state of format version 3"),
        (b'{"version": 0}', "keyed state of format version 0"),
    ],
)
def test_a_damaged_record_is_refused_with_the_folder(store: RocksStore, data: bytes | None, message: str) -> None:
    if data is not None:
        record(store, data)
    with pytest.raises(CorruptFileError, match=rf"db.*{message}"):
        read_meta(store)


@pytest.mark.parametrize("version", [1, 2])
def test_the_records_of_all_versions_are_read(store: RocksStore, version: int) -> None:
    record(store, b'{"version": %d, "next_piece": 7, "states": [[1, "value", "value", false]]}' % version)
    assert read_meta(store) == (7, {1: StateInfo("value", "value")})


def test_the_record_is_written_when_a_table_or_a_number_is_new_and_not_again() -> None:
    backend = rocksdb()
    value = backend.state(ValueStateDescriptor("value"))
    backend.cell[0] = "key"
    value.update(1)
    backend.rocks.flush()
    first = backend.rocks.store.get(RECORD)
    assert first is not None and json.loads(first)["states"] == [[1, "value", "value", False]]
    batch = backend.rocks.store.batch()
    batch.delete(RECORD)
    batch.done()
    backend.rocks.flush()
    assert backend.rocks.store.get(RECORD) is None, "nothing is new"
    backend.state(ListStateDescriptor("list"))
    backend.rocks.flush()
    second = json.loads(backend.rocks.store.get(RECORD) or b"")
    assert [state[:2] for state in second["states"]] == [[1, "value"], [2, "list"]]
    backend.close()


# ----------------------------------------------------------------------------------------------- files of a checkpoint


def part(*names: str) -> KeyedFiles:
    files = tuple(inline_state(f"<{name}>".encode()) for name in names)
    return KeyedFiles(0, 15, files, format=ROCKSDB, names=names)


@pytest.mark.parametrize("threads", [1, 3])
def test_the_pieces_of_a_file_are_put_together_in_order(tmp_path: Path, threads: int) -> None:
    names = ("000012.sst", "000012.sst+1", "000012.sst+2", "CURRENT", "MANIFEST-5", "heap", "000013.sst", "heap")
    found = fetch(part(*names), MemoryFiles(), str(tmp_path / "db"), threads)
    assert {name: len(pieces) for name, pieces in found.items()} == {"000012.sst": 3, "000013.sst": 1}
    written = {path.name: path.read_text() for path in (tmp_path / "db").iterdir()}
    assert written == {
        "000012.sst": "<000012.sst><000012.sst+1><000012.sst+2>",
        "000013.sst": "<000013.sst>",
        "CURRENT": "<CURRENT>",
        "MANIFEST-5": "<MANIFEST-5>",
    }


@pytest.mark.parametrize(
    "names",
    [
        ("../000012.sst",),
        ("LOCK",),
        ("000012.sst+1",),
        ("000012.sst", "000012.sst"),
        ("000012.sst", "000012.sst+2"),
        ("000012.sst", "000012.sst+x"),
        ("000012.sst", "000012.sst+1", "000012.sst+1"),
        ("000012.sst+0",),
        ("heap+1",),
        ("xCURRENT",),
        ("CURRENTx",),
    ],
)
def test_a_name_that_no_file_of_rocksdb_has_is_refused_before_anything_is_written(
    tmp_path: Path, names: tuple[str, ...]
) -> None:
    with pytest.raises(CorruptFileError, match=r"a file called .* a file of a RocksDB checkpoint"):
        fetch(part(*names), MemoryFiles(), str(tmp_path / "db"), 1)
    assert list((tmp_path / "db").iterdir()) == []


def test_some_calls_run_at_a_time_and_the_first_error_is_raised() -> None:
    together = threading.Barrier(3, timeout=30)
    assert in_parallel(lambda n: (together.wait(), n)[1], [1, 2, 3], 3) == [1, 2, 3]
    assert in_parallel(lambda n: threading.current_thread().name, [1, 2], 1) == [threading.current_thread().name] * 2
    assert in_parallel(str, [], 4) == []
    with pytest.raises(ZeroDivisionError):
        in_parallel(lambda n: 1 // n, [1, 0, 2], 2)


# -------------------------------------------------------------------------------------------- files to build on


def pieces(path: str | None) -> tuple[StateFile, ...]:
    return (StateFile(1, 0, path=path, inline=None if path else b"x"),)


def test_later_checkpoints_build_on_the_last_completed_one() -> None:
    uploads = Uploads()
    assert uploads.base == {}
    first, second, third = ({f"{n}.sst": pieces(f"shared/{n}")} for n in (1, 2, 3))
    uploads.written(1, first)
    uploads.written(2, second)
    uploads.written(3, third)
    assert uploads.base == {}
    uploads.completed(2)
    assert uploads.base == second
    uploads.completed(1)
    assert uploads.base == second, "it was forgotten with the newer one"
    uploads.completed(9)
    assert uploads.base == second
    uploads.completed(3)
    assert uploads.base == second, "a checkpoint after it is complete already"


def test_of_a_restored_checkpoint_shared_files_are_built_on_and_files_of_its_own_are_not() -> None:
    uploads = Uploads()
    shared, inline, own = pieces("shared/1"), pieces(None), pieces("chk-1/2")
    uploads.start_from({"1.sst": shared, "2.sst": inline, "3.sst": own, "4.sst": (*shared, *own)})
    assert uploads.base == {"1.sst": shared, "2.sst": inline}
