"""Durable local files and directories, and renames that never overwrite."""

import os

import pytest

from ekorn.storage.durable import create_file, make_directory, rename_exclusive, sync_directory, sync_file


def test_a_file_is_created_once(tmp_path):
    path = str(tmp_path / "a")
    create_file(path, b"first", write_bytes=2)
    with pytest.raises(FileExistsError):
        create_file(path, b"second")
    sync_file(path)
    assert (tmp_path / "a").read_bytes() == b"first"


@pytest.mark.parametrize("hard_links", [True, False])
def test_a_rename_never_replaces_a_file(tmp_path, monkeypatch, hard_links):
    def refuse(*_):
        raise OSError(1, "Operation not permitted")

    if not hard_links:
        monkeypatch.setattr(os, "link", refuse)
    draft, target = tmp_path / "draft", tmp_path / "target"
    draft.write_bytes(b"1")
    assert rename_exclusive(str(draft), str(target)) == hard_links
    assert not draft.exists()
    draft.write_bytes(b"2")
    with pytest.raises(FileExistsError):
        rename_exclusive(str(draft), str(target))
    assert (draft.read_bytes(), target.read_bytes()) == (b"2", b"1")


def test_directories_are_made_with_those_above(tmp_path):
    make_directory(str(tmp_path / "a" / "b"))
    make_directory(str(tmp_path / "a" / "b"))
    assert (tmp_path / "a" / "b").is_dir()


def test_a_missing_directory_cannot_be_synced(tmp_path):
    with pytest.raises(FileNotFoundError):
        sync_directory(str(tmp_path / "none"))
