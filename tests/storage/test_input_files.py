"""Files by path or URL are opened, listed and copied alike on every storage."""

import os
import uuid

import pytest

from ekorn.errors import ConfigurationError
from ekorn.storage.file_store import open_files
from ekorn.storage.input_files import InputFile, download, list_files, open_input, size_of
from ekorn.storage.locations import join


@pytest.fixture(params=["local", "file URL", "fsspec", pytest.param("s3", marks=pytest.mark.heavy)])
def directory(request, tmp_path):
    """Return the address of a directory with a few files."""
    match request.param:
        case "local":
            address = str(tmp_path / "in")
        case "file URL":
            address = f"file://{tmp_path}/in"
        case "fsspec":
            address = f"memory://{uuid.uuid4().hex}/in"
        case "s3":
            address = request.getfixturevalue("s3_url")("in")
    store = open_files(address)
    for path in ("b", "a/2", "a/1", "a.txt", ".hidden/x", "a/_draft", "with space/ü"):
        store.write(path, path.encode() * 3)
    return address


def parts_below(address, files):
    start = len(address.partition("?")[0].removeprefix("file://")) + 1
    return [file.address.partition("?")[0][start:] for file in files]


def is_hidden(name):
    return name.startswith((".", "_"))


def test_files_are_listed_by_the_parts_of_their_paths_and_open_by_their_addresses(directory):
    found = list_files(directory, skip=is_hidden)
    names = parts_below(directory, found)
    assert names[:4] == ["a/1", "a/2", "a.txt", "b"]
    assert len(names) == 5
    for file, name in zip(found, ["a/1", "a/2", "a.txt", "b", "with space/ü"], strict=True):
        with open_input(file.address) as stream:
            assert stream.read() == name.encode() * 3
            stream.seek(1)
            assert stream.read(2) == (name.encode() * 3)[1:3]
        assert file.size_bytes == size_of(file.address) == len(name.encode()) * 3


def test_a_listing_that_is_not_recursive_has_the_files_of_the_directory_alone(directory):
    assert parts_below(directory, list_files(directory, recursive=False)) == ["a.txt", "b"]
    assert parts_below(directory, list_files(join(directory, "a"), skip=is_hidden)) == ["a/1", "a/2"]


def test_a_file_lists_as_itself(directory):
    [file] = list_files(join(directory, "b"))
    assert file.size_bytes == 3
    assert list_files(file.address) == [file]


def test_what_is_missing_is_reported_without_options(directory):
    for call in (open_input, size_of, list_files):
        with pytest.raises(FileNotFoundError) as raised:
            call(join(directory, "none"))
        assert "?" not in str(raised.value)
    with pytest.raises(FileNotFoundError):
        size_of(join(directory, "a"))


def test_a_file_or_a_directory_is_copied_whole(directory, tmp_path):
    download(join(directory, "b"), str(tmp_path / "file"))
    assert (tmp_path / "file").read_bytes() == b"bbb"
    download(join(directory, "a"), str(tmp_path / "copy"))
    assert sorted(os.listdir(tmp_path / "copy")) == ["1", "2", "_draft"]
    assert (tmp_path / "copy" / "1").read_bytes() == b"a/1" * 3
    download(directory, str(tmp_path / "all"))
    assert (tmp_path / "all" / "a" / "1").read_bytes() == b"a/1" * 3
    with pytest.raises(FileNotFoundError):
        download(join(directory, "none"), str(tmp_path / "none"))


def test_a_file_that_the_disk_cannot_describe_is_not_left_out(tmp_path):
    (tmp_path / "readable").write_text("x")
    (tmp_path / "gone").symlink_to(tmp_path / "nothing")
    assert [os.path.basename(file.address) for file in list_files(str(tmp_path))] == ["readable"]
    (tmp_path / "around").symlink_to(tmp_path / "around")
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        list_files(str(tmp_path))


def test_a_link_to_a_directory_above_ends_the_walk(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x").write_bytes(b"1")
    (tmp_path / "a" / "up").symlink_to(tmp_path)
    assert list_files(str(tmp_path)) == [InputFile(str(tmp_path / "a" / "x"), 1)]


def test_an_unknown_scheme_is_refused():
    with pytest.raises(ConfigurationError, match="neither pyarrow nor fsspec knows it"):
        open_input("nosuch://bucket/file")
