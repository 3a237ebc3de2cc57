"""The state backends of Flink 1.x, which also set the checkpoint storage."""

from __future__ import annotations

import os

from ekorn.config import options
from ekorn.config.checkpoint_config import CheckpointConfig
from ekorn.config.checkpoint_storage import FileSystemCheckpointStorage, JobManagerCheckpointStorage
from ekorn.config.configuration import Configuration
from ekorn.config.state_backend import EmbeddedRocksDBStateBackend, HashMapStateBackend, StateBackend

__all__ = ["FsStateBackend", "MemoryStateBackend", "RocksDBStateBackend"]


class _HeapOfFlink1(HashMapStateBackend):
    """The base of the two backends that keep state in memory and also set the checkpoint storage."""

    _storage: JobManagerCheckpointStorage | FileSystemCheckpointStorage
    _savepoint_path: str | None
    _asynchronous: bool | None

    def is_using_asynchronous_snapshots(self) -> bool:
        """Return whether state is written while the job processes records."""
        return self._asynchronous is not False

    def _apply(self, configuration: Configuration, checkpoints: CheckpointConfig) -> None:
        super()._apply(configuration, checkpoints)
        checkpoints.set_checkpoint_storage(self._storage)
        _apply_old(configuration, self._savepoint_path, self._asynchronous)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and repr(other) == repr(self)

    __hash__ = StateBackend.__hash__

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._storage!r}, asynchronous={self.is_using_asynchronous_snapshots()})"


class MemoryStateBackend(_HeapOfFlink1):
    """Keeps state in the slots' memory and checkpoints in the driver's, as in Flink 1.x.

    Args:
        checkpoint_path: A directory to which the driver writes metadata that contains all state.
        savepoint_path: The default directory of savepoints.
        max_state_size: The largest size of a single state in bytes, 5 MB by default. A larger state fails its
            checkpoint.
        using_asynchronous_snapshots: Whether state is written while the job processes records; the default is True.
    """

    _storage: JobManagerCheckpointStorage

    def __init__(
        self,
        checkpoint_path: str | os.PathLike[str] | None = None,
        savepoint_path: str | os.PathLike[str] | None = None,
        max_state_size: int | None = None,
        using_asynchronous_snapshots: bool | None = None,
    ) -> None:
        path = _path("MemoryStateBackend", "checkpoint_path", checkpoint_path, "max_state_size")
        self._storage = JobManagerCheckpointStorage(path, max_state_size)
        hint = "using_asynchronous_snapshots"
        self._savepoint_path = _path("MemoryStateBackend", "savepoint_path", savepoint_path, hint)
        self._asynchronous = _true_or_false("MemoryStateBackend", using_asynchronous_snapshots)

    def get_max_state_size(self) -> int:
        """Return the largest size of a single state in bytes."""
        return self._storage.get_max_state_size()


class FsStateBackend(_HeapOfFlink1):
    """Keeps state in the slots' memory and checkpoints in files, as in Flink 1.x.

    Args:
        checkpoint_directory_uri: The directory of checkpoints.
        default_savepoint_directory_uri: The default directory of savepoints.
        file_state_size_threshold: State below this size in bytes is kept inside the metadata file.
        write_buffer_size: The size of the write buffer in bytes; -1 for the default.
        using_asynchronous_snapshots: Whether state is written while the job processes records; the default is True.
    """

    _storage: FileSystemCheckpointStorage

    def __init__(
        self,
        checkpoint_directory_uri: str | os.PathLike[str] | None = None,
        default_savepoint_directory_uri: str | os.PathLike[str] | None = None,
        file_state_size_threshold: int | None = None,
        write_buffer_size: int | None = None,
        using_asynchronous_snapshots: bool | None = None,
    ) -> None:
        buffer = -1 if write_buffer_size is None else write_buffer_size
        self._storage = FileSystemCheckpointStorage(checkpoint_directory_uri, file_state_size_threshold, buffer)
        given, hint = default_savepoint_directory_uri, "using_asynchronous_snapshots"
        self._savepoint_path = _path("FsStateBackend", "default_savepoint_directory_uri", given, hint)
        self._asynchronous = _true_or_false("FsStateBackend", using_asynchronous_snapshots)

    def get_checkpoint_path(self) -> str:
        """Return the directory of checkpoints."""
        return self._storage.get_checkpoint_path()

    def get_min_file_size_threshold(self) -> int:
        """Return the size in bytes below which state is kept inside the metadata file."""
        return self._storage.get_min_file_size_threshold()

    def get_write_buffer_size(self) -> int:
        """Return the size of the write buffer in bytes."""
        return self._storage.get_write_buffer_size()


class RocksDBStateBackend(EmbeddedRocksDBStateBackend):
    """Keeps state in RocksDB and checkpoints in files, as in Flink 1.x.

    Args:
        checkpoint_data_uri: The directory of checkpoints.
        enable_incremental_checkpointing: Whether a checkpoint writes only what changed since the last one; None leaves
            it to the configuration.
        checkpoint_stream_backend: A backend of Flink 1.x that sets the checkpoint storage, instead of a directory.
    """

    def __init__(
        self,
        checkpoint_data_uri: str | os.PathLike[str] | None = None,
        enable_incremental_checkpointing: bool | None = None,
        checkpoint_stream_backend: FsStateBackend | MemoryStateBackend | None = None,
    ) -> None:
        super().__init__(enable_incremental_checkpointing)
        if checkpoint_stream_backend is None:
            self._storage_backend: StateBackend = FsStateBackend(checkpoint_data_uri)
        elif isinstance(checkpoint_stream_backend, (FsStateBackend, MemoryStateBackend)):
            self._storage_backend = checkpoint_stream_backend
        else:
            raise TypeError(
                "checkpoint_stream_backend is an FsStateBackend or a MemoryStateBackend, "
                f"got {checkpoint_stream_backend!r}"
            )

    def get_checkpoint_backend(self) -> StateBackend:
        """Return the backend that sets the checkpoint storage."""
        return self._storage_backend

    def _apply(self, configuration: Configuration, checkpoints: CheckpointConfig) -> None:
        self._storage_backend._apply(configuration, checkpoints)
        super()._apply(configuration, checkpoints)

    def __repr__(self) -> str:
        return f"RocksDBStateBackend({self._storage_backend!r}, enable_incremental_checkpointing={self._incremental})"


def _path(backend: str, name: str, given: str | os.PathLike[str] | None, in_java: str) -> str | None:
    """Return a path, or None.

    Flink: Java's constructors have other parameters in this position. The error names the parameter that was meant.
    """
    if given is None:
        return None
    if not isinstance(given, (str, os.PathLike)):
        raise TypeError(f"{backend}: {name} is a path, got {given!r}; did you mean {in_java}={given!r}?")
    return os.fspath(given)


def _true_or_false(backend: str, given: bool | None) -> bool | None:
    if given not in (None, True, False):
        raise TypeError(f"{backend}: using_asynchronous_snapshots is True or False, got {given!r}")
    return given


def _apply_old(configuration: Configuration, savepoint_path: str | None, asynchronous: bool | None) -> None:
    if savepoint_path is not None:
        configuration.set_string(options.SAVEPOINT_DIR.key, savepoint_path)
    if asynchronous is not None:
        configuration.set_boolean(options.STATE_BACKEND_ASYNC.key, asynchronous)
