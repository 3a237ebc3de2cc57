"""The folder of one RocksDB instance on the local disks of a slot's machine."""

from __future__ import annotations

from ekorn.config.options.rocksdb import LOCAL_DIRECTORIES
from ekorn.errors import ConfigurationError
from ekorn.storage.scratch_folders import LocalFolder


def local_folder(directories: tuple[str, ...], index: int) -> LocalFolder:
    """Create a folder for the instance of one subtask. Subtasks use the directories in turn.

    Raises:
        ConfigurationError: The folder cannot be created.
    """
    directory = directories[index % len(directories)]
    try:
        return LocalFolder(directory)
    except OSError as error:
        raise ConfigurationError(
            f"{LOCAL_DIRECTORIES.key} is {directory!r}, where this slot cannot create a folder: {error}"
        ) from error
