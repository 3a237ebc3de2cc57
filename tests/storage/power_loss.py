"""A directory that keeps only synced data when the power fails: the least that a file system promises.

The bytes of a file survive as they were at its last fsync. A name survives if its directory was synced after the name
was given; a name that was removed or renamed since then is back. Python code only: files that RocksDB writes itself
are not followed.
"""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path
from typing import Literal

import pytest

from ekorn.storage.durable import sync_directory


class Disk:
    """Follows every `os.fsync` below a directory, and returns the directory to what was synced.

    Args:
        root: An existing directory. All that is in it counts as synced.
        patch: Replaces `os.fsync` for as long as the test runs.
    """

    def __init__(self, root: Path, patch: pytest.MonkeyPatch) -> None:
        self.root = root.resolve()
        self._content: dict[int, bytes] = {}  # by inode, of a synced file
        self._names: dict[int, dict[str, tuple[int, bool]]] = {}  # by inode, of a synced directory: inode, is directory
        self._kept: dict[int, int] = {}  # open descriptors by inode: the number of a deleted file is not used again
        self.synced: list[Path] = []  # files and directories in the order in which they were synced
        self._sync_everything()
        patch.setattr(os, "fsync", self._fsync)

    def fail(self, *, names: Literal["synced", "present"] = "synced") -> None:
        """Lose the power, and start again.

        Args:
            names: Which names survive: those that were synced, or all that are present, because the file system wrote
                them by itself. The bytes are those that were synced in both cases.
        """
        if names == "present":
            for directory in (self.root, *(path for path in self.root.rglob("*") if path.is_dir())):
                sync_directory(str(directory))
        tree = self._survivors(os.stat(self.root).st_ino)
        for path in self.root.iterdir():
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        _write(self.root, tree)
        self.close()
        self._sync_everything()

    def close(self) -> None:
        """Forget everything, and close all descriptors."""
        for descriptor in self._kept.values():
            os.close(descriptor)
        self._content, self._names, self._kept = {}, {}, {}

    def _fsync(self, descriptor: int) -> None:
        if hasattr(descriptor, "fileno"):
            descriptor = descriptor.fileno()
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        if path == self.root or self.root in path.parents:
            self.synced.append(path)
            self._sync(descriptor, path)

    def _sync(self, descriptor: int, path: Path) -> None:
        found = os.fstat(descriptor)
        self._keep(path, found.st_ino)
        if not stat.S_ISDIR(found.st_mode):
            with open(f"/proc/self/fd/{descriptor}", "rb") as file:  # a descriptor of its own: this position stays
                self._content[found.st_ino] = file.read()
            return
        names = {}
        for entry in os.scandir(path):
            names[entry.name] = (entry.inode(), entry.is_dir(follow_symlinks=False))
            self._keep(Path(entry.path), entry.inode())
        self._names[found.st_ino] = names

    def _keep(self, path: Path, inode: int) -> None:
        if inode not in self._kept:
            self._kept[inode] = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)

    def _sync_everything(self) -> None:
        for path in (self.root, *self.root.rglob("*")):
            descriptor = os.open(path, os.O_RDONLY)
            try:
                self._sync(descriptor, path)
            finally:
                os.close(descriptor)

    def _survivors(self, directory: int) -> dict[str, dict | bytes]:
        """Return what survives in a directory: bytes of files, and dicts of directories, by name."""
        return {
            name: self._survivors(inode) if is_directory else self._content.get(inode, b"")
            for name, (inode, is_directory) in self._names.get(directory, {}).items()
        }


def _write(directory: Path, tree: dict[str, dict | bytes]) -> None:
    for name, value in tree.items():
        if isinstance(value, bytes):
            (directory / name).write_bytes(value)
        else:
            (directory / name).mkdir()
            _write(directory / name, value)
