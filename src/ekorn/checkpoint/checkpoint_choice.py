"""Chooses the checkpoint to restore after a failure: the newest one that can be read.

A damaged checkpoint is found here, before any record is processed. The job then restores an older one and logs an
error. If checkpoints exist but none can be read, the job fails: starting empty would lose state silently.

A damaged checkpoint is not the same as a storage that does not answer. Restoring an older checkpoint repeats output
that was committed with the newest one. That is acceptable if the newest one is lost, and a mistake if the network was
down for a second. So only proven damage leads to an older checkpoint. Any other error is raised, and the restart
strategy decides about another attempt.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from ekorn.checkpoint.checkpoint_directory import AbandonedCheckpoint, CheckpointDirectory
from ekorn.checkpoint.file_verification import CHEAP_BYTES, verify_files
from ekorn.checkpoint.restore_point import RestorePoint, resolve
from ekorn.errors import CheckpointError, CorruptFileError, NoReadableCheckpoint, RestoreError

__all__ = ["ChosenCheckpoint", "choose_checkpoint"]

_LOG = logging.getLogger(__name__)

TRIES = 3

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ChosenCheckpoint:
    """The checkpoint to restore, and the newer ones that were passed over, each with the reason."""

    restore_point: RestorePoint
    passed_over: tuple[tuple[int, str], ...] = ()


def choose_checkpoint(
    directory: CheckpointDirectory,
    *,
    exclude: Collection[int] = (),
    savepoints: Callable[[], Mapping[int, str]] = dict,
    cheap_bytes: int = CHEAP_BYTES,
) -> ChosenCheckpoint | None:
    """Return the newest completed checkpoint of the job that can be read; None if the job never completed one.

    Args:
        directory: The job's checkpoint directory.
        exclude: Checkpoints that a slot has already failed to read.
        savepoints: Returns the addresses of the savepoints that count as checkpoints, by number. A savepoint that the
            user has disposed of is skipped.
        cheap_bytes: How much state to read for its checksums; beyond it only existence and size are checked.

    Raises:
        NoReadableCheckpoint: There are completed checkpoints, but all of them are damaged.
        CheckpointError: The storage does not answer; another attempt may succeed.
    """
    passed_over: list[tuple[int, str]] = []
    noted = _patiently(directory, savepoints)
    for checkpoint_id in sorted({*_patiently(directory, directory.completed_ids), *noted}, reverse=True):
        if checkpoint_id in exclude:
            passed_over.append((checkpoint_id, "its state could not be read"))
            continue
        try:
            address = noted.get(checkpoint_id)
            found = _patiently(directory, partial(_load, directory, checkpoint_id, address, cheap_bytes))
        except AbandonedCheckpoint as error:
            _LOG.info("checkpoint %d of %s is ignored: %s", checkpoint_id, directory.url, error)
            continue
        except CorruptFileError as error:
            passed_over.append((checkpoint_id, str(error)))
            _LOG.error("checkpoint %d of %s cannot be restored: %s", checkpoint_id, directory.url, error)
            continue
        except RestoreError as error:  # a savepoint belongs to the user, who may have disposed of it
            _LOG.warning("savepoint %d no longer exists: %s", checkpoint_id, error)
            continue
        if passed_over:
            _LOG.error(
                "restoring the older checkpoint %d instead of %d: output that was committed with a newer one may be "
                "written again",
                checkpoint_id,
                passed_over[0][0],
            )
        return ChosenCheckpoint(found, tuple(passed_over))
    if passed_over:
        directory.check_owner()  # another driver may have taken over and deleted them in favour of newer ones
        reasons = "; ".join(f"checkpoint {checkpoint_id}: {why}" for checkpoint_id, why in passed_over)
        raise NoReadableCheckpoint(
            f"none of the checkpoints in {directory.url!r} can be read, and starting empty would lose state. "
            f"{reasons}. Repair one, restore from a savepoint, or start under a new job id to begin with empty state"
        )
    return None


def _load(directory: CheckpointDirectory, checkpoint_id: int, address: str | None, cheap_bytes: int) -> RestorePoint:
    """Load a checkpoint of the job, or the savepoint at an address, and prove that it is whole."""
    if address is None:
        found = RestorePoint(directory.files, directory.load(checkpoint_id))
    else:
        found = _load_savepoint(directory, checkpoint_id, address)
    verify_files(found.files, found.metadata, cheap_bytes=cheap_bytes)
    return found


def _load_savepoint(directory: CheckpointDirectory, checkpoint_id: int, address: str) -> RestorePoint:
    if not address:
        raise RestoreError(f"the note about savepoint {checkpoint_id} cannot be read")
    found = resolve(address, directory.signing_key)
    metadata = found.metadata
    if metadata.checkpoint_id != checkpoint_id or not directory.is_own(metadata):
        other = f"savepoint {metadata.checkpoint_id} of job {metadata.job_id}"
        raise CorruptFileError(found.files.url, other, f"savepoint {checkpoint_id} of job {directory.job_id}")
    directory.accept_savepoint(metadata, found.files.url)
    return found


def _patiently(directory: CheckpointDirectory, read: Callable[[], T]) -> T:
    """Read from the storage, and try again after an error."""
    for _ in range(TRIES - 1):
        with contextlib.suppress(OSError):
            return read()
    try:
        return read()
    except OSError as error:
        raise CheckpointError(
            f"checkpoints in {directory.url!r} cannot be read at present: {error}; the job can be restored when the "
            "storage is available again. If a file is lost for good, delete the checkpoint's directory; the "
            "checkpoint before it is then used"
        ) from error
