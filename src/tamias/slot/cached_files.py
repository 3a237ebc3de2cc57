"""The distributed cache in a slot: copies of the files and folders that the program registered.

A path, or an address that begins with `file://`, is of the driver's machine: a slot there copies it, any other is sent
it (`engine/slots/file_sending.py`). Everything else a slot fetches by itself. A copy appears whole or not at all, is
made once however often the job is restarted, and goes with the slot.
"""

from __future__ import annotations

import os
import shutil
import tarfile
import urllib.request
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import unquote, urlsplit

from tamias.errors import DeploymentError, UnsupportedOperationError
from tamias.graph.job_graph import CachedFile
from tamias.storage.locations import masked, scheme_of, secrets_of, shown

CONTENT = "content"  # what a file or folder is called in the archive it is sent in
_ARROW = {"s3a": "s3", "s3n": "s3", "gcs": "gs"}  # schemes that pyarrow knows by another name


def local_path(path: str) -> str | None:
    """Where a file of the driver's machine is; None for an address elsewhere."""
    scheme = scheme_of(path)
    if not scheme:
        return os.path.abspath(path)
    return unquote(urlsplit(path).path) if scheme == "file" else None


def checked(files: Iterable[CachedFile]) -> tuple[CachedFile, ...]:
    """The files with absolute paths; those of this machine must exist.

    Raises:
        FileNotFoundError: One does not.
    """
    found = []
    for file in files:
        path = local_path(file.path)
        if path is not None and not os.path.exists(path):
            raise FileNotFoundError(f"there is no {path!r}, which is registered as the cached file {file.name!r}")
        found.append(file if path is None else replace(file, path=path))
    return tuple(found)


class CachedFiles:
    """The copies in one slot."""

    def __init__(self, folder: str) -> None:
        self._folder = os.path.join(folder, "cache")
        self._paths: dict[str, str] = {}

    def fetch(self, files: Sequence[CachedFile]) -> None:
        """Have a copy of every file.

        Raises:
            DeploymentError: One cannot be had.
        """
        for number, file in enumerate(files):
            target = self._target(number, file)
            if not os.path.exists(target):
                self._fetch(file, target)
            self._paths[file.name] = target

    def path_of(self, name: str) -> str:
        """Where the copy of a file is."""
        if name not in self._paths:
            known = ", ".join(map(repr, self._paths)) or "none"
            raise UnsupportedOperationError(f"no cached file is registered as {name!r}; registered: {known}")
        return self._paths[name]

    def receive(self, number: int, file: CachedFile, chunk: bytes, *, last: bool) -> None:
        """Take the next part of an archive that holds a file; with the last one it is unpacked."""
        target = self._target(number, file)
        archive, draft = f"{target}.tar", f"{target}.draft"
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(archive, "ab") as parts:
            parts.write(chunk)
        if last:
            with tarfile.open(archive) as content:
                content.extractall(draft, filter="data")  # nothing outside the folder, no devices, no owners
            os.unlink(archive)
            _finish(os.path.join(draft, CONTENT), target, executable=file.executable)
            os.rmdir(draft)

    def _target(self, number: int, file: CachedFile) -> str:
        """Where a copy goes: a folder by number, since names may be any text; inside, what the file is called."""
        name = os.path.basename(unquote(urlsplit(file.path).path if scheme_of(file.path) else file.path).rstrip("/"))
        return os.path.join(self._folder, str(number), name or CONTENT)

    def _fetch(self, file: CachedFile, target: str) -> None:
        draft = f"{target}.draft"
        _remove(draft)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        try:
            source = local_path(file.path)
            if source is None:
                _download(file.path, draft)
            elif os.path.isdir(source):
                shutil.copytree(source, draft)
            else:
                shutil.copyfile(source, draft)
            _finish(draft, target, executable=file.executable)
        except Exception as error:  # the libraries behind the schemes raise what they like
            said = masked(str(error) or type(error).__name__, secrets_of(file.path))
            raise DeploymentError(
                f"the cached file {file.name!r} cannot be had from {shown(file.path)!r}: {said}"
            ) from None


def _finish(draft: str, target: str, *, executable: bool) -> None:
    if os.path.isdir(draft):
        files = [os.path.join(folder, name) for folder, _, names in os.walk(draft) for name in names]
        for path in files if executable else ():
            os.chmod(path, os.stat(path).st_mode | 0o111)
    else:
        os.chmod(draft, 0o755 if executable else 0o644)
    os.rename(draft, target)


def _remove(path: str) -> None:
    """What an attempt that failed half-way left behind."""
    if os.path.isdir(path):
        shutil.rmtree(path)
    elif os.path.exists(path):
        os.unlink(path)


def _download(url: str, target: str) -> None:
    """Copy a file, or a folder with all it holds, from another system, part by part."""
    scheme = scheme_of(url)
    if scheme in ("http", "https"):
        with urllib.request.urlopen(url) as answer, open(target, "wb") as file:
            shutil.copyfileobj(answer, file, 1 << 20)
        return
    opened = _open_with_arrow(_ARROW.get(scheme, scheme) + url[len(scheme) :])
    if opened is None:
        _download_with_fsspec(url, target)
    else:
        from pyarrow.fs import LocalFileSystem, copy_files

        file_system, path = opened
        copy_files(path, target, source_filesystem=file_system, destination_filesystem=LocalFileSystem())


def _open_with_arrow(uri: str) -> tuple[Any, str] | None:
    """The file system of an address and the path in it; None when pyarrow does not know it."""
    try:
        import pyarrow
        from pyarrow.fs import FileSystem
    except ImportError:
        return None  # pyarrow is an extra; fsspec may know the scheme
    try:
        file_system, path = FileSystem.from_uri(uri)
    except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError):
        return None
    return file_system, path


def _download_with_fsspec(url: str, target: str) -> None:
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise DeploymentError(
            f"the scheme {scheme_of(url)!r} needs pyarrow (s3, gs, hdfs, abfs) or fsspec (others): "
            "pip install 'tamias[pyarrow]' or 'tamias[fsspec]'"
        ) from None
    file_system, path = url_to_fs(url)
    if file_system.isdir(path):
        os.makedirs(target)
        file_system.get(f"{path.rstrip('/')}/", f"{target}/", recursive=True)
    else:
        file_system.get_file(path, target)
