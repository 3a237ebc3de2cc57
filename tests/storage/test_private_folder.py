"""Private folders: created closed to others, and refused when another user could have a hand in them."""

import os
import stat

import pytest

from ekorn.errors import UnsafeFolderError
from ekorn.storage.private_folder import PrivateFolder, create_private_file


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
    with pytest.raises(UnsafeFolderError, match="must be a folder of this user"), PrivateFolder.opened(str(place)):
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


def test_a_file_of_our_own_that_is_closed_to_others_is_no_folder(tmp_path):
    create_private_file(str(tmp_path / "place"))
    with pytest.raises(UnsafeFolderError, match="it is not a folder"), PrivateFolder.opened(str(tmp_path / "place")):
        pass


@pytest.mark.parametrize("mode", [0o710, 0o701, 0o740, 0o704, 0o720, 0o702])
def test_a_folder_that_the_group_or_others_have_any_right_to_is_refused(tmp_path, mode):
    (tmp_path / "place").mkdir()
    (tmp_path / "place").chmod(mode)
    with pytest.raises(UnsafeFolderError, match=f"its mode is {mode:o}"), PrivateFolder.opened(str(tmp_path / "place")):
        pass


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_a_folder_of_another_user_is_refused_at_every_depth(tmp_path):
    place, inner = tmp_path / "place", tmp_path / "place" / "inner"
    place.mkdir(mode=0o700)
    inner.mkdir(mode=0o700)
    os.chown(inner, 65534, 65534)
    with (
        PrivateFolder.opened(str(place)) as folder,
        pytest.raises(UnsafeFolderError, match="user 65534 owns it"),
        folder.below("inner"),
    ):
        pass
    os.chown(place, 65534, 65534)
    with pytest.raises(UnsafeFolderError, match="user 65534 owns it"), PrivateFolder.opened(str(place)):
        pass


def test_a_link_in_place_of_a_file_is_neither_read_nor_written(tmp_path):
    (tmp_path / "victim").write_text("mine")
    with PrivateFolder.opened(str(tmp_path / "ours")) as folder:
        (tmp_path / "ours" / "a").symlink_to(tmp_path / "victim")
        with pytest.raises(OSError, match="symbolic link"):
            folder.read("a")
        with pytest.raises(OSError, match="symbolic link"):
            folder.write("a", b"theirs")
    assert (tmp_path / "victim").read_text() == "mine"


def test_a_pipe_in_place_of_a_file_does_not_make_us_wait(tmp_path):
    with PrivateFolder.opened(str(tmp_path / "ours")) as folder:
        os.mkfifo(tmp_path / "ours" / "pipe")
        assert folder.read("pipe") == b""
        with pytest.raises(OSError, match="No such device"):
            folder.write("pipe", b"data")


def test_everything_in_an_open_folder_is_reached_through_it(tmp_path):
    """Exchange the folder by a link to the victim's, after it was checked."""
    victim = tmp_path / "victim"
    (victim / "inner").mkdir(parents=True, mode=0o700)
    victim.chmod(0o700)
    (victim / "theirs").write_text("secret")
    with PrivateFolder.opened(str(tmp_path / "ours")) as folder:
        folder.write("mine", b"data")
        (tmp_path / "ours").rename(tmp_path / "moved")
        (tmp_path / "ours").symlink_to(victim)
        assert folder.names() == ["mine"]
        with pytest.raises(FileNotFoundError):
            folder.read("theirs")
        folder.remove_if_empty("inner")
        folder.write("theirs", b"ours")
        with folder.below("new") as new:
            new.write("file", b"")
    assert (victim / "theirs").read_text() == "secret"
    assert sorted(os.listdir(victim)) == ["inner", "theirs"]
    assert sorted(os.listdir(tmp_path / "moved")) == ["mine", "new", "theirs"]
