"""Part files by URL: on object stores and remote file systems, through the libraries that checkpoints use too.

A part is streamed to an object with a hidden name, which exists from the moment the stream is closed, before the
checkpoint refers to it. A copy within the storage, or a rename on file systems, makes it visible. Objects cannot be
appended to, so every checkpoint ends the open parts.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Callable, Iterable
from typing import IO, Any, TypedDict, TypeVar

from ekorn.connectors.files.part_files import BufferedPart
from ekorn.connectors.files.part_store import missing_part
from ekorn.errors import CheckpointError, ConfigurationError, PendingFileLost
from ekorn.extras import install_command
from ekorn.faults import point
from ekorn.storage.locations import join, masked, scheme_of, secrets_of, shown
from ekorn.storage.remote_access import RemoteCalls, open_access

__all__ = ["RemoteParts", "RemotePending"]

_BUFFER_BYTES = 256 * 1024
T = TypeVar("T")


class RemotePending(TypedDict):
    """A complete part that waits for its checkpoint. Paths are below the base, which is kept without credentials."""

    base: str
    hidden: str
    visible: str
    bytes: int


class RemoteParts:
    """Parts below a URL."""

    ends_at_checkpoints = True

    def __init__(self, address: str) -> None:
        self._address = address
        self.url = shown(address)
        self.access, root = open_access(address)
        if not root.strip("/"):
            raise ConfigurationError(
                f"{self.url!r} does not name a bucket; write {scheme_of(address)}://bucket/directory"
            )
        self._root = root.rstrip("/")
        self.secrets = secrets_of(address)
        self._calls = RemoteCalls(self.access, self.secrets)

    def place(self, path: str) -> str:
        """Return a path below the base in the form of the library."""
        return f"{self._root}/{path}"

    def call(self, verb: str, path: str, action: Callable[[], T]) -> T:
        """Call the storage; errors name the file and no credentials."""
        return self._calls.call(action, verb=verb, url=f"{self.url}/{path}")

    def begin(self, bucket_id: str, name: str, hidden_name: str, now_ms: int) -> RemotePart:
        directory = f"{bucket_id}/" if bucket_id else ""
        return RemotePart(self, bucket_id, directory + hidden_name, directory + name, now_ms)

    def publish(self, files: Iterable[RemotePending]) -> None:
        for file in files:
            self._publish_one(file)

    def _publish_one(self, file: RemotePending) -> None:
        hidden, visible = self._checked(file)["hidden"], file["visible"]
        found, published = self._size(hidden), self._size(visible)
        if found is None:
            if published is not None:
                return  # the part was committed before, and a restore commits it again
            raise PendingFileLost(f"{self.url}/{visible}", f"the pending file {hidden!r}", file["bytes"], None)
        if found != file["bytes"]:
            raise PendingFileLost(f"{self.url}/{visible}", f"the pending file {hidden!r}", file["bytes"], found)
        point("sink-file")
        if published is None:
            # A copy appears whole or not at all, so a visible file is complete.
            move = self.access.copy if self.access.whole_puts else self.access.move
            self.call("commit", visible, lambda: move(self.place(hidden), self.place(visible)))
        elif published != file["bytes"]:
            raise CheckpointError(
                f"cannot commit {hidden!r} as {self.url}/{visible}: a file of that name exists; move it away"
            )
        point("sink-file-copied")
        self.remove_hidden(file)

    def is_visible(self, file: RemotePending) -> bool:
        return self._size(self._checked(file)["visible"]) is not None

    def check_restored(self, file: RemotePending) -> None:
        if self.bytes_of(file) != file["bytes"]:
            raise missing_part(f"{self.url}/{file['hidden']}")

    def bytes_of(self, file: RemotePending) -> int | None:
        return self._size(self._checked(file)["hidden"])

    def open_pending(self, file: RemotePending) -> IO[bytes]:
        return self.call("open", file["hidden"], lambda: self.access.open(self.place(file["hidden"])))

    def address_of(self, file: RemotePending) -> str:
        return join(self._address, self.access.to_url(file["hidden"]))

    def bucket_of(self, file: RemotePending) -> str:
        return file["visible"].rpartition("/")[0]

    def remove_hidden(self, file: RemotePending) -> None:
        with contextlib.suppress(OSError):  # a hidden object that remains does no harm
            self.call("remove", file["hidden"], lambda: self.access.remove(self.place(file["hidden"])))

    def _size(self, path: str) -> int | None:
        return self.call("look for", path, lambda: self.access.size(self.place(path)))

    def _checked(self, file: RemotePending) -> RemotePending:
        if "hidden" not in file:
            raise CheckpointError(
                f"cannot commit {file['visible']!r}: it was uploaded in parts, which needs boto3 and no compaction; "
                f"start the job once with its former settings: {install_command('s3')}"
            )
        if file["base"] != self.url:
            raise CheckpointError(
                f"cannot commit {file['visible']!r}: it was written below {file['base']}, and the sink is at "
                f"{self.url} now; start the job once with the former base path"
            )
        return file


class RemotePart(BufferedPart):
    """The part being written in one bucket; its stream is open until the part ends."""

    def __init__(self, parts: RemoteParts, bucket_id: str, hidden: str, visible: str, now_ms: int) -> None:
        super().__init__(bucket_id, now_ms, _BUFFER_BYTES)
        self._parts = parts
        self._hidden = hidden
        self._visible = visible
        self._stream: Any = None
        self._closed = False

    def flush(self) -> None:
        if self._stream is None:
            place = self._parts.place(self._hidden)
            self._stream = self._parts.call("write", self._hidden, lambda: self._parts.access.open_output(place))
        if self._buffer:
            data, self._buffer = bytes(self._buffer), bytearray()
            self._once(lambda: self._stream.write(data))

    def _write_out(self) -> None:
        self.flush()

    def make_durable(self) -> None:
        self.flush()
        if not self._closed:
            self._closed = True
            self._once(self._stream.close)
        self.saved = True

    def _once(self, action: Callable[[], Any]) -> None:
        """Call the open stream, which cannot be used again after an error. The raised error hides the credentials."""
        try:
            action()
        except Exception as error:  # each library raises errors of its own
            text = masked(str(error) or type(error).__name__, self._parts.secrets)
            raise OSError(errno.EIO, f"cannot write {self._parts.url}/{self._hidden}: {text}") from None

    def pending(self) -> RemotePending:
        return {"base": self._parts.url, "hidden": self._hidden, "visible": self._visible, "bytes": self._size}

    def delete(self) -> None:
        assert not self.saved
        if self._stream is not None:
            with contextlib.suppress(Exception):  # the object, whole or not, is not needed
                self._stream.close()
            self._parts.remove_hidden(self.pending())
