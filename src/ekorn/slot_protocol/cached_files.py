"""The distributed cache in a slot: copies of the files and folders that the program registered.

A path, or an address that begins with `file://`, belongs to the driver's machine. A slot on that machine copies the
file; the driver sends it to any other slot (`engine/slots/slot_deployments.py`). A slot downloads all other addresses
by itself. A copy appears whole or not at all, is made once however often the job restarts, and is removed with the
slot.
"""

from __future__ import annotations

import os
import shutil
import tarfile
from collections.abc import Iterable, Sequence
from dataclasses import replace
from urllib.parse import unquote, urlsplit

from ekorn.errors import DeploymentError, UnsupportedOperationError
from ekorn.graph.job_graph import CachedFile
from ekorn.storage.input_files import download
from ekorn.storage.locations import masked, scheme_of, secrets_of, shown

CONTENT = "content"  # the name of the file or folder inside the archive that the driver sends


def local_path(path: str) -> str | None:
    """Return the path of a file on the driver's machine, or None if the address is elsewhere."""
    scheme = scheme_of(path)
    if not scheme:
        return os.path.abspath(path)
    return unquote(urlsplit(path).path) if scheme == "file" else None


def checked(files: Iterable[CachedFile]) -> tuple[CachedFile, ...]:
    """Return the files with absolute paths, after checking that the files of this machine exist.

    Raises:
        FileNotFoundError: A file of this machine does not exist.
    """
    found = []
    for file in files:
        path = local_path(file.path)
        if path is not None and not os.path.exists(path):
            raise FileNotFoundError(f"there is no {path!r}, which is registered as the cached file {file.name!r}")
        found.append(file if path is None else replace(file, path=path))
    return tuple(found)


class CachedFiles:
    """The copies of one slot."""

    def __init__(self, folder: str) -> None:
        self._folder = os.path.join(folder, "cache")
        self._paths: dict[str, str] = {}

    def fetch(self, files: Sequence[CachedFile]) -> None:
        """Make the copies that are missing.

        Raises:
            DeploymentError: A file cannot be copied or downloaded.
        """
        for number, file in enumerate(files):
            target = self._target(number, file)
            if not os.path.exists(target):
                self._fetch(file, target)
            self._paths[file.name] = target

    def path_of(self, name: str) -> str:
        """Return the path of a file's copy.

        Raises:
            UnsupportedOperationError: No file is registered under this name.
        """
        if name not in self._paths:
            known = ", ".join(map(repr, self._paths)) or "none"
            raise UnsupportedOperationError(f"no cached file is registered as {name!r}; registered: {known}")
        return self._paths[name]

    def receive(self, number: int, file: CachedFile, chunk: bytes, *, last: bool, first: bool = False) -> None:
        """Take the next part of the archive that holds a file. The first part drops what an earlier attempt left."""
        target = self._target(number, file)
        archive, draft = f"{target}.tar", f"{target}.draft"
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if first:
            for path in (archive, draft, target):
                _remove(path)
        with open(archive, "ab") as parts:
            parts.write(chunk)
        if last:
            with tarfile.open(archive) as content:
                content.extractall(draft, filter="data")  # nothing outside the folder, no devices, no owners
            os.unlink(archive)
            _finish(os.path.join(draft, CONTENT), target, executable=file.executable)
            os.rmdir(draft)

    def _target(self, number: int, file: CachedFile) -> str:
        """Return the path of a copy: the file's own name in a folder by number, since a cached name may be any text."""
        name = os.path.basename(unquote(urlsplit(file.path).path if scheme_of(file.path) else file.path).rstrip("/"))
        return os.path.join(self._folder, str(number), name or CONTENT)

    def _fetch(self, file: CachedFile, target: str) -> None:
        draft = f"{target}.draft"
        _remove(draft)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        try:
            download(local_path(file.path) or file.path, draft)
            _finish(draft, target, executable=file.executable)
        except Exception as error:  # each library behind a scheme raises errors of its own
            reason = masked(str(error) or type(error).__name__, secrets_of(file.path))
            raise DeploymentError(
                f"the cached file {file.name!r} cannot be copied from {shown(file.path)!r}: {reason}"
            ) from None


def _finish(draft: str, target: str, *, executable: bool) -> None:
    """Set the permissions of a complete copy, and move it to its place."""
    if os.path.isdir(draft):
        files = [os.path.join(folder, name) for folder, _, names in os.walk(draft) for name in names]
        for path in files if executable else ():
            os.chmod(path, os.stat(path).st_mode | 0o111)
    else:
        os.chmod(draft, 0o755 if executable else 0o644)
    os.rename(draft, target)


def _remove(path: str) -> None:
    """Remove what an earlier attempt left behind when it failed half-way."""
    if os.path.isdir(path):
        shutil.rmtree(path)
    elif os.path.exists(path):
        os.unlink(path)
