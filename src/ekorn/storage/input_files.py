"""Read files by path or URL: for sources and for cached files.

Unlike a `FileStore`, these functions take whole addresses: the files belong to the user, so their names may be anything
and symbolic links may lead anywhere. An address is a local path, a `file:` URL, or a URL of any scheme that
`open_files` takes; `download` also takes `http` and `https`.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import urllib.request
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import BinaryIO, NamedTuple

from ekorn.storage.access import OpenedDirectory
from ekorn.storage.locations import join, plain, scheme_of, secrets_of, shown, split_last
from ekorn.storage.remote_access import RemoteCalls, open_access

__all__ = ["InputFile", "download", "list_files", "open_input", "size_of"]

_COPY_BYTES = 1 << 20


class InputFile(NamedTuple):
    """A file that a listing found; `open_input` takes its address."""

    address: str
    size_bytes: int


def open_input(address: str) -> BinaryIO:
    """Open a file for reading. The stream can seek, and is closed by the caller.

    Opening is repeated while the storage fails for a reason that may pass; reading from the stream is not.

    Raises:
        FileNotFoundError: There is no such file.
        OSError: The file cannot be opened.
        ConfigurationError: The address cannot be read, or the library for its scheme is not installed.
    """
    address = plain(address)
    if not scheme_of(address):
        return open(address, "rb")
    access, path = _locate(address)
    return _calls(address).call(lambda: access.open(path), verb="open", url=shown(address))


def size_of(address: str) -> int:
    """Return the size of a file in bytes.

    Raises:
        FileNotFoundError: There is no such file, or it is a directory.
        OSError: The storage cannot be read.
        ConfigurationError: The address cannot be read, or the library for its scheme is not installed.
    """
    address = plain(address)
    if not scheme_of(address):
        if os.path.isdir(address):
            raise FileNotFoundError(errno.ENOENT, "not a file", address)
        return os.path.getsize(address)
    access, path = _locate(address)
    found = _calls(address).call(lambda: access.size(path), verb="look for", url=shown(address))
    if found is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), shown(address))
    return found


def list_files(
    address: str, *, recursive: bool = True, skip: Callable[[str], bool] = lambda name: False
) -> list[InputFile]:
    """Return a file itself, or the files of a directory in the order of the parts of their paths.

    Args:
        address: A file or directory.
        recursive: Whether the files of subdirectories belong to the list.
        skip: Says by name which files and directories below the address to leave out.

    Raises:
        FileNotFoundError: There is no such file or directory.
        OSError: The storage cannot be read.
        ConfigurationError: The address cannot be read, or the library for its scheme is not installed.
    """
    address = plain(address)
    if not scheme_of(address):
        return list(_local_files(address, recursive=recursive, skip=skip))
    return _remote_files(address, recursive=recursive, skip=skip)


def download(address: str, target: str) -> None:
    """Copy a file, or a directory with its content, to a local path that does not exist yet.

    A download that fails may leave part of the copy.
    """
    address = plain(address)
    match scheme_of(address):
        case "" if os.path.isdir(address):
            shutil.copytree(address, target)
        case "":
            shutil.copyfile(address, target)
        case "http" | "https":
            with urllib.request.urlopen(address) as answer, open(target, "wb") as file:
                shutil.copyfileobj(answer, file, _COPY_BYTES)
        case _:
            access, path = _locate(address)
            access.download(path, target)


# --------------------------------------------------------------------------------------------------------------- local


def _local_files(path: str, *, recursive: bool, skip: Callable[[str], bool]) -> Iterator[InputFile]:
    if os.path.isdir(path):
        yield from _walk(path, (), recursive=recursive, skip=skip)
    else:
        yield InputFile(path, os.stat(path).st_size)


def _walk(
    directory: str, parents: tuple[str, ...], *, recursive: bool, skip: Callable[[str], bool]
) -> Iterator[InputFile]:
    identity = os.path.realpath(directory)
    if identity in parents:
        return  # a symbolic link to a directory above
    for name in sorted(os.listdir(directory)):
        if skip(name):
            continue
        path = os.path.join(directory, name)
        try:
            found = os.stat(path)
        except FileNotFoundError:
            continue  # removed after the listing, or a link to nothing; any other error must not hide a file
        if stat.S_ISDIR(found.st_mode):
            if recursive:
                yield from _walk(path, (*parents, identity), recursive=recursive, skip=skip)
        elif stat.S_ISREG(found.st_mode):
            yield InputFile(path, found.st_size)


# -------------------------------------------------------------------------------------------------------------- remote


def _remote_files(address: str, *, recursive: bool, skip: Callable[[str], bool]) -> list[InputFile]:
    access, path = _locate(address)
    calls, url = _calls(address), shown(address)
    size_bytes = calls.call(lambda: access.size(path), verb="look for", url=url)
    if size_bytes is not None:
        return [InputFile(address, size_bytes)]
    found = calls.call(lambda: access.files_below(path, recursive=recursive), verb="list", url=url)
    if not found and not calls.call(lambda: access.exists(path), verb="look for", url=url):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), url)
    kept = [entry for entry in found if not any(skip(name) for name in entry.path.split("/"))]
    kept.sort(key=lambda entry: entry.path.split("/"))
    return [InputFile(join(address, access.to_url(entry.path)), entry.size_bytes) for entry in kept]


def _calls(address: str) -> RemoteCalls:
    return RemoteCalls(_locate(address).access, secrets_of(address))


def _locate(address: str) -> OpenedDirectory:
    """Return the access to the storage of a remote file or directory, and its path there."""
    parent, name = split_last(address)
    if not name:
        return _open_cached(address)  # a whole bucket
    access, directory = _open_cached(parent)
    return OpenedDirectory(access, f"{directory.rstrip('/')}/{access.from_url(name)}")


@lru_cache(maxsize=32)
def _open_cached(address: str) -> OpenedDirectory:
    """Open a directory once: a source opens the files of a directory again for every piece that it reads."""
    return open_access(address)
