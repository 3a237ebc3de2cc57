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
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from tamias.checkpoint.checkpoint_directory import CheckpointDirectory, GivenUp, resolve
from tamias.checkpoint.metadata import CheckpointMetadata
from tamias.errors import CheckpointError, CorruptFileError, RestoreError
from tamias.state.state_files import check_state
from tamias.storage.file_store import FileStore

__all__ = ["Recovered", "choose_checkpoint", "verify_files"]

_LOG = logging.getLogger(__name__)

CHEAP_BYTES = 64 << 20  # up to here every checksum is verified in the driver; the slots verify what they read anyway
TRIES = 3

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Recovered:
    """The checkpoint to restore, what its files' paths are relative to, and those passed over with the reason why."""

    files: FileStore
    metadata: CheckpointMetadata
    passed_over: tuple[tuple[int, str], ...] = ()


def choose_checkpoint(
    storage: CheckpointDirectory,
    *,
    exclude: Collection[int] = (),
    savepoints: Callable[[], Mapping[int, str]] = dict,
    cheap_bytes: int = CHEAP_BYTES,
) -> Recovered | None:
    """The newest completed checkpoint of the job that can be read; None when there never was one.

    Args:
        storage: The job's.
        exclude: Checkpoints that a slot already failed to read.
        savepoints: Gives where the job's savepoints lie that count as well; one that was disposed of does not.
        cheap_bytes: How much state to read for its checksums; beyond it, existence and size are checked.

    Raises:
        RestoreError: There are completed checkpoints, but all are damaged.
        CheckpointError: The storage does not answer; trying again later may help.
    """
    passed_over: list[tuple[int, str]] = []
    noted = _patiently(storage, savepoints)
    for checkpoint_id in sorted({*_patiently(storage, storage.completed_ids), *noted}, reverse=True):
        if checkpoint_id in exclude:
            passed_over.append((checkpoint_id, "its state could not be read"))
            continue
        try:
            address = noted.get(checkpoint_id)
            files, metadata = _patiently(storage, partial(_load, storage, checkpoint_id, address, cheap_bytes))
        except GivenUp as error:
            _LOG.info("checkpoint %d of %s does not count: %s", checkpoint_id, storage.directory, error)
            continue
        except CorruptFileError as error:
            passed_over.append((checkpoint_id, str(error)))
            _LOG.error("checkpoint %d of %s cannot be restored: %s", checkpoint_id, storage.directory, error)
            continue
        except RestoreError as error:  # a savepoint belongs to the user, who may have disposed of it
            _LOG.warning("savepoint %d is no longer there: %s", checkpoint_id, error)
            continue
        if passed_over:
            _LOG.error(
                "restoring the older checkpoint %d instead of %d: output that was committed with a newer one may be "
                "written again",
                checkpoint_id,
                passed_over[0][0],
            )
        return Recovered(files, metadata, tuple(passed_over))
    if passed_over:
        storage.check_owner()  # they may have gone because another driver took over, and has newer ones by now
        reasons = "; ".join(f"checkpoint {checkpoint_id}: {why}" for checkpoint_id, why in passed_over)
        raise RestoreError(
            f"none of the checkpoints in {storage.directory!r} can be read, and starting empty would lose state. "
            f"{reasons}. Repair one, restore from a savepoint, or start under a new job id to begin anew"
        )
    return None


def _load(
    storage: CheckpointDirectory, checkpoint_id: int, address: str | None, cheap_bytes: int
) -> tuple[FileStore, CheckpointMetadata]:
    """A checkpoint of the job, or a savepoint at an address, proven whole."""
    if address is None:
        files, metadata = storage.files, storage.load(checkpoint_id)
    else:
        files, metadata = resolve(address) if address else _unknown(checkpoint_id)
        if metadata.checkpoint_id != checkpoint_id or not storage.is_own(metadata):
            found = f"savepoint {metadata.checkpoint_id} of job {metadata.job_id}"
            raise CorruptFileError(files.url, found, f"savepoint {checkpoint_id} of job {storage.job_id}")
        storage.accept_savepoint(metadata, files.url)
    verify_files(files, metadata, cheap_bytes=cheap_bytes)
    return files, metadata


def _unknown(checkpoint_id: int) -> tuple[FileStore, CheckpointMetadata]:
    raise RestoreError(f"the note about savepoint {checkpoint_id} cannot be read")


def _patiently(storage: CheckpointDirectory, read: Callable[[], T]) -> T:
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
