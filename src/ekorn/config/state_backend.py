"""`StateBackend`: where a job keeps its working state; the classes of Flink 1.x also set the checkpoint storage.

A backend writes its settings into the configuration, which also holds those of `config.yaml`, so the last one counts.
See docs/state_backends.md.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from enum import Enum

from ekorn.config import options
from ekorn.config import rocksdb_options as keys
from ekorn.config.checkpoint_config import CheckpointConfig
from ekorn.config.checkpoint_storage import FileSystemCheckpointStorage, JobManagerCheckpointStorage
from ekorn.config.configuration import Configuration

__all__ = [
    "EmbeddedRocksDBStateBackend",
    "FsStateBackend",
    "HashMapStateBackend",
    "MemoryStateBackend",
    "PredefinedOptions",
    "RocksDBStateBackend",
    "StateBackend",
]


class StateBackend(ABC):
    """A place for working state. The contents and the place of checkpoints are set with the checkpoint config."""

    @property
    @abstractmethod
    def backend_name(self) -> str:
        """Return the name of the backend in the configuration, under ``state.backend.type``."""

    def _apply(self, configuration: Configuration, checkpoints: CheckpointConfig) -> None:
        """Write the settings of the backend into an environment's configuration."""
        configuration.set_string(options.STATE_BACKEND.key, self.backend_name)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class HashMapStateBackend(StateBackend):
    """Keeps state as Python objects in the slots' memory: the fastest backend, limited by memory. The default."""

    @property
    def backend_name(self) -> str:
        """Return ``hashmap``."""
        return "hashmap"


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


class PredefinedOptions(Enum):
    """Sets of RocksDB settings. Single keys of the configuration override them."""

    DEFAULT = 0
    SPINNING_DISK_OPTIMIZED = 1
    SPINNING_DISK_OPTIMIZED_HIGH_MEM = 2
    FLASH_SSD_OPTIMIZED = 3


class EmbeddedRocksDBStateBackend(StateBackend):
    """Keeps state in RocksDB, on the local disks of the slots. State may be far larger than memory and is slower.

    Needs the package ``rocksdict``: ``pip install ekorn[rocksdb]``.

    Args:
        enable_incremental_checkpointing: Whether a checkpoint writes only what changed since the last one; None leaves
            it to the configuration.
    """

    def __init__(self, enable_incremental_checkpointing: bool | None = None) -> None:
        if enable_incremental_checkpointing not in (None, True, False):
            raise TypeError(
                f"{type(self).__name__} takes True or False for incremental checkpoints, "
                f"got {enable_incremental_checkpointing!r}"
            )
        self._incremental = enable_incremental_checkpointing
        self._paths: tuple[str, ...] | None = None
        self._options_factory: str | None = None
        self._predefined: PredefinedOptions | None = None
        self._transfer_threads: int | None = None

    @property
    def backend_name(self) -> str:
        """Return ``rocksdb``."""
        return "rocksdb"

    def is_incremental_checkpoints_enabled(self) -> bool:
        """Return whether a checkpoint writes only what changed since the last one."""
        return options.CHECKPOINT_INCREMENTAL.default if self._incremental is None else self._incremental

    def set_db_storage_paths(self, *paths: str) -> None:
        """Set the folders for working state on the slots' machines. Subtasks use the folders in turn.

        Without folders the state lies in the slots' folders for temporary files.
        """
        if not paths:
            self._paths = None
            return
        self._paths = keys.LOCAL_DIRECTORIES.parse(",".join(os.fspath(path) for path in paths))

    def get_db_storage_paths(self) -> list[str] | None:
        """Return the arguments of `set_db_storage_paths`, or None if there are none."""
        return None if self._paths is None else list(self._paths)

    def set_predefined_options(self, options: PredefinedOptions) -> None:
        """Set the predefined set of settings."""
        if not isinstance(options, PredefinedOptions):
            raise TypeError(f"set_predefined_options() takes one of PredefinedOptions, got {options!r}")
        self._predefined = options

    def get_predefined_options(self) -> PredefinedOptions:
        """Return the predefined set of settings."""
        return self._predefined or PredefinedOptions.DEFAULT

    def set_options(self, options_factory_class_name: str) -> None:
        """Set the import path of a Python class that changes RocksDB's options.

        Its method ``create_db_options(options)`` is called with a ``rocksdict.Options`` before an instance is opened.
        """
        if not isinstance(options_factory_class_name, str) or "." not in options_factory_class_name:
            raise ValueError(
                "set_options() takes the import path of a Python class with create_db_options(options), such as "
                f"'my_package.MyOptions', got {options_factory_class_name!r}"
            )
        self._options_factory = options_factory_class_name

    def get_options(self) -> str | None:
        """Return the argument of `set_options`, or None."""
        return self._options_factory

    def set_number_of_transfer_threads(self, number_of_transfering_threads: int) -> None:
        """Set how many files of a checkpoint a subtask copies at the same time."""
        if not isinstance(number_of_transfering_threads, int) or number_of_transfering_threads < 1:
            raise ValueError(f"the number of threads must be at least 1, got {number_of_transfering_threads!r}")
        self._transfer_threads = number_of_transfering_threads

    def get_number_of_transfer_threads(self) -> int:
        """Return how many files of a checkpoint a subtask copies at the same time."""
        return keys.TRANSFER_THREADS.default if self._transfer_threads is None else self._transfer_threads

    def _apply(self, configuration: Configuration, checkpoints: CheckpointConfig) -> None:
        super()._apply(configuration, checkpoints)
        given = {
            keys.LOCAL_DIRECTORIES.key: None if self._paths is None else ",".join(self._paths),
            keys.OPTIONS_FACTORY.key: self._options_factory,
            keys.PREDEFINED_OPTIONS.key: None if self._predefined is None else self._predefined.name,
            keys.TRANSFER_THREADS.key: None if self._transfer_threads is None else str(self._transfer_threads),
        }
        for key, value in given.items():
            if value is not None:
                configuration.set_string(key, value)
        if self._incremental is not None:
            configuration.set_boolean(options.CHECKPOINT_INCREMENTAL.key, self._incremental)

    @staticmethod
    def _of(configuration: Configuration) -> EmbeddedRocksDBStateBackend:
        """Return the backend with the settings of a configuration."""
        found = EmbeddedRocksDBStateBackend(options.CHECKPOINT_INCREMENTAL.read(configuration))
        found._paths = keys.LOCAL_DIRECTORIES.read(configuration) or None
        found._options_factory = keys.OPTIONS_FACTORY.read(configuration)
        found._predefined = PredefinedOptions[keys.PREDEFINED_OPTIONS.read(configuration)]
        found._transfer_threads = keys.TRANSFER_THREADS.read(configuration)
        return found

    def __repr__(self) -> str:
        return f"{type(self).__name__}(enable_incremental_checkpointing={self._incremental})"


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
