"""Where the data files of a table lie: on a file system that slots reach by a path, or on an object store."""

from __future__ import annotations

import os
from typing import Any, BinaryIO, Protocol

from ekorn.storage.durable import make_directory, sync_directory
from ekorn.storage.locations import join, masked, secrets_of, shown
from ekorn.storage.remote_access import RemoteCalls, open_access
from ekorn.storage.result_modes import apply_file_mode

__all__ = ["DataFolder", "RemoteFolder", "SharedFolder", "TableFolder"]


class DataFolder(Protocol):
    """A folder that receives files. A file is complete, or does not exist, or is named by no commit."""

    def create(self, name: str) -> BinaryIO:
        """Begin a file."""

    def complete(self, stream: BinaryIO) -> int:
        """End a file and make it durable; return its size in bytes."""

    def discard(self, name: str, stream: BinaryIO) -> None:
        """Remove a file that is not complete."""

    def path_of(self, name: str) -> str:
        """Return the path or URL of a file, without credentials."""


class SharedFolder:
    """A folder of a file system that all slots reach under the same path."""

    def __init__(self, path: str) -> None:
        self._path = path

    def create(self, name: str) -> BinaryIO:
        make_directory(self._path)
        stream = open(self.path_of(name), "xb")  # noqa: SIM115 - `complete` or `abandon` closes it
        apply_file_mode(stream.fileno())
        return stream

    def complete(self, stream: BinaryIO) -> int:
        stream.flush()
        os.fsync(stream.fileno())
        size_bytes = stream.tell()
        stream.close()
        sync_directory(self._path)
        return size_bytes

    def discard(self, name: str, stream: BinaryIO) -> None:
        stream.close()
        os.unlink(self.path_of(name))

    def path_of(self, name: str) -> str:
        return os.path.join(self._path, name)


class RemoteFolder:
    """A folder behind a URL that storage opens. An upload appears when it is complete."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._access, self._path = open_access(address)
        self._calls = RemoteCalls(self._access, secrets_of(address))

    def create(self, name: str) -> BinaryIO:
        path = f"{self._path}/{name}"
        return self._calls.call(lambda: self._access.open_output(path), verb="create", url=self.path_of(name))

    def complete(self, stream: BinaryIO) -> int:
        size_bytes = stream.tell()
        # The call is not repeated: after a failed end the stream is closed, and closing it again says nothing about the
        # upload.
        try:
            stream.close()
        except Exception as error:  # each library raises errors of its own
            text = masked(str(error), secrets_of(self._address))
            raise OSError(f"cannot write to {shown(self._address)}: {text}") from None
        return size_bytes

    def discard(self, name: str, stream: BinaryIO) -> None:
        self.complete(stream)  # an upload cannot be ended in any other way here
        path = f"{self._path}/{name}"
        self._calls.call(lambda: self._access.remove(path), verb="remove", url=self.path_of(name))

    def path_of(self, name: str) -> str:
        return shown(join(self._address, name))


class TableFolder:
    """The data folder of an Iceberg table, behind the table's own access to its storage."""

    def __init__(self, table_io: Any, location: str) -> None:
        self._io = table_io
        self._location = location

    def create(self, name: str) -> BinaryIO:
        stream: BinaryIO = self._io.new_output(self.path_of(name)).create()
        return stream

    def complete(self, stream: BinaryIO) -> int:
        size_bytes = stream.tell()
        stream.close()
        return size_bytes

    def discard(self, name: str, stream: BinaryIO) -> None:
        stream.close()
        self._io.delete(self.path_of(name))

    def path_of(self, name: str) -> str:
        return f"{self._location}/{name}"
