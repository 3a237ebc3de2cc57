"""Every file store behaves alike, and every damage of a state file is found."""

import os
import random
import threading
import uuid

import pyarrow.fs
import pytest
from fsspec.implementations.local import LocalFileSystem
from hypothesis import given
from hypothesis import strategies as st

from ekorn.errors import ConfigurationError, CorruptFileError
from ekorn.state.snapshots import StateFile
from ekorn.state.state_files import STATE_HEADER_BYTES, check_state, read_state, write_state
from ekorn.storage.arrow_access import ArrowAccess
from ekorn.storage.file_store import open_files
from ekorn.storage.fsspec_access import FsspecAccess
from ekorn.storage.local import LocalFiles
from ekorn.storage.memory import MemoryFiles
from ekorn.storage.remote import RemoteFiles

S3 = pytest.param("s3", marks=pytest.mark.heavy)


EXCLUSIVE = [
    "local",
    "memory",
    "below",
]  # of several publishers to the others the last one wins: checkpoint/ownership.py


@pytest.fixture(params=[*EXCLUSIVE, "fsspec objects", "fsspec tree", "arrow tree", S3])
def store(request, tmp_path):
    match request.param:
        case "local":
            return LocalFiles(tmp_path / "not" / "there" / "yet")
        case "memory":
            return MemoryFiles()
        case "below":
            return MemoryFiles().below("some/where")
        case "fsspec objects":
            return open_files(f"memory://{uuid.uuid4().hex}/dir")
        case "fsspec tree":  # any scheme whose puts may be seen half-written
            tree: FsspecAccess | ArrowAccess = FsspecAccess(LocalFileSystem(use_listings_cache=False), whole_puts=False)
            return RemoteFiles(tree, str(tmp_path / "tree"), "sftp://host/tree")
        case "arrow tree":  # opened like HDFS, except for the rules of renaming
            tree = ArrowAccess(pyarrow.fs.LocalFileSystem(), whole_puts=False)
            return RemoteFiles(tree, str(tmp_path / "tree"), "hdfs://host/tree")
        case "s3":
            return open_files(request.getfixturevalue("s3_url")("dir"))


# ------------------------------------------------------------------------------------------------------------ any store


def test_what_was_written_is_read_back(store):
    store.write("chk-1/a", b"state")
    assert store.read("chk-1/a") == b"state"
    assert store.size("chk-1/a") == 5
    assert store.exists("chk-1/a")
    assert store.exists("chk-1")
    assert store.list("chk-1") == ["a"]
    assert store.list() == ["chk-1"]


def test_an_empty_file_is_a_file(store):
    store.write("a", b"")
    assert store.exists("a")
    assert store.read("a") == b""


def test_a_published_name_is_used_once(store):
    store.publish("a", b"first")
    with pytest.raises(FileExistsError):
        store.publish("a", b"second")
    assert store.read("a") == b"first"
    assert store.list() == ["a"]


@pytest.mark.parametrize("store", EXCLUSIVE, indirect=True)
def test_a_name_is_used_once_where_the_store_looks(store):
    assert store.exclusive
    store.write("a", b"first")
    with pytest.raises(FileExistsError):
        store.write("a", b"second")
    assert store.read("a") == b"first"
    assert store.list() == ["a"]


def test_replacing_leaves_one_file(store):
    store.replace("alive", b"1")
    store.replace("alive", b"2")
    assert store.read("alive") == b"2"
    assert store.list() == ["alive"]


def test_a_missing_file_is_reported_when_read_and_fine_when_deleted(store):
    assert not store.exists("a")
    with pytest.raises(FileNotFoundError):
        store.read("a")
    with pytest.raises(FileNotFoundError):
        store.size("a")
    store.delete("a")
    store.delete("no/such/a")
    store.delete_tree("no/such")
    assert store.list("no/such") == []
    assert store.list() == []


def test_a_tree_goes_with_all_it_holds_and_nothing_else(store):
    for path in ("chk-1/a", "chk-1/deep/b", "chk-10/c"):
        store.write(path, b"x")
    store.delete_tree("chk-1")
    assert store.list() == ["chk-10"]


def test_made_directories_exist_and_may_be_made_again(store):
    store.make_dirs("shared/deep")
    store.make_dirs("shared/deep")
    assert store.exists("shared")
    assert store.exists("shared/deep")
    assert store.list() == ["shared"]


def test_a_store_below_sees_the_same_files(store):
    below = store.below("job/chk-1")
    below.write("a", b"x")
    assert store.read("job/chk-1/a") == b"x"
    assert below.list() == ["a"]
    store.delete_tree("job")
    assert not below.exists("a")


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/etc/passwd",
        "..",
        "../x",
        "a/../../x",
        "a//b",
        "a/",
        "./a",
        "a/./b",
        "C:/x",
        "a\\..\\b",
        "a\0b",
        "file:///x",
    ],
)
def test_a_path_that_could_leave_the_root_is_refused(store, path):
    for call in (store.read, store.exists, store.delete, store.delete_tree, store.size, store.make_dirs, store.below):
        with pytest.raises(ConfigurationError):
            call(path)
    for call in (store.write, store.publish, store.replace):
        with pytest.raises(ConfigurationError):
            call(path, b"x")


@pytest.mark.parametrize("store", EXCLUSIVE, indirect=True)
def test_of_many_publishers_one_wins(store):
    assert store.exclusive
    outcomes = []

    def publish(number):
        try:
            store.publish("claim", b"%d" % number)
            outcomes.append(number)
        except FileExistsError:
            pass

    threads = [threading.Thread(target=publish, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcomes) == 1
    assert store.read("claim") == b"%d" % outcomes[0]
    assert store.list() == ["claim"]


# ------------------------------------------------------------------------------------------------------ the local store


def test_a_symbolic_link_that_leads_out_is_refused(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(b"secret")
    root = tmp_path / "root"
    root.mkdir()
    (root / "dir").symlink_to(outside)
    (root / "file").symlink_to(outside / "secret")
    store = LocalFiles(root)
    for path in ("dir/secret", "file"):
        with pytest.raises(ConfigurationError, match="leads out of"):
            store.read(path)
    with pytest.raises(ConfigurationError, match="leads out of"):
        store.write("dir/new", b"x")
    store.delete_tree("dir")
    store.delete("file")
    assert store.list() == []
    assert (outside / "secret").read_bytes() == b"secret"


def test_a_symbolic_link_that_stays_inside_is_followed(tmp_path):
    store = LocalFiles(tmp_path)
    store.write("chk-1/a", b"x")
    (tmp_path / "latest").symlink_to("chk-1")
    assert store.read("latest/a") == b"x"


def test_a_disk_that_answers_with_an_error_has_not_said_that_a_file_is_missing(tmp_path):
    with pytest.raises(OSError, match="File name too long"):
        LocalFiles(tmp_path).exists("x" * 300)


def test_a_root_that_is_itself_a_link_is_fine(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    store = LocalFiles(tmp_path / "link")
    store.write("a", b"x")
    assert store.read("a") == b"x"


def test_a_write_that_fails_leaves_nothing_behind(tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    store = LocalFiles(tmp_path)
    monkeypatch.setattr(os, "fsync", full)
    for call in (store.write, store.publish, store.replace):
        with pytest.raises(OSError, match="No space"):
            call("a", b"x" * 100)
    assert store.list() == []


def test_a_file_system_without_hard_links_still_publishes_once(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    store = LocalFiles(tmp_path)
    store.publish("a", b"first")
    with pytest.raises(FileExistsError):
        store.publish("a", b"second")
    assert store.read("a") == b"first"
    assert store.list() == ["a"]
    assert not store.exclusive


def test_a_store_opens_from_a_path_or_a_file_url(tmp_path):
    LocalFiles(tmp_path).write("with space/a", b"x")
    for url in (str(tmp_path), f"file://{tmp_path}", f"file://localhost{tmp_path}", f"file:{tmp_path}"):
        assert open_files(url).read("with space/a") == b"x"
    assert open_files(f"file://{tmp_path}/with%20space").read("a") == b"x"
    store = open_files(str(tmp_path))
    assert open_files(store.url).read("with space/a") == b"x"


@pytest.mark.parametrize("url", ["file://checkpoints/dir", "file:dir", "file:", "file://host"])
def test_a_file_url_without_an_absolute_path_is_explained(url):
    with pytest.raises(ConfigurationError, match="file:///path"):
        open_files(url)


@pytest.mark.parametrize("name", ["a#1", "a?b=1", "100%", "ä ö"])
def test_a_name_in_a_file_url_may_have_what_means_something_elsewhere(tmp_path, name):
    open_files(f"file://{tmp_path}/{name}").write("x", b"1")
    assert (tmp_path / name / "x").read_bytes() == b"1"


def test_a_remote_address_whose_end_would_be_lost_is_refused_without_showing_secrets():
    with pytest.raises(ConfigurationError, match="write %23") as refused:
        open_files("s3://key:sec#ret@bucket/dir")
    assert "sec" not in str(refused.value)


# --------------------------------------------------------------------------------------------------------- state files


@given(payload=st.binary(max_size=200), threshold=st.integers(0, 100))
def test_state_below_the_threshold_is_inline_and_any_state_reads_back(payload, threshold):
    store = MemoryFiles()
    kept = write_state(store, "shared/a", payload, threshold)
    assert (kept.inline is not None) == (len(payload) < threshold)
    assert (kept.path is None) == (kept.inline is not None)
    assert kept.size == len(payload)
    assert read_state(store, kept) == payload
    check_state(store, kept, full=False)
    check_state(store, kept, full=True)


def damaged(store, kept, data):
    store.delete(kept.path)
    store.write(kept.path, data)
    with pytest.raises(CorruptFileError) as caught:
        read_state(store, kept)
    assert kept.path in str(caught.value)
    return caught.value


def test_a_flipped_bit_is_found_wherever_it_is():
    store = MemoryFiles()
    kept = write_state(store, "chk-1/a", random.Random(1).randbytes(500), 0)
    data = store.read("chk-1/a")
    for position in range(len(data)):
        for bit in (0, 3, 7):
            flipped = bytearray(data)
            flipped[position] ^= 1 << bit
            damaged(store, kept, bytes(flipped))


def test_a_file_cut_anywhere_is_found():
    store = MemoryFiles()
    kept = write_state(store, "chk-1/a", b"x" * 100, 0)
    data = store.read("chk-1/a")
    for size in range(len(data)):
        damaged(store, kept, data[:size])
        with pytest.raises(CorruptFileError):
            check_state(store, kept, full=False)
    damaged(store, kept, data + b"x")


def test_a_missing_file_is_found():
    store = MemoryFiles()
    kept = write_state(store, "chk-1/a", b"x", 0)
    store.delete("chk-1/a")
    for full in (True, False):
        with pytest.raises(CorruptFileError, match="no such file"):
            check_state(store, kept, full=full)


def test_a_healthy_file_of_someone_else_is_found():
    store = MemoryFiles()
    kept = write_state(store, "chk-1/a", b"mine", 0)
    write_state(store, "chk-1/b", b"your", 0)
    damaged(store, kept, store.read("chk-1/b"))


def test_a_newer_format_is_refused_as_such():
    store = MemoryFiles()
    kept = write_state(store, "chk-1/a", b"x", 0)
    data = bytearray(store.read("chk-1/a"))
    data[9] = 2
    assert "version 2" in str(damaged(store, kept, bytes(data)))


def test_inline_state_has_its_proof_too():
    with pytest.raises(CorruptFileError, match="inside the metadata"):
        read_state(MemoryFiles(), StateFile(size=1, crc32=0, inline=b"x"))


def test_the_header_is_as_documented():
    store = MemoryFiles()
    write_state(store, "a", b"hello", 0)
    assert (
        store.read("a").hex() == "454b4f5354415445" + "0001" + "0000" + "3610a686" + "0000000000000005" + "68656c6c6f"
    )
    assert STATE_HEADER_BYTES == 24
