"""Part files: hidden while they are written, durable before a checkpoint refers to them, visible by one rename.

A part has two names. `.part-0-<uid>-3.inprogress.<uuid>` is the file being written; readers skip it. `part-0-<uid>-3`
is the same file once the checkpoint that covers it is complete. A checkpoint keeps the hidden path and the number of
valid bytes. Bytes behind them, from an attempt that failed, are cut off when the file is made visible.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import BinaryIO, TypedDict

from ekorn.errors import CheckpointError, PendingFileLost
from ekorn.faults import point
from ekorn.storage.durable import make_directory, sync_directory, sync_file
from ekorn.storage.result_modes import apply_file_mode

_BUFFER_BYTES = 64 * 1024
_BLOCK_BYTES = 1 << 20  # the size of the blocks in which a file is copied or compared


class PendingFile(TypedDict):
    """A complete part that waits for its checkpoint: plain data, which checkpoints keep."""

    hidden: str
    visible: str
    bytes: int


class BufferedPart(ABC):
    """The facts about a part that a rolling policy asks for, and the buffer that collects its records."""

    __slots__ = ("_bucket_id", "_buffer", "_buffer_bytes", "_created_ms", "_size", "_written_ms", "saved")

    def __init__(self, bucket_id: str, now_ms: int, buffer_bytes: int) -> None:
        self.saved = False  # True once a checkpoint may refer to the part, which then must not be deleted
        self._bucket_id = bucket_id
        self._created_ms = self._written_ms = now_ms
        self._buffer = bytearray()
        self._buffer_bytes = buffer_bytes
        self._size = 0

    def get_bucket_id(self) -> str:
        """Return the bucket of the part."""
        return self._bucket_id

    def get_creation_time(self) -> int:
        """Return the time at which the part was begun, in milliseconds."""
        return self._created_ms

    def get_size(self) -> int:
        """Return the number of bytes written to the part."""
        return self._size

    def get_last_update_time(self) -> int:
        """Return the time at which a record was last written to the part, in milliseconds."""
        return self._written_ms

    def write(self, data: bytes, now_ms: int) -> None:  # hot
        """Append a record."""
        self._buffer += data
        self._size += len(data)
        self._written_ms = now_ms
        if len(self._buffer) >= self._buffer_bytes:
            self._write_out()

    @abstractmethod
    def _write_out(self) -> None:
        """Write the buffer to the storage, and empty it."""


class PartFile(BufferedPart):
    """The part being written in one bucket. It holds no open file, because there may be many buckets."""

    __slots__ = ("_durable_bytes", "_exists", "hidden", "visible")

    def __init__(self, bucket_id: str, hidden: str, visible: str, now_ms: int) -> None:
        super().__init__(bucket_id, now_ms, _BUFFER_BYTES)
        self.hidden = hidden
        self.visible = visible
        self._durable_bytes: int | None = None  # None: the file has no durable name yet
        self._exists = False

    def _write_out(self) -> None:
        self.flush()

    def flush(self) -> None:
        """Write the buffer to the file."""
        if not self._buffer and self._exists:
            return
        flags = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
        if not self._exists:
            make_directory(os.path.dirname(self.hidden))
            flags |= os.O_CREAT | os.O_EXCL
        # O_CREAT is set the first time only: a file that was removed in between must be an error, and must not become
        # a file without its beginning.
        with open(os.open(self.hidden, flags, 0o666), "wb") as file:
            if not self._exists:
                apply_file_mode(file.fileno())
            self._exists = True
            hold(file.fileno())
            if not _is_still_at(file.fileno(), self.hidden):
                raise CheckpointError(f"cannot continue writing {self.hidden!r}: another attempt has committed it")
            found = os.fstat(file.fileno()).st_size
            if found != self._size - len(self._buffer):
                raise CheckpointError(
                    f"cannot continue writing {self.hidden!r}: it has {found} bytes, but this writer "
                    f"wrote {self._size - len(self._buffer)}; only one job may write to a part file"
                )
            file.write(self._buffer)
        self._buffer = bytearray()

    def make_durable(self) -> None:
        """Make all written bytes durable, so that a checkpoint may refer to the part."""
        self.flush()
        if self._durable_bytes != self._size:
            sync_file(self.hidden)
            if self._durable_bytes is None:
                sync_directory(os.path.dirname(self.hidden))
            self._durable_bytes = self._size
        self.saved = True

    def pending(self) -> PendingFile:
        """Return the part as a checkpoint keeps it."""
        return {"hidden": self.hidden, "visible": self.visible, "bytes": self._size}

    def delete(self) -> None:
        """Remove the file. No checkpoint refers to the part."""
        assert not self.saved
        remove_quietly(self.hidden)


def publish(files: Iterable[PendingFile]) -> None:
    """Make parts visible and durable. A part that is visible already stays unchanged."""
    directories = set()
    for file in files:
        _publish_one(file)
        directories.add(os.path.dirname(file["visible"]))
    for directory in sorted(directories):
        sync_directory(directory)


def _publish_one(file: PendingFile) -> None:
    hidden, visible, length = file["hidden"], file["visible"], file["bytes"]
    try:
        found = os.path.getsize(hidden)
    except FileNotFoundError:
        if os.path.exists(visible):
            return  # the part was committed before, and a restore commits it again
        raise PendingFileLost(visible, f"the pending file {hidden!r}", length, None) from None
    if found < length:
        raise PendingFileLost(visible, f"the pending file {hidden!r}", length, found)
    if os.path.exists(visible):
        if not _is_copy(visible, hidden, length):
            raise CheckpointError(f"cannot commit {hidden!r} as {visible!r}: a file of that name exists; move it away")
        remove_quietly(hidden)  # the process that made the copy died before it removed the original
        return
    point("sink-file")
    with open(hidden, "r+b") as opened:
        if not _take_alone(opened.fileno()):
            # A writer of an abandoned attempt holds the file and may append later: copy the valid bytes instead.
            _copy_out(opened, length, hidden, visible)
            return
        if found > length:
            os.truncate(opened.fileno(), length)
            os.fsync(opened.fileno())
        os.rename(hidden, visible)


def _copy_out(source: BinaryIO, length: int, hidden: str, visible: str) -> None:
    """Make the part visible as a copy, independent of the file to which it was written."""
    draft = f"{hidden}.{uuid.uuid4()}"
    with open(draft, "xb") as target:
        left = length
        while left:
            data = source.read(min(left, _BLOCK_BYTES))
            if not data:
                raise CheckpointError(f"cannot commit {visible!r}: {hidden!r} became shorter than {length} bytes")
            target.write(data)
            left -= len(data)
        target.flush()
        os.fsync(target.fileno())
    os.rename(draft, visible)
    remove_quietly(hidden)


def _is_copy(visible: str, hidden: str, length: int) -> bool:
    """Return whether a file holds exactly the valid bytes of a part."""
    if os.path.getsize(visible) != length:
        return False
    with open(visible, "rb") as copy, open(hidden, "rb") as original:
        while block := copy.read(_BLOCK_BYTES):
            if original.read(len(block)) != block:
                return False
    return True


def hold(descriptor: int) -> None:
    """Mark this file as being appended to, as long as it is open."""
    with contextlib.suppress(OSError):  # without locks on this file system, only the size is checked
        fcntl.flock(descriptor, fcntl.LOCK_SH)


def _take_alone(descriptor: int) -> bool:
    """Return whether no process appends to this file, and none will while it is open here."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass  # without locks on this file system, only the size is checked
    return True


def _is_still_at(descriptor: int, path: str) -> bool:
    """Return whether a path leads to this open file."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def remove_quietly(path: str) -> None:
    """Delete a file that is no longer needed. A hidden file that remains does no harm."""
    with contextlib.suppress(OSError):
        os.unlink(path)
