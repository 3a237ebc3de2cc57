"""`CheckpointStorage`: the place of checkpoints, in the memory of the driver or in files."""

from __future__ import annotations

import os
from abc import ABC
from urllib.parse import urlsplit

from ekorn.config import options

__all__ = ["CheckpointStorage", "FileSystemCheckpointStorage", "JobManagerCheckpointStorage"]

_ONE_MEBIBYTE = 1024 * 1024


class CheckpointStorage(ABC):  # noqa: B024
    """A place for checkpoints, given to `CheckpointConfig.set_checkpoint_storage`."""


class JobManagerCheckpointStorage(CheckpointStorage):
    """Checkpoints in the memory of the driver, for trials. They are lost with the driver unless a path is given.

    Args:
        checkpoint_path: A directory to which the driver writes metadata that contains all state.
        max_state_size: The largest size of a single state in bytes. A checkpoint with a larger state fails.
    """

    DEFAULT_MAX_STATE_SIZE = 5 * _ONE_MEBIBYTE

    def __init__(self, checkpoint_path: str | None = None, max_state_size: int | None = None) -> None:
        size = JobManagerCheckpointStorage.DEFAULT_MAX_STATE_SIZE if max_state_size is None else max_state_size
        if not isinstance(size, int) or isinstance(size, bool):
            raise TypeError(f"the maximum state size is a number of bytes, got {size!r}")
        if size <= 0:
            raise ValueError(f"the maximum state size must be greater than 0 bytes, got {size}")
        self._path = None if checkpoint_path is None else checkpoint_uri(checkpoint_path)
        self._max_state_size = size

    def get_checkpoint_path(self) -> str | None:
        """Return the directory of metadata, or None."""
        return self._path

    def get_savepoint_path(self) -> str | None:
        """Return None: savepoints have a setting of their own."""
        return None

    def get_max_state_size(self) -> int:
        """Return the largest size of a single state in bytes."""
        return self._max_state_size

    def __repr__(self) -> str:
        return f"JobManagerCheckpointStorage({self._path!r}, max_state_size={self._max_state_size})"


class FileSystemCheckpointStorage(CheckpointStorage):
    """Checkpoints as files in a directory that every machine reaches.

    Args:
        checkpoint_path: The directory: a path, or a URL such as ``file:///...`` or ``s3://...``.
        file_state_size_threshold: State below this size in bytes is kept inside the metadata file.
        write_buffer_size: The size of the write buffer in bytes; -1 for the default.
    """

    MAX_FILE_STATE_THRESHOLD = _ONE_MEBIBYTE
    DEFAULT_FILE_STATE_THRESHOLD = options.CHECKPOINT_INLINE_THRESHOLD.default
    DEFAULT_WRITE_BUFFER_SIZE = options.CHECKPOINT_WRITE_BUFFER.default

    def __init__(
        self,
        checkpoint_path: str | os.PathLike[str] | None = None,
        file_state_size_threshold: int | None = None,
        write_buffer_size: int = -1,
    ) -> None:
        threshold = file_state_size_threshold
        if threshold is not None and not 0 <= threshold <= self.MAX_FILE_STATE_THRESHOLD:
            raise ValueError(
                f"the file state size threshold must be between 0 and {self.MAX_FILE_STATE_THRESHOLD} bytes, got "
                f"{threshold}"
            )
        if write_buffer_size < -1:
            raise ValueError(f"the write buffer size is a number of bytes, or -1, got {write_buffer_size}")
        self._path = checkpoint_uri(checkpoint_path)
        self._threshold = threshold
        self._write_buffer_size = write_buffer_size

    def get_checkpoint_path(self) -> str:
        """Return the directory."""
        return self._path

    def get_savepoint_path(self) -> str | None:
        """Return None: savepoints have a setting of their own."""
        return None

    def get_min_file_size_threshold(self) -> int:
        """Return the size in bytes below which state is kept inside the metadata file."""
        return self.DEFAULT_FILE_STATE_THRESHOLD if self._threshold is None else self._threshold

    def get_write_buffer_size(self) -> int:
        """Return the size of the write buffer in bytes, which is at least the threshold."""
        size = self.DEFAULT_WRITE_BUFFER_SIZE if self._write_buffer_size == -1 else self._write_buffer_size
        return max(size, self.get_min_file_size_threshold())

    def __repr__(self) -> str:
        return f"FileSystemCheckpointStorage({self._path!r})"


def checkpoint_uri(path: str | os.PathLike[str] | None) -> str:
    """Return a checkpoint directory: a URL without slashes at its end, a plain path as an absolute path."""
    text = None if path is None else os.fspath(path)
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"a checkpoint directory is a path or a URL, got {path!r}")
    if len(urlsplit(text).scheme) > 1:  # one letter is a Windows drive
        return text.rstrip("/") if urlsplit(text).path.strip("/") else text
    return os.path.abspath(text)
