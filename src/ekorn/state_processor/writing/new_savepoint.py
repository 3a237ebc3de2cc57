"""Puts a new savepoint together: state files that were written or copied into its directory, and the metadata last."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace

from ekorn.checkpoint.file_names import METADATA
from ekorn.checkpoint.metadata import CheckpointMetadata, OperatorMetadata
from ekorn.checkpoint.metadata_file import encode_metadata
from ekorn.checkpoint.signing import SigningKey
from ekorn.clock import SystemClock
from ekorn.errors import CheckpointError
from ekorn.state.canonical_format import PAYLOAD_BYTES
from ekorn.state.declared import merged
from ekorn.state.snapshots import OperatorSnapshot, StateFile, SubtaskSnapshot
from ekorn.state.state_files import copy_state, write_state
from ekorn.state_processor.reading.stored_savepoint import StoredOperator
from ekorn.storage.file_store import FileStore, open_files
from ekorn.storage.locations import plain, scheme_of, split_last

__all__ = ["NewSavepoint", "WrittenFiles", "new_directory", "new_file_name", "operator_of"]

_COPIES_AT_ONCE = 8


@contextmanager
def new_directory(path: str) -> Iterator[FileStore]:
    """Create the directory of a new savepoint. If the block raises, its files are removed again.

    Raises:
        CheckpointError: The directory holds files already, or cannot be created.
    """
    above, name = split_last(plain(path) if scheme_of(plain(path)) else os.path.abspath(plain(path)))
    base = open_files(above)
    files = base.below(name)
    if files.list():
        what = "a savepoint" if files.exists(METADATA) else "files"
        raise CheckpointError(f"{files.url!r} already contains {what}: a savepoint is written to a new directory")
    try:
        base.make_dirs(name)
    except OSError as error:
        raise CheckpointError(
            f"cannot write a savepoint to {files.url!r}: {error}; give a directory that this user may write to"
        ) from error
    try:
        yield files
    except BaseException:
        files.delete(METADATA)  # deleted first, because a savepoint that exists must be complete
        base.delete_tree(name)
        raise


@dataclass(frozen=True)
class NewSavepoint:
    """A savepoint that is being written.

    Attributes:
        files: Its directory.
        key: The key that signs it, if any.
        checkpoint_id: Its number.
        job_id: The id of the job whose state it holds.
        job_name: The name of that job.
    """

    files: FileStore
    key: SigningKey | None
    checkpoint_id: int
    job_id: str
    job_name: str

    def copied(self, operators: Iterable[StoredOperator]) -> list[OperatorMetadata]:
        """Copy the files of operators of another savepoint, byte by byte; return their metadata here.

        Raises:
            CorruptFileError: A file is missing or damaged.
        """
        with ThreadPoolExecutor(_COPIES_AT_ONCE, "copy-state") as pool:
            return [self._copied(stored, pool) for stored in operators]

    def _copied(self, stored: StoredOperator, pool: ThreadPoolExecutor) -> OperatorMetadata:
        source = stored.files()

        def copy(file: StateFile) -> StateFile:
            return copy_state(source, file, self.files, new_file_name(), hashed=self.key is not None)

        def of_subtask(snapshot: OperatorSnapshot | None) -> OperatorSnapshot | None:
            if snapshot is None:
                return None
            keyed, others = snapshot.keyed, replace(snapshot, keyed=None).with_files(copy)
            if keyed is None:
                return others
            return replace(others, keyed=replace(keyed, files=tuple(pool.map(copy, keyed.files))))

        return replace(stored.metadata, subtasks=tuple(map(of_subtask, stored.metadata.subtasks)))

    def publish(self, operators: Iterable[OperatorMetadata]) -> CheckpointMetadata:
        """Remove files that no operator refers to, and publish the metadata. From then on the savepoint exists."""
        metadata = CheckpointMetadata(
            checkpoint_id=self.checkpoint_id,
            job_id=self.job_id,
            job_name=self.job_name,
            timestamp_ms=SystemClock().now_ms(),
            operators=tuple(operators),
            kind="savepoint",
        )
        for name in set(self.files.list()) - metadata.paths():  # left by an attempt of the job that failed
            self.files.delete(name)
        self.files.publish(METADATA, encode_metadata(metadata, self.key))
        return metadata


class WrittenFiles:
    """Writes state files into the directory of a savepoint: a `SnapshotTarget` outside of a job."""

    def __init__(self, files: FileStore, *, hashed: bool) -> None:
        self.bytes_written = 0
        self.payload_bytes = PAYLOAD_BYTES
        self._files = files
        self._hashed = hashed

    def shared(self, label: str) -> str:
        return new_file_name()

    def exclusive(self, label: str) -> str:
        return new_file_name()

    def write(self, path: str, payload: bytes) -> StateFile:
        file = write_state(self._files, path, payload, 0, hashed=self._hashed)
        self.bytes_written += file.size
        return file


def new_file_name() -> str:
    """Return an unused name for a state file."""
    return f"state-{secrets.token_hex(8)}"


def operator_of(snapshots: Iterable[SubtaskSnapshot], max_parallelism: int) -> OperatorMetadata:
    """Return the metadata of an operator from what its subtasks wrote."""
    parts = sorted(snapshots, key=lambda snapshot: snapshot.subtask)
    subtasks = [snapshot.operators[0] for snapshot in parts]
    first = subtasks[0]
    return OperatorMetadata(
        operator_id=first.operator_id,
        uid=first.uid,
        name=first.name,
        parallelism=len(subtasks),
        max_parallelism=max_parallelism,
        subtasks=tuple(subtasks),
        finished=(False,) * len(subtasks),
        states=merged(info for subtask in subtasks for info in subtask.states),
    )
