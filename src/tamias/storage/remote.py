"""Directories on remote storage as stores: object stores and HDFS through `pyarrow.fs`, everything else `fsspec` knows.

What is asked of a storage is little: a put that shows an object whole or not at all (or, on file systems, a rename),
a get that sees the last put, and deletes. Listing is used to find things and to clean up, never to commit. Errors are
`OSError`s without credentials in them; those that may pass are tried again (`retrying.py`).
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets as chance
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from tamias.errors import ConfigurationError
from tamias.faults import point
from tamias.storage.locations import check_path, join, masked, options_of, scheme_of, secrets_of, shown
from tamias.storage.retry import Patience

__all__ = ["Access", "ArrowAccess", "FsspecAccess", "RemoteFiles", "open_remote"]

T = TypeVar("T")

# Schemes that pyarrow opens, and what it calls them.
_ARROW = {"s3": "s3", "s3a": "s3", "s3n": "s3", "gs": "gs", "gcs": "gs"}
_ARROW |= {name: name for name in ("hdfs", "viewfs", "abfs", "abfss")}
_ARROW_TREES = frozenset({"hdfs", "viewfs"})
# Where a put is all or nothing; anything else gets a draft and a rename.
_FSSPEC_OBJECTS = frozenset({"memory", "s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "oci", "ocilake", "oss", "tos"})


def open_remote(address: str) -> RemoteFiles:
    """The store for a URL.

    Raises:
        ConfigurationError: No library knows the scheme, the one that does is not installed, or it refuses the URL.
    """
    scheme, where = scheme_of(address), shown(address)
    if "\0" in address or ".." in where.split("/"):
        raise ConfigurationError(f"not the URL of a directory: {where!r}; no '..'")
    opened: tuple[Access, str] | None = None
    try:
        if scheme in _ARROW:
            opened = _open_arrow(address)
        if opened is None:
            opened = _open_fsspec(address)
    except ConfigurationError:
        raise
    except Exception as error:  # libraries raise what they like; the address is at fault, or the machine's set-up
        said = masked(f"{type(error).__name__}: {error}", secrets_of(address))
        raise ConfigurationError(f"cannot open {where!r}: {said}") from None
    access, root = opened
    if not root.strip("/"):
        raise ConfigurationError(f"{where!r} names no bucket or directory; write {scheme}://bucket/directory")
    return RemoteFiles(access, root.rstrip("/"), address, in_process=scheme == "memory")


def _open_arrow(address: str) -> tuple[Access, str] | None:
    """Through pyarrow; None when this build of it cannot, but fsspec may."""
    scheme = scheme_of(address)
    try:
        import pyarrow
        import pyarrow.fs
    except ImportError:
        raise ConfigurationError(
            f"cannot open {shown(address)!r}: pyarrow opens the scheme {scheme!r} and is not installed; "
            "pip install 'tamias[pyarrow]'"
        ) from None
    uri = f"{_ARROW[scheme]}{address[len(scheme) :]}"
    if _ARROW[scheme] == "s3" and "allow_delayed_open" not in options_of(address):
        # Small objects in one put instead of three requests.
        uri += ("&" if options_of(address) else "?") + "allow_delayed_open=true"
    try:
        file_system, root = pyarrow.fs.FileSystem.from_uri(uri)
    except pyarrow.ArrowNotImplementedError:
        return None
    return ArrowAccess(file_system, whole_puts=scheme not in _ARROW_TREES), root


def _open_fsspec(address: str) -> tuple[Access, str]:
    scheme, where = scheme_of(address), shown(address)
    try:
        from fsspec.core import url_to_fs
        from fsspec.registry import get_filesystem_class, known_implementations
    except ImportError:
        raise ConfigurationError(
            f"no storage for scheme {scheme!r} in {where!r}: paths and file are built in, s3, gs, hdfs and abfs "
            "need pyarrow: pip install 'tamias[pyarrow]', others need fsspec: pip install 'tamias[fsspec]'"
        ) from None
    try:
        get_filesystem_class(scheme)
    except ValueError:
        raise ConfigurationError(
            f"no storage for scheme {scheme!r} in {where!r}: neither pyarrow nor fsspec knows it"
        ) from None
    except ImportError as error:
        advice = known_implementations.get(scheme, {}).get("err", str(error))
        raise ConfigurationError(f"what opens {where!r} is not installed: {advice}") from None
    options: dict[str, Any] = dict(options_of(address))
    bare = address.partition("?")[0]
    # Listings and whole file systems are cached by default: a job must see what other processes wrote.
    file_system, root = url_to_fs(bare, use_listings_cache=False, skip_instance_cache=True, **options)
    return FsspecAccess(file_system, whole_puts=scheme in _FSSPEC_OBJECTS), root


class Access(Protocol):
    """What is asked of a storage; paths are its own. Errors are whatever the library raises."""

    whole_puts: bool  # whether a put appears whole or not at all

    def get(self, path: str) -> bytes:
        """The whole object; FileNotFoundError when there is none."""

    def put(self, path: str, data: bytes) -> None:
        """Create or replace."""

    def move(self, source: str, target: str) -> None:
        """Rename over what is there; only asked where puts are not whole."""

    def size(self, path: str) -> int | None:
        """Bytes of a file; None when it is none."""

    def exists(self, path: str) -> bool:
        """Whether there is a file or directory."""

    def names(self, path: str) -> list[str]:
        """What is directly in a directory; empty when there is none."""

    def remove(self, path: str) -> None:
        """Remove a file; FileNotFoundError when there is none."""

    def remove_tree(self, path: str) -> None:
        """Remove a directory with all it holds; FileNotFoundError when there is none."""

    def make_dirs(self, path: str) -> None:
        """Create a directory and those above it."""


class RemoteFiles:
    """A directory on remote storage."""

    def __init__(
        self, access: Access, root: str, address: str, *, in_process: bool = False, patience: Patience | None = None
    ) -> None:
        self._access = access
        self._root = root
        self._address = address
        self._secrets = secrets_of(address)
        self._in_process = in_process
        self._patience = patience or Patience()

    @property
    def url(self) -> str:
        return shown(self._address)

    @property
    def address(self) -> str:
        return self._address

    @property
    def exclusive(self) -> bool:
        # Some storages could be asked for a conditional put, but neither library offers it for all of them.
        return False

    @property
    def in_process(self) -> bool:
        return self._in_process

    def __repr__(self) -> str:
        return f"RemoteFiles({self.url!r})"

    def read(self, path: str) -> bytes:
        place = self._place(path)
        return self._do("read", path, lambda: self._access.get(place))

    def write(self, path: str, data: bytes) -> None:
        place = self._place(path)
        self._do("write", path, lambda: self._access.put(place, data))

    def publish(self, path: str, data: bytes) -> None:
        """Create a file whole or not at all. The look for one of that name comes before, as a step of its own."""
        place = self._place(path)
        there = self._do("read", path, lambda: self._current(place))
        if there is not None:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), f"{self.url}/{path}")
        point("publish")
        self._do("publish", path, lambda: self._put_whole(place, data))

    def replace(self, path: str, data: bytes) -> None:
        place = self._place(path)
        self._do("replace", path, lambda: self._put_whole(place, data))

    def exists(self, path: str) -> bool:
        place = self._place(path)
        return self._do("look for", path, lambda: self._access.exists(place))

    def size(self, path: str) -> int:
        place = self._place(path)
        found = self._do("look for", path, lambda: self._access.size(place))
        if found is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), f"{self.url}/{path}")
        return found

    def list(self, directory: str = "") -> list[str]:
        place = self._place(directory) if directory else self._root
        return sorted(set(self._do("list", directory, lambda: self._access.names(place))))

    def delete(self, path: str) -> None:
        place = self._place(path)
        with contextlib.suppress(FileNotFoundError):
            self._do("delete", path, lambda: self._access.remove(place))

    def delete_tree(self, path: str) -> None:
        place = self._place(path)
        with contextlib.suppress(FileNotFoundError):
            self._do("delete", path, lambda: self._access.remove_tree(place))

    def make_dirs(self, path: str) -> None:
        place = self._place(path)
        self._do("create", path, lambda: self._access.make_dirs(place))

    def below(self, path: str) -> RemoteFiles:
        inner = RemoteFiles(
            self._access,
            self._place(path),
            join(self._address, path),
            in_process=self._in_process,
            patience=self._patience,
        )
        return inner

    def _place(self, path: str) -> str:
        return "/".join((self._root, *check_path(path)))

    def _current(self, place: str) -> bytes | None:
        try:
            return self._access.get(place)
        except FileNotFoundError:
            return None

    def _put_whole(self, place: str, data: bytes) -> None:
        if self._access.whole_puts:
            self._access.put(place, data)
            return
        draft = f"{place}.draft-{chance.token_hex(8)}"
        try:
            self._access.put(draft, data)
            self._access.move(draft, place)
        except Exception:
            with contextlib.suppress(Exception):  # the first error says what went wrong
                self._access.remove(draft)
            with contextlib.suppress(Exception):
                if self._current(place) == data:
                    return  # it was moved, and only the answer was lost
            raise

    def _do(self, verb: str, path: str, call: Callable[[], T]) -> T:
        """Call the storage, again where that may help; errors come out as `OSError`s fit to be shown."""
        try:
            return self._patience.call(call)
        except FileNotFoundError:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), f"{self.url}/{path}") from None
        except Exception as error:  # each library has errors of its own
            number = error.errno if isinstance(error, OSError) and error.errno else errno.EIO
            said = masked(str(error) or type(error).__name__, self._secrets)
            kind = PermissionError if isinstance(error, PermissionError) else OSError
            raise kind(number, f"cannot {verb} {self.url}/{path}: {said}") from None


class ArrowAccess:
    """Storage through `pyarrow.fs`."""

    def __init__(self, file_system: Any, *, whole_puts: bool) -> None:
        self._fs = file_system
        self.whole_puts = whole_puts

    def get(self, path: str) -> bytes:
        with self._fs.open_input_file(path) as file:
            return bytes(file.read())

    def put(self, path: str, data: bytes) -> None:
        if not self.whole_puts:
            self._fs.create_dir(path.rpartition("/")[0], recursive=True)
        # One write and one close: an upload that fails half-way is never completed, so nothing torn can appear.
        with self._fs.open_output_stream(path) as file:
            file.write(data)

    def move(self, source: str, target: str) -> None:
        try:
            self._fs.move(source, target)
        except OSError:
            # HDFS does not rename over a file. Between these two steps there is none, which readers take for an older
            # state of things; what must never be missing is published once and not replaced.
            if not self.exists(target):
                raise
            self._fs.delete_file(target)
            self._fs.move(source, target)

    def size(self, path: str) -> int | None:
        from pyarrow.fs import FileType

        found = self._fs.get_file_info(path)
        return int(found.size) if found.type == FileType.File else None

    def exists(self, path: str) -> bool:
        from pyarrow.fs import FileType

        return bool(self._fs.get_file_info(path).type != FileType.NotFound)

    def names(self, path: str) -> list[str]:
        from pyarrow.fs import FileSelector

        return [info.base_name for info in self._fs.get_file_info(FileSelector(path, allow_not_found=True))]

    def remove(self, path: str) -> None:
        self._fs.delete_file(path)

    def remove_tree(self, path: str) -> None:
        self._fs.delete_dir(path)

    def make_dirs(self, path: str) -> None:
        self._fs.create_dir(path, recursive=True)


class FsspecAccess:
    """Storage through `fsspec`."""

    def __init__(self, file_system: Any, *, whole_puts: bool) -> None:
        self._fs = file_system
        self.whole_puts = whole_puts

    def get(self, path: str) -> bytes:
        return bytes(self._fs.cat_file(path))

    def put(self, path: str, data: bytes) -> None:
        if not self.whole_puts:
            self._fs.makedirs(path.rpartition("/")[0], exist_ok=True)
        self._fs.pipe_file(path, data)

    def move(self, source: str, target: str) -> None:
        self._fs.mv(source, target)

    def size(self, path: str) -> int | None:
        try:
            found = self._fs.info(path)
        except FileNotFoundError:
            return None
        return int(found["size"]) if found["type"] == "file" else None

    def exists(self, path: str) -> bool:
        self._fs.invalidate_cache()
        return bool(self._fs.exists(path))

    def names(self, path: str) -> list[str]:
        self._fs.invalidate_cache()
        try:
            found = self._fs.ls(path, detail=False)
        except (FileNotFoundError, NotADirectoryError):
            return []
        names = (str(name).rstrip("/").rpartition("/")[2] for name in found)
        # Some object stores list the directory itself, as the marker it is.
        return [name for name, whole in zip(names, found, strict=True) if str(whole).strip("/") != path.strip("/")]

    def remove(self, path: str) -> None:
        self._fs.rm_file(path)

    def remove_tree(self, path: str) -> None:
        self._fs.rm(path, recursive=True)

    def make_dirs(self, path: str) -> None:
        self._fs.makedirs(path, exist_ok=True)
