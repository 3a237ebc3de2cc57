"""`StateBackend`: where a job keeps its working state.

A backend writes its settings into the configuration, which also holds those of `config.yaml`, so the last one counts.
See docs/state_backends.md.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from enum import Enum

from ekorn.config import options
from ekorn.config.checkpoint_config import CheckpointConfig
from ekorn.config.configuration import Configuration
from ekorn.config.options import rocksdb as keys
from ekorn.extras import need

__all__ = [
    "EmbeddedRocksDBStateBackend",
    "HashMapStateBackend",
    "PredefinedOptions",
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


class PredefinedOptions(Enum):
    """Sets of RocksDB settings. Single keys of the configuration override them."""

    DEFAULT = 0
    SPINNING_DISK_OPTIMIZED = 1
    SPINNING_DISK_OPTIMIZED_HIGH_MEM = 2
    FLASH_SSD_OPTIMIZED = 3


class EmbeddedRocksDBStateBackend(StateBackend):
    """Keeps state in RocksDB, on the local disks of the slots. State may be far larger than memory and is slower.

    Needs the package ``rocksdict``: ``pip install "ekorn[rocksdb]"``.

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
        need("rocksdb", type(self).__name__)
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
