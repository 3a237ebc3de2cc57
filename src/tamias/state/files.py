"""Where checkpoint bytes are kept: the narrow seam to a file system, and state files with their proof.

A `FileStore` is rooted in one directory and takes relative paths only, so that nothing read from a checkpoint can name
a file outside it. Two kinds of file exist: state files, written once under a name nobody had before, and commit points,
which appear whole or not at all (`publish`). What the bytes mean is not known here.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import stat
import struct
import threading
import zlib
from pathlib import Path
from typing import Protocol, TypeVar
from urllib.parse import unquote, urlsplit

from tamias.errors import ConfigurationError, CorruptFileError
from tamias.state.snapshots import StateFile

__all__ = [
    "STATE_HEADER_BYTES",
    "FileStore",
    "LocalFiles",
    "MemoryFiles",
    "check_path",
    "check_state",
    "open_files",
    "read_state",
    "write_state",
]

# docs/formats/state-file.md: magic, format version, flags (none yet), crc32 and size of the payload.
STATE_MAGIC = b"TAMSTATE"
STATE_VERSION = 1
_STATE_HEADER = struct.Struct(">8sHHIQ")
STATE_HEADER_BYTES = _STATE_HEADER.size


class FileStore(Protocol):
    """One directory on some storage. Every method may raise `OSError`; paths are relative, with `/` between parts.

    An object store offers the same: `publish` is a put that fails when the name is taken, a directory is a prefix.
    """

    @property
    def url(self) -> str:
        """The directory, in the form `open_files` takes: how another process opens the same store."""
        ...

    def read(self, path: str) -> bytes:
        """The whole file; `FileNotFoundError` when there is none."""
        ...

    def write(self, path: str, data: bytes) -> None:
        """Create a file and make it durable; `FileExistsError` when the name is taken. A crash may leave it torn."""
        ...

    def publish(self, path: str, data: bytes) -> None:
        """Create a file whole or not at all, and durable; `FileExistsError` when the name is taken."""
        ...

    def replace(self, path: str, data: bytes) -> None:
        """As `publish`, but over what is there: readers see the old file or the new one."""
        ...

    def exists(self, path: str) -> bool:
        """True when there is a file or directory of that name."""
        ...

    def size(self, path: str) -> int:
        """Bytes in a file; `FileNotFoundError` when there is none."""
        ...

    def list(self, directory: str = "") -> list[str]:
        """Sorted names of what is directly in a directory; empty when there is no such directory."""
        ...

    def delete(self, path: str) -> None:
        """Remove a file; a missing one is fine."""
        ...

    def delete_tree(self, path: str) -> None:
        """Remove a directory with all it holds; a missing one is fine."""
        ...

    def make_dirs(self, path: str) -> None:
        """Create a directory and those above it; existing ones are fine."""
        ...

    def below(self, path: str) -> FileStore:
        """The store rooted in a directory of this one."""
        ...


def check_path(path: str) -> tuple[str, ...]:
    """The parts of a relative path that stays below its root.

    Raises:
        ConfigurationError: It is empty, absolute, or steps upwards.

    >>> check_path("chk-7/_metadata")
    ('chk-7', '_metadata')
    """
    parts = tuple(path.split("/"))
    if "\\" in path or "\0" in path or any(part in ("", ".", "..") for part in parts) or ":" in parts[0]:
        raise ConfigurationError(f"not a path below a checkpoint directory: {path!r}; no '..', no absolute path")
    return parts


# ------------------------------------------------------------------------------------------------ state with its proof


def write_state(store: FileStore, path: str, payload: bytes, inline_threshold: int) -> StateFile:
    """Keep a payload: inside the returned value when smaller than the threshold, else in a new file at `path`."""
    crc32 = zlib.crc32(payload)
    if len(payload) < inline_threshold:
        return StateFile(size=len(payload), crc32=crc32, inline=payload)
    header = _STATE_HEADER.pack(STATE_MAGIC, STATE_VERSION, 0, crc32, len(payload))
    store.write(path, header + payload)
    return StateFile(size=len(payload), crc32=crc32, path=path)


def read_state(store: FileStore, state_file: StateFile) -> bytes:
    """The payload, proven to be the one that was written.

    Raises:
        CorruptFileError: It is missing, torn, changed, foreign, or of a newer format.
    """
    if state_file.path is None:
        assert state_file.inline is not None, "a state file has a path or the bytes themselves"
        _check_payload("(state kept inside the metadata)", state_file.inline, state_file)
        return state_file.inline
    where = f"{store.url}/{state_file.path}"
    try:
        data = store.read(state_file.path)
    except FileNotFoundError:
        raise CorruptFileError(where, "no such file", _expected(state_file)) from None
    if len(data) < STATE_HEADER_BYTES:
        raise CorruptFileError(where, f"{len(data)} bytes, less than a header", _expected(state_file))
    magic, version, flags, crc32, size = _STATE_HEADER.unpack_from(data)
    if magic != STATE_MAGIC:
        raise CorruptFileError(where, f"a file that starts with {bytes(magic)!r}", f"a state file ({STATE_MAGIC!r})")
    if version != STATE_VERSION or flags != 0:
        found = f"state format version {version} with flags {flags:#x}"
        raise CorruptFileError(where, found, f"version {STATE_VERSION}, which is the newest this release reads")
    payload = data[STATE_HEADER_BYTES:]
    # Both the header and the metadata must agree with the bytes: the first finds damage, the second a whole and
    # healthy file that belongs to somewhere else.
    _check_payload(where, payload, StateFile(size=size, crc32=crc32, inline=b""))
    _check_payload(where, payload, state_file)
    return payload


def check_state(store: FileStore, state_file: StateFile, *, full: bool) -> None:
    """Prove that a payload can be read: by existence and size, or (`full`) by its checksum as well.

    Raises:
        CorruptFileError: It cannot.
    """
    if full or state_file.path is None:
        read_state(store, state_file)
        return
    where = f"{store.url}/{state_file.path}"
    try:
        size = store.size(state_file.path)
    except FileNotFoundError:
        raise CorruptFileError(where, "no such file", _expected(state_file)) from None
    if size != STATE_HEADER_BYTES + state_file.size:
        raise CorruptFileError(where, f"{size} bytes", f"{STATE_HEADER_BYTES + state_file.size} bytes")


def _check_payload(where: str, payload: bytes, proof: StateFile) -> None:
    if len(payload) != proof.size:
        raise CorruptFileError(where, f"{len(payload)} bytes of state", _expected(proof))
    crc32 = zlib.crc32(payload)
    if crc32 != proof.crc32:
        raise CorruptFileError(where, f"crc32 {crc32:08x}", _expected(proof))


def _expected(proof: StateFile) -> str:
    return f"{proof.size} bytes of state with crc32 {proof.crc32:08x}"


# ----------------------------------------------------------------------------------------------------------- the stores


def open_files(url: str) -> FileStore:
    """The store for a directory given as a path or a URL.

    Raises:
        ConfigurationError: The scheme is not supported.
    """
    if not url:
        raise ConfigurationError("no directory given: a checkpoint directory is a local path or a file:// URL")
    scheme = urlsplit(url).scheme
    if scheme == "file":
        parts = urlsplit(url)
        if parts.netloc not in ("", "localhost"):
            raise ConfigurationError(f"{url!r} names the host {parts.netloc!r}; a local directory is file:///path")
        return LocalFiles(unquote(parts.path))
    if "://" in url:
        raise ConfigurationError(
            f"no storage for scheme {scheme!r} in {url!r}; supported are local paths and file:// URLs"
        )
    return LocalFiles(url)


class LocalFiles:
    """A directory of this machine, or of a mounted file system."""

    def __init__(self, root: str | Path) -> None:
        self._root = os.path.abspath(root)

    @property
    def url(self) -> str:
        return self._root

    def __repr__(self) -> str:
        return f"LocalFiles({self._root!r})"

    def read(self, path: str) -> bytes:
        with open(self._locate(path), "rb") as file:
            return file.read()

    def write(self, path: str, data: bytes) -> None:
        self._create(self._locate_new(path), data)

    def publish(self, path: str, data: bytes) -> None:
        target = self._locate_new(path)
        draft = self._draft(target, data)
        try:
            # A rename would replace what another writer published in the meantime; a link never does.
            os.link(draft, target)
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK):
                raise
            # This file system has no hard links. The check and the rename are not one step here, which leaves a
            # window for two drivers on one job; ownership closes it (checkpoint/ownership.py).
            if os.path.lexists(target):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target) from None
            os.rename(draft, target)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(draft)
        _sync_directory(os.path.dirname(target))

    def replace(self, path: str, data: bytes) -> None:
        target = self._locate_new(path)
        draft = self._draft(target, data)
        try:
            os.replace(draft, target)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(draft)
        _sync_directory(os.path.dirname(target))

    def exists(self, path: str) -> bool:
        return os.path.exists(self._locate(path))

    def size(self, path: str) -> int:
        found = os.stat(self._locate(path))
        if not stat.S_ISREG(found.st_mode):
            raise FileNotFoundError(errno.ENOENT, "not a file", self._join(path))
        return found.st_size

    def list(self, directory: str = "") -> list[str]:
        try:
            return sorted(os.listdir(self._locate(directory) if directory else self._root))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def delete(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._locate(path, follow_last=False))

    def delete_tree(self, path: str) -> None:
        target = self._locate(path, follow_last=False)
        if os.path.islink(target):
            os.unlink(target)  # what it points to is not ours to delete
        elif os.path.lexists(target):
            shutil.rmtree(target)

    def make_dirs(self, path: str) -> None:
        _make_directories(self._locate(path))

    def below(self, path: str) -> LocalFiles:
        return LocalFiles(self._locate(path))

    def _join(self, path: str) -> str:
        return os.path.join(self._root, *check_path(path))

    def _locate(self, path: str, *, follow_last: bool = True) -> str:
        """The absolute path, refused when a symbolic link on the way leads out of the root."""
        target = self._join(path)
        root = os.path.realpath(self._root)
        real = os.path.realpath(target if follow_last else os.path.dirname(target))
        if real != root and not real.startswith(root.rstrip(os.sep) + os.sep):
            raise ConfigurationError(f"{target!r} leads out of {self._root!r}: symbolic links to outside are refused")
        return target

    def _locate_new(self, path: str) -> str:
        target = self._locate(path)
        _make_directories(os.path.dirname(target))
        return target

    def _draft(self, target: str, data: bytes) -> str:
        draft = f"{target}.draft-{secrets.token_hex(8)}"
        self._create(draft, data)
        return draft

    @staticmethod
    def _create(target: str, data: bytes) -> None:
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o666)
        try:
            with open(descriptor, "wb", buffering=0) as file:
                view = memoryview(data)
                while view:
                    view = view[file.write(view) :]
                os.fsync(file.fileno())
        except BaseException:
            # A full disk must not be kept full by what could not be finished.
            with contextlib.suppress(OSError):
                os.unlink(target)
            raise
        _sync_directory(os.path.dirname(target))


def _make_directories(path: str) -> None:
    """Create directories, and make their names durable: a synced file in a lost directory is lost."""
    missing = []
    while not os.path.isdir(path):
        missing.append(path)
        parent = os.path.dirname(path)
        if parent == path:
            break
        path = parent
    for directory in reversed(missing):
        os.makedirs(directory, exist_ok=True)
        _sync_directory(os.path.dirname(directory))


def _sync_directory(path: str) -> None:
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    except OSError:
        return  # a directory we may write to but not open; its entries are as durable as its file system makes them
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF):  # not offered by this file system
            raise
    finally:
        os.close(descriptor)


class MemoryFiles:
    """A store in this process's memory: for tests, and for checkpoints that need not outlive the driver."""

    def __init__(self) -> None:
        self._files: dict[str, bytes] = {}
        self._directories: set[str] = set()
        self._lock = threading.Lock()
        self._prefix = ""

    @property
    def url(self) -> str:
        return f"memory:/{self._prefix.rstrip('/')}"

    def __repr__(self) -> str:
        return f"MemoryFiles({self.url!r})"

    def read(self, path: str) -> bytes:
        return _found(self._files.get(self._key(path)), path)

    def write(self, path: str, data: bytes) -> None:
        self.publish(path, data)

    def publish(self, path: str, data: bytes) -> None:
        key = self._key(path)
        with self._lock:
            if key in self._files:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
            self._files[key] = bytes(data)

    def replace(self, path: str, data: bytes) -> None:
        with self._lock:
            self._files[self._key(path)] = bytes(data)

    def exists(self, path: str) -> bool:
        key = self._key(path)
        with self._lock:
            known = (*self._files, *self._directories)
        return any(name == key or name.startswith(key + "/") for name in known)

    def size(self, path: str) -> int:
        return len(_found(self._files.get(self._key(path)), path))

    def list(self, directory: str = "") -> list[str]:
        inside = self._key(directory) + "/" if directory else self._prefix
        with self._lock:
            known = [*self._files, *self._directories]
        return sorted({key[len(inside) :].split("/")[0] for key in known if key.startswith(inside)})

    def delete(self, path: str) -> None:
        with self._lock:
            self._files.pop(self._key(path), None)

    def delete_tree(self, path: str) -> None:
        key = self._key(path)
        with self._lock:
            for name in [k for k in self._files if k == key or k.startswith(key + "/")]:
                del self._files[name]
            self._directories -= {k for k in self._directories if k == key or k.startswith(key + "/")}

    def make_dirs(self, path: str) -> None:
        with self._lock:
            self._directories.add(self._key(path))

    def below(self, path: str) -> MemoryFiles:
        view = MemoryFiles()
        view._files, view._directories, view._lock = self._files, self._directories, self._lock
        view._prefix = self._key(path) + "/"
        return view

    def _key(self, path: str) -> str:
        return self._prefix + "/".join(check_path(path))


T = TypeVar("T")


def _found(data: T | None, path: str) -> T:
    if data is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    return data
