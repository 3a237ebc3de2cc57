"""A checkpoint or savepoint that a job can be restored from, and how the path that a user names leads to one."""

from __future__ import annotations

import os
from typing import NamedTuple

from ekorn.checkpoint.checkpoint_directory import load_checkpoint
from ekorn.checkpoint.file_names import METADATA, checkpoint_id_of
from ekorn.checkpoint.metadata import CheckpointMetadata
from ekorn.checkpoint.metadata_file import decode_metadata
from ekorn.checkpoint.signing import SigningKey
from ekorn.errors import RestoreError
from ekorn.storage.file_store import FileStore, open_files
from ekorn.storage.locations import plain, scheme_of, shown, split_last

__all__ = ["RestorePoint", "resolve"]


class RestorePoint(NamedTuple):
    """A completed checkpoint or savepoint: its metadata, and the store that the paths of its files are relative to."""

    files: FileStore
    metadata: CheckpointMetadata

    @property
    def label(self) -> str:
        """The name that messages use: kind, number and place."""
        return f"{self.metadata.kind} {self.metadata.checkpoint_id} in {self.files.url}"

    @property
    def path(self) -> str:
        """The directory of the savepoint, or of the checkpoint."""
        is_savepoint = self.metadata.kind == "savepoint"
        return self.files.url if is_savepoint else f"{self.files.url}/chk-{self.metadata.checkpoint_id}"


def resolve(path: str, key: SigningKey | None = None) -> RestorePoint:
    """Find the checkpoint or savepoint that a user names.

    Args:
        path: Its directory or its `_metadata` file, as a local path or a URL.
        key: The key that it must be signed with; None accepts what is not signed.

    Raises:
        RestoreError: The path holds no checkpoint and no savepoint.
        CorruptFileError: The metadata cannot be read.
    """
    path = plain(path)
    above, last = split_last(path)
    directory = above if last == METADATA else path
    if not scheme_of(directory):
        directory = os.path.realpath(directory)  # the path may be a link, for example `latest`
    store = open_files(directory)
    path = shown(path)
    if not store.exists(METADATA):
        raise RestoreError(f"no checkpoint at {path!r}: {_hint(store)}")
    parent, name = split_last(store.address)
    metadata = decode_metadata(store.read(METADATA), f"{store.url}/{METADATA}", key)
    if metadata.kind == "savepoint":
        return RestorePoint(store, metadata)  # a savepoint's files lie beside its metadata, so it can be moved
    checkpoint_id = checkpoint_id_of(name)
    if checkpoint_id is None:
        raise RestoreError(
            f"{path!r} holds checkpoint {metadata.checkpoint_id}, but is not named chk-{metadata.checkpoint_id}: a "
            "checkpoint is incomplete without the directories next to it; give the original path, or move a savepoint "
            "instead"
        )
    job_files = open_files(parent)
    return RestorePoint(job_files, load_checkpoint(job_files, checkpoint_id, key=key))


def _hint(store: FileStore) -> str:
    """Say what a directory without metadata holds instead."""
    names = store.list()
    if not names:
        return "there is no such directory, or it is empty"
    inside = [name for name in names if store.exists(f"{name}/{METADATA}")]
    if inside:
        return f"it contains no {METADATA} itself; give one of the checkpoints below it: {', '.join(sorted(inside))}"
    if any(checkpoint_id_of(name) is not None for name in names):
        return f"the checkpoints below it were never completed (no {METADATA})"
    return f"it contains no {METADATA}; a checkpoint is complete only if that file exists"
