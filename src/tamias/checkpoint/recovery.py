"""What to restore after a failure: the newest checkpoint that can be read, or an older one, said loudly.

A damaged checkpoint is found here, before any record is processed. When there are checkpoints but none can be read,
the job fails: starting empty would be silent loss.

Damage is not the same as a storage that does not answer. Going back further than the newest checkpoint repeats output
that was committed with it, which is the lesser evil when it is lost, and a plain mistake when the network was down for
a second. So only proven damage leads to an older one; any other error is raised, for the restart strategy to try again.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from tamias.checkpoint.metadata import CheckpointMetadata
from tamias.checkpoint.storage import CheckpointStorage
from tamias.errors import CheckpointError, CorruptFileError, RestoreError
from tamias.state.files import FileStore, check_state

__all__ = ["Recovered", "choose_checkpoint", "verify_files"]

_LOG = logging.getLogger(__name__)

CHEAP_BYTES = 64 << 20  # up to here every checksum is verified in the driver; the slots verify what they read anyway
TRIES = 3

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Recovered:
    """The checkpoint to restore, and those passed over with the reason why."""

    metadata: CheckpointMetadata
    passed_over: tuple[tuple[int, str], ...] = ()


def choose_checkpoint(
    storage: CheckpointStorage, *, exclude: Collection[int] = (), cheap_bytes: int = CHEAP_BYTES
) -> Recovered | None:
    """The newest completed checkpoint of the job that can be read; None when there never was one.

    Args:
        storage: The job's.
        exclude: Checkpoints that a slot already failed to read.
        cheap_bytes: How much state to read for its checksums; beyond it, existence and size are checked.

    Raises:
        RestoreError: There are completed checkpoints, but all are damaged.
        CheckpointError: The storage does not answer; trying again later may help.
    """
    passed_over: list[tuple[int, str]] = []
    for checkpoint_id in reversed(_patiently(storage, storage.completed_ids)):
        if checkpoint_id in exclude:
            passed_over.append((checkpoint_id, "its state could not be read"))
            continue
        try:
            metadata = _patiently(storage, partial(_load_verified, storage, checkpoint_id, cheap_bytes))
        except CorruptFileError as error:
            passed_over.append((checkpoint_id, str(error)))
            _LOG.error("checkpoint %d of %s cannot be restored: %s", checkpoint_id, storage.directory, error)
            continue
        if passed_over:
            _LOG.error(
                "restoring the older checkpoint %d instead of %d: output that was committed with a newer one may be "
                "written again",
                checkpoint_id,
                passed_over[0][0],
            )
        return Recovered(metadata, tuple(passed_over))
    if passed_over:
        reasons = "; ".join(f"checkpoint {checkpoint_id}: {why}" for checkpoint_id, why in passed_over)
        raise RestoreError(
            f"none of the checkpoints in {storage.directory!r} can be read, and starting empty would lose state. "
            f"{reasons}. Repair one, restore from a savepoint, or start under a new job id to begin anew"
        )
    return None


def _load_verified(storage: CheckpointStorage, checkpoint_id: int, cheap_bytes: int) -> CheckpointMetadata:
    metadata = storage.load(checkpoint_id)
    verify_files(storage.files, metadata, cheap_bytes=cheap_bytes)
    return metadata


def _patiently(storage: CheckpointStorage, read: Callable[[], T]) -> T:
    for _ in range(TRIES - 1):
        with contextlib.suppress(OSError):
            return read()
    try:
        return read()
    except OSError as error:
        raise CheckpointError(
            f"checkpoints in {storage.directory!r} cannot be read at present: {error}; the job can be restored when "
            "the storage answers again. Should a file be lost for good, delete the checkpoint's directory: then the "
            "one before it is used"
        ) from error


def verify_files(store: FileStore, metadata: CheckpointMetadata, *, cheap_bytes: int = CHEAP_BYTES) -> None:
    """Check every file that a checkpoint refers to.

    Raises:
        CorruptFileError: One is missing, damaged or not the one that was written.
    """
    left = cheap_bytes
    seen: set[str] = set()
    for file in metadata.files():
        if file.path is not None:
            if file.path in seen:
                continue
            seen.add(file.path)
        check_state(store, file, full=file.size <= left)
        left -= file.size if file.size <= left else 0
