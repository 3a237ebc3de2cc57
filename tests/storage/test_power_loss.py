"""Bytes written to local files survive a loss of power from the moment the call returns."""

import os

import pytest

from ekorn.storage.durable import create_file, make_directory, sync_directory, sync_file
from ekorn.storage.local import LocalFiles
from tests.storage.power_loss import Disk


@pytest.fixture
def disk(tmp_path, monkeypatch):
    disk = Disk(tmp_path, monkeypatch)
    yield disk
    disk.close()


def test_unsynced_bytes_and_names_are_lost(disk, tmp_path):
    (tmp_path / "a").write_bytes(b"1")
    disk.fail()
    assert not (tmp_path / "a").exists()

    (tmp_path / "a").write_bytes(b"1")
    sync_directory(str(tmp_path))
    disk.fail()
    assert (tmp_path / "a").read_bytes() == b"", "the name was synced, the bytes were not"

    (tmp_path / "a").write_bytes(b"12")
    sync_file(str(tmp_path / "a"))
    os.rename(tmp_path / "a", tmp_path / "b")
    disk.fail()
    assert os.listdir(tmp_path) == ["a"], "the bytes were synced, the new name was not"
    assert (tmp_path / "a").read_bytes() == b"12"


def test_a_created_file_survives(disk, tmp_path):
    create_file(str(tmp_path / "a"), b"12345", write_bytes=2)
    disk.fail()
    assert (tmp_path / "a").read_bytes() == b"12345"


def test_created_directories_survive_with_those_above(disk, tmp_path):
    make_directory(str(tmp_path / "a" / "b" / "c"))
    disk.fail()
    assert (tmp_path / "a" / "b" / "c").is_dir()


@pytest.mark.parametrize("call", ["write", "publish", "replace"])
def test_files_of_a_store_survive_in_new_directories(disk, tmp_path, call):
    files = LocalFiles(tmp_path / "store")
    getattr(files, call)("a/b/file", b"123")
    disk.fail()
    assert files.read("a/b/file") == b"123"
    assert os.listdir(tmp_path / "store" / "a" / "b") == ["file"], "a draft does not come back"


def test_a_replaced_file_survives_with_its_new_content(disk):
    files = LocalFiles(disk.root)
    files.replace("file", b"1")
    files.replace("file", b"2")
    disk.fail()
    assert files.read("file") == b"2"


@pytest.mark.parametrize("call", ["publish", "replace"])
def test_a_name_never_survives_without_its_bytes(disk, call):
    files = LocalFiles(disk.root)
    getattr(files, call)("file", b"123")
    disk.fail(names="present")
    assert files.read("file") == b"123"
