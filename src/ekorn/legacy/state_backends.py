"""The state backends of Flink 1.x, which also set the checkpoint storage.

Their constructors take the positional arguments of PyFlink and those of Java: `MemoryStateBackend(size, False)`,
`FsStateBackend(path, False)`. A path, a number and a truth value cannot be mistaken for one another.
"""

from __future__ import annotations

import os
from typing import Any

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

    Example:
        >>> MemoryStateBackend(10 * 1024 * 1024, False).get_max_state_size()  # as in Java
        10485760
    """

    DEFAULT_MAX_STATE_SIZE = JobManagerCheckpointStorage.DEFAULT_MAX_STATE_SIZE
    _storage: JobManagerCheckpointStorage

    def __init__(
        self,
        checkpoint_path: str | os.PathLike[str] | int | None = None,
        savepoint_path: str | os.PathLike[str] | bool | None = None,
        max_state_size: int | None = None,
        using_asynchronous_snapshots: bool | None = None,
    ) -> None:
        path, self._savepoint_path, size, self._asynchronous = _in_place(
            "MemoryStateBackend",
            ("checkpoint_path", _PATH, checkpoint_path),
            ("savepoint_path", _PATH, savepoint_path),
            ("max_state_size", _BYTES, max_state_size),
            ("using_asynchronous_snapshots", _TRUTH, using_asynchronous_snapshots),
        )
        self._storage = JobManagerCheckpointStorage(path, size)

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

    Example:
        >>> FsStateBackend("/checkpoints", False).is_using_asynchronous_snapshots()  # as in Java
        False
    """

    _storage: FileSystemCheckpointStorage

    def __init__(
        self,
        checkpoint_directory_uri: str | os.PathLike[str] | None = None,
        default_savepoint_directory_uri: str | os.PathLike[str] | int | None = None,
        file_state_size_threshold: int | None = None,
        write_buffer_size: int | None = None,
        using_asynchronous_snapshots: bool | None = None,
    ) -> None:
        path, self._savepoint_path, threshold, buffer, self._asynchronous = _in_place(
            "FsStateBackend",
            ("checkpoint_directory_uri", _PATH, checkpoint_directory_uri),
            ("default_savepoint_directory_uri", _PATH, default_savepoint_directory_uri),
            ("file_state_size_threshold", _BYTES, file_state_size_threshold),
            ("write_buffer_size", _BYTES, write_buffer_size),
            ("using_asynchronous_snapshots", _TRUTH, using_asynchronous_snapshots),
        )
        self._storage = FileSystemCheckpointStorage(path, threshold, -1 if buffer is None else buffer)

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
        checkpoint_data_uri: The directory of checkpoints; or, as in Java, a `checkpoint_stream_backend`.
        enable_incremental_checkpointing: Whether a checkpoint writes only what changed since the last one; None leaves
            it to the configuration.
        checkpoint_stream_backend: A backend of Flink 1.x that sets the checkpoint storage, instead of a directory.
    """

    def __init__(
        self,
        checkpoint_data_uri: str | os.PathLike[str] | FsStateBackend | MemoryStateBackend | None = None,
        enable_incremental_checkpointing: bool | None = None,
        checkpoint_stream_backend: FsStateBackend | MemoryStateBackend | None = None,
    ) -> None:
        super().__init__(enable_incremental_checkpointing)
        if isinstance(checkpoint_data_uri, StateBackend):
            self._storage_backend: StateBackend = checkpoint_data_uri
        elif checkpoint_stream_backend is None:
            self._storage_backend = FsStateBackend(checkpoint_data_uri)
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


_PATH, _BYTES, _TRUTH = "a path", "a number of bytes", "True or False"


def _in_place(backend: str, *parameters: tuple[str, str, Any]) -> list[Any]:
    """Return the values of a constructor's parameters.

    Flink: Java's constructors leave out parameters that PyFlink's have. A value of another kind than its parameter's
    belongs to the next parameter of its own kind.

    Args:
        backend: The name of the backend, for the error.
        parameters: The name, the kind and the given value of each.
    """
    found: list[Any] = [None] * len(parameters)
    for number, (name, wanted, value) in enumerate(parameters):
        if value is None:
            continue
        kind = _kind_of(value)
        place = next((at for at in range(number, len(parameters)) if parameters[at][1] == kind), None)
        has_own = place is not None and place != number and _kind_of(parameters[place][2]) == kind
        if place is None or has_own or found[place] is not None:
            raise TypeError(f"{backend}: {name} is {wanted}, got {value!r}")
        found[place] = os.fspath(value) if kind == _PATH else value
    return found


def _kind_of(value: Any) -> str | None:
    if isinstance(value, bool):
        return _TRUTH
    if isinstance(value, int):
        return _BYTES
    return _PATH if isinstance(value, (str, os.PathLike)) else None


def _apply_old(configuration: Configuration, savepoint_path: str | None, asynchronous: bool | None) -> None:
    if savepoint_path is not None:
        configuration.set_string(options.SAVEPOINT_DIR.key, savepoint_path)
    if asynchronous is not None:
        configuration.set_boolean(options.STATE_BACKEND_ASYNC.key, asynchronous)
