"""Runs in the driver: the folder through which the rows of a DataFrame pass between Spark and the slots.

On one machine it is a private folder of this process, which is removed with the process at the latest. A job whose
checkpoints outlive the process needs one that does so too, and a cluster one that every machine sees: below
`ekorn.data-frames.dir`, or below the checkpoint directory.
"""

from __future__ import annotations

import tempfile

from ekorn.config.options import CHECKPOINT_DIR, DATA_FRAMES_DIR
from ekorn.config.settings.job_settings import JobSettings
from ekorn.connectors.files.file_addresses import input_address
from ekorn.errors import ConfigurationError
from ekorn.storage.file_store import FileStore, open_files
from ekorn.storage.locations import join, plain, scheme_of, shown, split_last
from ekorn.storage.scratch_folders import LocalFolder

__all__ = ["RowFolder", "row_folder", "url_for_spark"]

_BELOW_CHECKPOINTS = "data-frames"
# Hadoop's names of the schemes; the bare ones have no implementation in Hadoop 3.
_HADOOP_SCHEMES = {"s3": "s3a", "s3n": "s3a", "gcs": "gs"}


class RowFolder:
    """A folder for rows.

    Attributes:
        address: Its path or URL, with credentials.
    """

    def __init__(self, address: str, own: LocalFolder | None = None) -> None:
        self.address = address
        self._own = own

    @property
    def files(self) -> FileStore:
        """The files of the folder."""
        return open_files(self.address)

    def remove(self) -> None:
        """Delete the folder with its content."""
        if self._own is not None:
            self._own.close()
            return
        parent, name = split_last(self.address)
        open_files(parent).delete_tree(name)


def row_folder(settings: JobSettings, name: str, *, master: str, what: str) -> RowFolder:
    """Return the folder of this name.

    Args:
        settings: The job that reads or writes the rows.
        name: The path of the folder below the configured directory.
        master: Spark's master.
        what: The call that needs the folder, for messages.

    Raises:
        ConfigurationError: Spark runs on a cluster, and no directory that every machine sees is configured.
    """
    directory = settings.data_frames_directory
    if directory is None and settings.checkpoints.enabled and settings.checkpoints.directory is not None:
        above = settings.checkpoints.directory
        directory = None if above.startswith("memory:") else join(plain(above), _BELOW_CHECKPOINTS)
    if directory is not None:
        return RowFolder(join(input_address(directory, DATA_FRAMES_DIR.key), name))
    if not master.startswith("local"):
        raise ConfigurationError(
            f"{what}: on a cluster the rows of a DataFrame pass through files that every machine can access, but "
            f"neither {DATA_FRAMES_DIR.key} nor {CHECKPOINT_DIR.key} names a directory for them; set one of the two"
        )
    own = LocalFolder(tempfile.gettempdir(), "ekorn-rows-")
    return RowFolder(own.path, own)


def url_for_spark(address: str) -> str:
    """Return the URL by which Spark opens an address. Spark has credentials of its own.

    >>> url_for_spark("/data/rows"), url_for_spark("s3://key:secret@bucket/rows?region=eu-west-1")
    ('file:///data/rows', 's3a://bucket/rows')
    """
    address = plain(address)
    scheme = scheme_of(address)
    if not scheme:
        return f"file://{address}"  # a bare path would lie in Hadoop's default file system
    return f"{_HADOOP_SCHEMES.get(scheme, scheme)}{shown(address)[len(scheme) :]}"
