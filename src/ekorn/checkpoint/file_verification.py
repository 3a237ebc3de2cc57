"""Proves that the state files of a checkpoint are the ones that were written."""

from __future__ import annotations

from ekorn.checkpoint.metadata import CheckpointMetadata
from ekorn.state.state_files import check_state
from ekorn.storage.file_store import FileStore

__all__ = ["CHEAP_BYTES", "verify_files"]

CHEAP_BYTES = 64 << 20  # the driver verifies checksums up to this amount; slots verify every file they read anyway


def verify_files(store: FileStore, metadata: CheckpointMetadata, *, cheap_bytes: int = CHEAP_BYTES) -> None:
    """Check every state file that a checkpoint refers to.

    Args:
        store: The store that the paths of the files are relative to.
        metadata: The checkpoint.
        cheap_bytes: How much state to read for its checksums; beyond it only existence and size are checked.

    Raises:
        CorruptFileError: A file is missing, damaged, or not the one that was written.
    """
    left = cheap_bytes
    seen: set[str] = set()
    for file in metadata.files():
        if file.path is not None:
            if file.path in seen:
                continue
            seen.add(file.path)
        is_cheap = file.size <= left
        check_state(store, file, full=is_cheap)
        if is_cheap:
            left -= file.size
