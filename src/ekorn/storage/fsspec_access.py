"""The adapter to `fsspec`: every scheme that pyarrow does not open. The package is optional."""

from __future__ import annotations

import os
import sys
from typing import Any, BinaryIO, cast

from ekorn.errors import ConfigurationError
from ekorn.extras import load
from ekorn.storage import retry
from ekorn.storage.access import FileEntry, OpenedDirectory
from ekorn.storage.locations import options_of, scheme_of, shown

__all__ = ["FsspecAccess", "open_fsspec"]

# Schemes whose puts appear whole or not at all. Every other scheme gets a draft and a rename.
_OBJECT_STORES = frozenset({"memory", "s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "oci", "ocilake", "oss", "tos"})

# Documented exceptions of the libraries behind fsspec that a retry does not cure, by module. The file systems
# translate most errors of a storage to `FileNotFoundError` and `PermissionError`; these pass through.
_FINAL_CLASSES = {
    "botocore.exceptions": ("NoCredentialsError", "PartialCredentialsError", "ParamValidationError"),
    "azure.core.exceptions": ("ClientAuthenticationError", "ResourceNotFoundError", "ResourceExistsError"),
}


def open_fsspec(address: str) -> OpenedDirectory:
    """Open a directory.

    Raises:
        ConfigurationError: fsspec or the package of the scheme is not installed, or fsspec does not know the scheme.
    """
    scheme, where = scheme_of(address), shown(address)
    load("fsspec", f"the scheme {scheme!r} of {where!r}")
    from fsspec.core import url_to_fs
    from fsspec.registry import get_filesystem_class, known_implementations

    try:
        get_filesystem_class(scheme)
    except ValueError:
        raise ConfigurationError(
            f"no storage for scheme {scheme!r} in {where!r}: neither pyarrow nor fsspec knows it"
        ) from None
    except ImportError as error:
        advice = known_implementations.get(scheme, {}).get("err", str(error))
        raise ConfigurationError(f"the package that opens {where!r} is not installed: {advice}") from None
    options: dict[str, Any] = dict(options_of(address))
    bare = address.partition("?")[0]
    # By default fsspec caches listings and file systems, but a job must see what other processes wrote.
    file_system, path = url_to_fs(bare, use_listings_cache=False, skip_instance_cache=True, **options)
    return OpenedDirectory(FsspecAccess(file_system, whole_puts=scheme in _OBJECT_STORES), path)


class FsspecAccess:
    """Access to a storage through `fsspec`."""

    def __init__(self, file_system: Any, *, whole_puts: bool) -> None:
        self._fs = file_system
        self.whole_puts = whole_puts

    def get(self, path: str) -> bytes:
        return bytes(self._fs.cat_file(path))

    def open(self, path: str) -> BinaryIO:
        return cast(BinaryIO, self._fs.open(path, "rb"))

    def put(self, path: str, data: bytes) -> None:
        if not self.whole_puts:
            self._fs.makedirs(path.rpartition("/")[0], exist_ok=True)
        self._fs.pipe_file(path, data)

    def open_output(self, path: str) -> BinaryIO:
        if not self.whole_puts:
            self._fs.makedirs(path.rpartition("/")[0], exist_ok=True)
        return cast(BinaryIO, self._fs.open(path, "wb"))

    def copy(self, source: str, target: str) -> None:
        self._fs.cp_file(source, target)

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
        try:
            self._fs.info(path)  # fsspec's own `exists` takes every error for a missing file
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def names(self, path: str) -> list[str]:
        self._fs.invalidate_cache()
        try:
            found = self._fs.ls(path, detail=False)
        except (FileNotFoundError, NotADirectoryError):
            return []
        names = (str(name).rstrip("/").rpartition("/")[2] for name in found)
        # Some object stores list the marker object of the directory itself.
        return [name for name, whole in zip(names, found, strict=True) if str(whole).strip("/") != path.strip("/")]

    def files_below(self, path: str, *, recursive: bool) -> list[FileEntry]:
        self._fs.invalidate_cache()
        inside = path.strip("/") + "/"
        found: list[FileEntry] = []
        directories = [path]
        while directories:  # fsspec's own `find` leaves out a directory that cannot be listed
            for name, info in self._entries(directories.pop()):
                if not name.startswith(inside):
                    continue
                if info["type"] != "directory":
                    found.append(FileEntry(name[len(inside) :], int(info["size"])))
                elif recursive:
                    directories.append(info["name"])
        return found

    def _entries(self, directory: str) -> list[tuple[str, Any]]:
        """Return the entries of a directory, without the marker object of the directory itself."""
        try:
            found = [(str(info["name"]).strip("/"), info) for info in self._fs.ls(directory, detail=True)]
        except (FileNotFoundError, NotADirectoryError):
            return []
        return [(name, info) for name, info in found if name != directory.strip("/")]

    def download(self, path: str, target: str) -> None:
        if self._fs.isdir(path):
            os.makedirs(target)
            self._fs.get(f"{path.rstrip('/')}/", f"{target}/", recursive=True)
        else:
            self._fs.get_file(path, target)

    def remove(self, path: str) -> None:
        self._fs.rm_file(path)

    def remove_tree(self, path: str) -> None:
        self._fs.rm(path, recursive=True)

    def make_dirs(self, path: str) -> None:
        self._fs.makedirs(path, exist_ok=True)

    def is_final(self, error: Exception) -> bool:
        return retry.is_final(error) or isinstance(error, _final_classes())

    def to_url(self, path: str) -> str:
        if "?" in path:  # fsspec does not decode URLs, and '?' begins the options
            raise ConfigurationError(f"a file opened through fsspec cannot have a '?' in its name: {path!r}; rename it")
        return path

    def from_url(self, url_path: str) -> str:
        return url_path


def _final_classes() -> tuple[type[BaseException], ...]:
    """Return the final exceptions of the libraries that are loaded; a library that is not loaded raises nothing."""
    loaded = ((sys.modules.get(module), names) for module, names in _FINAL_CLASSES.items())
    return tuple(getattr(module, name) for module, names in loaded if module is not None for name in names)
