"""Private folders: created closed to others, and refused when another user could have a hand in them."""

import os
import stat

import pytest

from tamias.errors import UnsafeFolderError
from tamias.storage.private_folder import PrivateFolder, create_private_file


def test_a_new_folder_is_closed_to_other_users_and_so_are_its_files(tmp_path):
    with PrivateFolder.opened(str(tmp_path / "new")) as folder, folder.below("inner") as inner:
        inner.write("a", b"data")
        assert folder.names() == ["inner"] and inner.names() == ["a"] and inner.read("a") == b"data"
    modes = [stat.S_IMODE((tmp_path / path).stat().st_mode) for path in ("new", "new/inner", "new/inner/a")]
    assert modes == [0o700, 0o700, 0o600]


def test_a_folder_that_is_exchanged_while_it_is_open_stays_the_folder_that_was_checked(tmp_path):
    (tmp_path / "victim").mkdir()
    (tmp_path / "victim" / "a").write_text("stays")
    with PrivateFolder.opened(str(tmp_path / "ours")) as folder:
        folder.write("a", b"goes")
        (tmp_path / "ours").rename(tmp_path / "moved")
        (tmp_path / "ours").symlink_to(tmp_path / "victim")
        folder.delete("a")
    assert os.listdir(tmp_path / "victim") == ["a"] and os.listdir(tmp_path / "moved") == []


@pytest.mark.parametrize("kind", ["link", "file", "open to others"])
def test_what_is_no_folder_of_our_own_is_refused(tmp_path, kind):
    place = tmp_path / "place"
    if kind == "link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        place.symlink_to(tmp_path / "elsewhere")
    elif kind == "file":
        place.write_text("")
    else:
        place.mkdir()
        place.chmod(0o711)
    with pytest.raises(UnsafeFolderError, match="must be a folder of this user's"), PrivateFolder.opened(str(place)):
        pass


@pytest.mark.parametrize("name", ["..", "", ".", "a/b"])
def test_a_name_is_never_a_path(tmp_path, name):
    with PrivateFolder.opened(str(tmp_path / "ours")) as folder, pytest.raises(AssertionError, match="not the name"):
        folder.write(name, b"")


def test_a_private_file_is_never_one_that_exists(tmp_path):
    create_private_file(str(tmp_path / "log"))
    assert stat.S_IMODE((tmp_path / "log").stat().st_mode) == 0o600
    (tmp_path / "link").symlink_to(tmp_path / "target")
    for name in ("log", "link"):
        with pytest.raises(FileExistsError):
            create_private_file(str(tmp_path / name))
    assert not (tmp_path / "target").exists()
