"""Scratch folders: removed when closed, and by another process if their own was killed."""

import os
import signal
import subprocess
import sys

import pytest

from ekorn.storage.scratch_folders import LocalFolder

HOLD = """
import sys, time
from ekorn.storage.scratch_folders import LocalFolder
folder = LocalFolder(sys.argv[1])
open(folder.path + "/state", "w").write("large")
print(folder.path, flush=True)
time.sleep(100)
"""


def test_a_folder_is_gone_when_it_is_closed(tmp_path):
    folder = LocalFolder(str(tmp_path / "new"))
    assert os.path.isdir(folder.path)
    folder.close()
    folder.close()
    assert os.listdir(tmp_path / "new") == []


def test_folders_in_use_are_left_alone_whoever_uses_them(tmp_path):
    folders = [LocalFolder(str(tmp_path)) for _ in range(3)]
    assert all(os.path.isdir(folder.path) for folder in folders)
    folders[0].close()
    assert [os.path.isdir(folder.path) for folder in folders] == [False, True, True]


def test_what_a_killed_process_left_goes_with_the_next_folder(tmp_path):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True, env=environment
    )
    assert process.stdout is not None
    left = process.stdout.readline().strip()
    folder = LocalFolder(str(tmp_path))
    assert os.path.exists(f"{left}/state"), "the process that owns the folder is alive"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    another = LocalFolder(str(tmp_path))
    assert not os.path.exists(left)
    assert not os.path.exists(f"{left}.lock")
    for mine in (folder, another):
        assert os.path.isdir(mine.path)
        mine.close()
    assert os.listdir(tmp_path) == []


def test_other_files_are_not_touched(tmp_path):
    (tmp_path / "mine.lock").write_text("")
    (tmp_path / "ekorn-state-without-lock").mkdir()
    LocalFolder(str(tmp_path)).close()
    assert sorted(os.listdir(tmp_path)) == ["ekorn-state-without-lock", "mine.lock"]


def test_a_folder_that_is_left_to_the_user_stays(tmp_path):
    folder = LocalFolder(str(tmp_path))
    folder.keep()
    LocalFolder(str(tmp_path)).close()
    assert os.listdir(tmp_path) == [os.path.basename(folder.path)]


def test_folders_of_another_kind_are_not_touched(tmp_path):
    (tmp_path / "ekorn-job-1").mkdir()
    (tmp_path / "ekorn-job-1.lock").touch()
    LocalFolder(str(tmp_path), "ekorn-slot-").close()
    assert sorted(os.listdir(tmp_path)) == ["ekorn-job-1", "ekorn-job-1.lock"]
    LocalFolder(str(tmp_path), "ekorn-job-").close()
    assert os.listdir(tmp_path) == []


def test_links_in_place_of_a_folder_or_its_lock_are_not_followed(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    (home / "precious").touch()
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "ekorn-state-1").symlink_to(home)
    (shared / "ekorn-state-1.lock").touch()
    (shared / "ekorn-state-2").mkdir()
    (shared / "ekorn-state-2" / "mine").touch()
    (shared / "ekorn-state-2.lock").symlink_to(home / "precious")
    LocalFolder(str(shared)).close()
    assert (home / "precious").exists() and (shared / "ekorn-state-2" / "mine").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")
@pytest.mark.parametrize("what", ["ekorn-state-1", "ekorn-state-1.lock"])
def test_a_folder_is_left_alone_if_it_or_its_lock_is_another_users(tmp_path, what):
    (tmp_path / "ekorn-state-1").mkdir()
    (tmp_path / "ekorn-state-1" / "precious").touch()
    (tmp_path / "ekorn-state-1.lock").touch()
    os.chown(tmp_path / what, 65534, 65534)
    LocalFolder(str(tmp_path)).close()
    assert (tmp_path / "ekorn-state-1" / "precious").exists()
