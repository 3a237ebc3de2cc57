"""Sign a savepoint that was taken without a key, and verify a signed one. Neither unpickles anything.

A signature says that the owner of the key trusts the state. It covers the bytes that are in the directory now: sign a
savepoint only if no other user could have written there since it was taken.
"""

from __future__ import annotations

import sys
from dataclasses import replace

from ekorn.checkpoint.file_names import METADATA, checkpoint_name
from ekorn.checkpoint.file_verification import verify_files
from ekorn.checkpoint.metadata import CheckpointMetadata, OperatorMetadata
from ekorn.checkpoint.metadata_file import decode_metadata, encode_metadata, is_signed
from ekorn.checkpoint.restore_point import RestorePoint, resolve
from ekorn.checkpoint.savepoint_files import check_unused
from ekorn.checkpoint.signing import SigningKey
from ekorn.errors import CheckpointError
from ekorn.state.snapshots import StateFile
from ekorn.state.state_files import hashed_state
from ekorn.storage.file_store import FileStore

__all__ = ["sign_savepoint", "verify_savepoint"]


def sign_savepoint(path: str, key: SigningKey) -> RestorePoint:
    """Check every file of a savepoint or retained checkpoint, and replace its metadata by signed metadata.

    One that is signed with the key already is verified, and stays as it is.

    Args:
        path: Its directory or its `_metadata` file.
        key: The key.

    Raises:
        RestoreError: The path holds no checkpoint and no savepoint.
        UntrustedFileError: It is signed with another key.
        CorruptFileError: The metadata or a state file is missing or damaged.
        CheckpointError: It is the checkpoint of a running job, or the metadata could not be written.
    """
    found = resolve(path)
    name = METADATA
    if found.metadata.kind == "checkpoint":
        name = f"{checkpoint_name(found.metadata.checkpoint_id)}/{METADATA}"
    data = found.files.read(name)
    if is_signed(data):
        return verify_savepoint(path, key)
    check_unused(found.files, found.metadata)
    metadata = _with_digests(found.files, decode_metadata(data, f"{found.files.url}/{name}"))
    try:
        found.files.replace(name, encode_metadata(metadata, key))
    except OSError as error:
        raise CheckpointError(f"{found.label} could not be signed: {error}") from error
    return RestorePoint(found.files, metadata)


def verify_savepoint(path: str, key: SigningKey) -> RestorePoint:
    """Check the signature of a savepoint or checkpoint, and every state file against its digest.

    Raises:
        RestoreError: The path holds no checkpoint and no savepoint.
        UntrustedFileError: It is not signed with the key.
        CorruptFileError: The metadata or a state file is missing or damaged.
    """
    found = resolve(path, key)
    verify_files(found.files, found.metadata, cheap_bytes=sys.maxsize)
    return found


def _with_digests(files: FileStore, metadata: CheckpointMetadata) -> CheckpointMetadata:
    known: dict[str, str | None] = {}  # digests by path

    def hashed(file: StateFile) -> StateFile:
        if file.path is None:
            return hashed_state(files, file)
        if file.path not in known:
            known[file.path] = hashed_state(files, file).sha256
        return replace(file, sha256=known[file.path])

    def of_operator(operator: OperatorMetadata) -> OperatorMetadata:
        subtasks = tuple(None if snapshot is None else snapshot.with_files(hashed) for snapshot in operator.subtasks)
        return replace(operator, subtasks=subtasks)

    return replace(metadata, operators=tuple(map(of_operator, metadata.operators)))
