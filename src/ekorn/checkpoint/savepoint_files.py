"""Savepoints on storage: created, published, listed and disposed of. A savepoint is a self-contained directory.

    <dir>/savepoint-<6 digits of the job id>-<12 random digits>/{_metadata, v0-s0-…, …}

The metadata refers to files in the same directory, so a savepoint can be moved and copied as a whole. Retained
checkpoints are disposed of here too; files that they share with other checkpoints are kept.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterator
from dataclasses import dataclass

from ekorn.checkpoint.file_names import METADATA, checkpoint_id_of, checkpoint_name, savepoint_name
from ekorn.checkpoint.file_verification import verify_files
from ekorn.checkpoint.metadata import CheckpointMetadata
from ekorn.checkpoint.metadata_file import decode_metadata, encode_metadata
from ekorn.checkpoint.ownership import living_owner
from ekorn.checkpoint.restore_point import resolve
from ekorn.checkpoint.signing import SigningKey
from ekorn.clock import SystemClock
from ekorn.errors import CheckpointError, CorruptFileError, EkornError
from ekorn.storage.file_store import FileStore, open_files
from ekorn.storage.locations import split_last

__all__ = [
    "FoundCheckpoint",
    "SavepointDirectory",
    "check_unused",
    "delete_checkpoint",
    "dispose_savepoint",
    "find_checkpoints",
    "new_savepoint",
]

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class SavepointDirectory:
    """The directory of a savepoint that is being taken."""

    base: FileStore
    name: str

    @property
    def files(self) -> FileStore:
        """The store rooted in the savepoint's directory."""
        return self.base.below(self.name)

    def check(self, metadata: CheckpointMetadata) -> None:
        """See that all files are in the directory: on another machine a slot's `/data` may be another directory.

        Raises:
            CheckpointError: A file is missing.
        """
        try:
            verify_files(self.files, metadata, cheap_bytes=0)
        except CorruptFileError as error:
            raise CheckpointError(
                f"the slots wrote their state, but the driver does not find it in {self.files.url!r} ({error}); use a "
                "directory that the driver and all slots share"
            ) from error

    def publish(self, metadata: CheckpointMetadata, key: SigningKey | None = None) -> None:
        """Publish the metadata, signed if there is a key: the savepoint exists when this returns.

        Raises:
            OSError: The metadata could not be written. Whether it exists is unknown until `discard`.
        """
        outside = [path for path in metadata.paths() if "/" in path]
        assert not outside, f"a savepoint refers to files beside its metadata only, not to {outside}"
        self.files.publish(METADATA, encode_metadata(metadata, key))

    def discard(self) -> None:
        """Remove the directory, the metadata first: a savepoint that exists must be whole."""
        self.files.delete(METADATA)
        self.base.delete_tree(self.name)


def new_savepoint(directory: str, job_id: str) -> SavepointDirectory:
    """Create the directory of a new savepoint.

    Args:
        directory: The directory that the user names, as a local path or a URL.
        job_id: The job's id. Its first digits are part of the name.

    Raises:
        ConfigurationError: The directory cannot be opened.
        CheckpointError: The directory cannot be written to.
    """
    base = open_files(directory)
    name = savepoint_name(job_id, secrets.token_hex(6))
    try:
        base.make_dirs(name)
    except OSError as error:
        raise CheckpointError(
            f"cannot write a savepoint to {base.url!r}: {error}; give a directory that this user may write to"
        ) from error
    return SavepointDirectory(base, name)


# ------------------------------------------------------------------------------------------------------------ removing


def dispose_savepoint(path: str, key: SigningKey | None = None) -> None:
    """Delete a savepoint, or a retained checkpoint: its metadata, and the files that only it refers to.

    Args:
        path: Its directory or its `_metadata` file.
        key: The key that it must be signed with; None accepts what is not signed.

    Raises:
        RestoreError: The path holds no checkpoint and no savepoint.
        CorruptFileError: The metadata cannot be read. A person has to delete the directory.
        CheckpointError: It could not be deleted, or it is the checkpoint of a running job.
    """
    files, metadata = resolve(path, key)
    try:
        delete_checkpoint(files, metadata)
    except OSError as error:
        raise CheckpointError(f"{metadata.kind} at {path!r} could not be deleted: {error}") from error


def delete_checkpoint(files: FileStore, metadata: CheckpointMetadata) -> None:
    """Delete a checkpoint or savepoint, the metadata first, so that one that exists is always whole.

    Only files that the metadata names are deleted, and only below its directory (`check_path` and the store see to
    that). Other files in the directory are kept.

    Args:
        files: The store that the paths of the files are relative to.
        metadata: The checkpoint or savepoint.

    Raises:
        CheckpointError: Its own job is running, or a checkpoint beside it cannot be read and may need its files.
        OSError: The storage refuses.
    """
    if metadata.kind == "savepoint":
        files.delete(METADATA)
        for path in sorted(metadata.paths()):
            files.delete(path)
        _remove_if_empty(files)
        return
    check_unused(files, metadata)
    directory = checkpoint_name(metadata.checkpoint_id)
    needed = _paths_of_others(files, metadata.checkpoint_id)
    files.delete(f"{directory}/{METADATA}")
    files.delete_tree(directory)
    for path in sorted(metadata.paths() - needed):
        files.delete(path)


def check_unused(files: FileStore, metadata: CheckpointMetadata) -> None:
    """See that no running job may still refer to the files of a checkpoint.

    Raises:
        CheckpointError: The job of the checkpoint is running.
    """
    owner = living_owner(files, SystemClock().now_ms()) if metadata.kind == "checkpoint" else None
    if owner is not None:
        raise CheckpointError(
            f"checkpoint {metadata.checkpoint_id} in {files.url!r} belongs to a job that is running (process "
            f"{owner.pid} on host {owner.host!r}) and may need its files later; that job deletes it when it is no "
            "longer needed. Stop the job first, or use a savepoint"
        )


def _remove_if_empty(files: FileStore) -> None:
    left = files.list()
    if left:
        _LOG.warning("%s is kept: it also holds %s", files.url, ", ".join(left))
        return
    above, name = split_last(files.address)
    open_files(above).delete_tree(name)


def _paths_of_others(files: FileStore, checkpoint_id: int) -> set[str]:
    """Return the files that the other checkpoints of the job refer to.

    Raises:
        CheckpointError: One of them cannot be read, so nothing shared may be deleted.
    """
    needed: set[str] = set()
    for name in files.list():
        other = checkpoint_id_of(name)
        if other is None or other == checkpoint_id or not files.exists(f"{name}/{METADATA}"):
            continue
        where = f"{files.url}/{name}/{METADATA}"
        try:
            needed |= decode_metadata(files.read(f"{name}/{METADATA}"), where).paths()
        except CorruptFileError as error:
            raise CheckpointError(
                f"checkpoint {checkpoint_id} shares its directory with a checkpoint that cannot be read ({error}); "
                "delete that one first"
            ) from error
    return needed


# ------------------------------------------------------------------------------------------------------------- listing


@dataclass(frozen=True, slots=True)
class FoundCheckpoint:
    """A directory that holds a savepoint or a completed checkpoint, readable or not."""

    path: str  # relative to the directory that was searched
    metadata: CheckpointMetadata | None  # None: the metadata cannot be read
    why: str = ""


def find_checkpoints(directory: str, *, depth: int = 2, key: SigningKey | None = None) -> Iterator[FoundCheckpoint]:
    """Yield every savepoint and completed checkpoint in a directory or the directories below it, by name.

    Args:
        directory: A savepoint itself, a directory of savepoints, a job's checkpoints, or the checkpoints of jobs.
        depth: How many levels of directories to look into.
        key: The key that they must be signed with; None accepts what is not signed.
    """
    yield from _find(open_files(directory), "", depth, key)


def _find(files: FileStore, path: str, depth: int, key: SigningKey | None) -> Iterator[FoundCheckpoint]:
    where = f"{path}/{METADATA}" if path else METADATA
    if files.exists(where):
        try:
            yield FoundCheckpoint(path or ".", decode_metadata(files.read(where), f"{files.url}/{where}", key))
        except (EkornError, OSError) as error:
            yield FoundCheckpoint(path or ".", None, str(error))
        return
    if depth > 0:
        for name in files.list(path):
            yield from _find(files, f"{path}/{name}" if path else name, depth - 1, key)
