"""Every file store behaves alike, and every damage of a state file is found."""

import os
import random
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
from ekorn.testing.kits import FileStoreKit, TakesNamesOnce

S3 = pytest.param("s3", marks=pytest.mark.heavy)


class TestExclusiveStores(FileStoreKit, TakesNamesOnce):
    @pytest.fixture(params=["local", "memory", "below"])
    def store(self, request, tmp_path):
        match request.param:
            case "local":
                return LocalFiles(tmp_path / "not" / "there" / "yet")
            case "memory":
                return MemoryFiles()
            case "below":
                return MemoryFiles().below("some/where")


class TestOtherStores(FileStoreKit):
    """Stores where the last of several publishers wins: checkpoint/ownership.py."""

    @pytest.fixture(params=["fsspec objects", "fsspec tree", "arrow tree", S3])
    def store(self, request, tmp_path):
        match request.param:
            case "fsspec objects":
                return open_files(f"memory://{uuid.uuid4().hex}/dir")
            case "fsspec tree":  # any scheme whose puts may be seen half-written
                local = LocalFileSystem(use_listings_cache=False)
                return RemoteFiles(FsspecAccess(local, whole_puts=False), str(tmp_path / "tree"), "sftp://host/tree")
            case "arrow tree":  # opened like HDFS, except for the rules of renaming
                tree = ArrowAccess(pyarrow.fs.LocalFileSystem(), whole_puts=False)
                return RemoteFiles(tree, str(tmp_path / "tree"), "hdfs://host/tree")
            case "s3":
                return open_files(request.getfixturevalue("s3_url")("dir"))


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
        with pytest.raises(ConfigurationError, match="is outside"):
            store.read(path)
    with pytest.raises(ConfigurationError, match="is outside"):
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
