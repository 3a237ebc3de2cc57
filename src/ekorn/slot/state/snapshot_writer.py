"""Writes captured state on a thread of the slot, and decides where each file goes.

The files of a checkpoint go to the job's directory, under names that only this attempt uses. The files of a savepoint
go to a directory of their own, so that the savepoint is self-contained. Without a checkpoint directory, state travels
to the driver and stays in its memory.
"""

from __future__ import annotations

import queue
import secrets
import threading
from collections.abc import Callable
from typing import NoReturn

from ekorn.checkpoint.file_names import SnapshotNames, savepoint_file
from ekorn.config import options
from ekorn.errors import CheckpointFailed
from ekorn.faults import point
from ekorn.graph.addresses import SubtaskId
from ekorn.slot.state.local_copies import LocalCopies
from ekorn.slot_protocol.deployment import Deployment
from ekorn.slot_protocol.slot_events import SlotEvent, SnapshotNotWritten, SnapshotWritten
from ekorn.state.canonical_format import PAYLOAD_BYTES
from ekorn.state.keyed_backend import SnapshotTarget
from ekorn.state.snapshots import StateFile
from ekorn.state.state_files import inline_state, write_state
from ekorn.storage.file_store import FileStore, open_files
from ekorn.subtask.capture import CapturedSubtask, Declined

__all__ = ["SnapshotWriter"]

_STOP_S = 10.0  # a snapshot that takes longer is left to the end of the process


class SnapshotWriter:
    """Writes captured snapshots one after another: in the background, or at once if snapshots are synchronous."""

    def __init__(self, report: Callable[[SlotEvent], None]) -> None:
        self._report = report
        self._queue: queue.SimpleQueue[tuple[Deployment, CapturedSubtask] | None] = queue.SimpleQueue()
        self._deployment: Deployment | None = None
        self._store: FileStore | None = None
        self._copies: LocalCopies | None = None
        self._thread = threading.Thread(target=self._run, name="snapshot-writer", daemon=True)
        self._thread.start()

    def begin(self, deployment: Deployment, copies: LocalCopies | None = None) -> None:
        """Begin a new attempt. Snapshots of the old attempt that are still queued are skipped."""
        self._deployment = deployment
        self._copies = copies
        directory = deployment.checkpoint_directory
        self._store = None
        if directory is not None:
            store = open_files(directory, write_buffer=deployment.write_buffer)
            self._store = store if copies is None else copies.copying(store)

    def add(self, captured: CapturedSubtask) -> None:
        """Write a snapshot: in the background or, if snapshots are synchronous, before this call returns."""
        assert self._deployment is not None
        if self._deployment.asynchronous:
            self._queue.put((self._deployment, captured))
        else:
            self._report(self._write(self._deployment, captured))

    def decline(self, subtask: SubtaskId, declined: Declined) -> None:
        """Report a snapshot that could not be captured."""
        assert self._deployment is not None
        error = declined.error
        self._report(SnapshotNotWritten(declined.checkpoint_id, self._deployment.attempt, subtask, str(error), error))

    def stop(self) -> None:
        """Finish the snapshot that is being written, and end the thread."""
        self._deployment = None
        self._queue.put(None)
        self._thread.join(_STOP_S)

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            deployment, captured = item
            if deployment is self._deployment:
                self._report(self._write(deployment, captured))

    def _write(self, deployment: Deployment, captured: CapturedSubtask) -> SlotEvent:
        environment = captured.environment
        try:
            point("snapshot", environment.index)
            snapshot = captured.write(self._target(deployment, captured))
            point("state-written", environment.index)
            if self._copies is not None and captured.savepoint is None:
                self._copies.written(captured.checkpoint_id, snapshot)
        except Exception as error:  # the coordinator decides what a failed snapshot means
            return SnapshotNotWritten(
                captured.checkpoint_id,
                deployment.attempt,
                SubtaskId(environment.vertex.id, environment.index),
                f"{environment.name}: {type(error).__name__}: {error}",
            )
        return SnapshotWritten(captured.checkpoint_id, deployment.attempt, snapshot)

    def _target(self, deployment: Deployment, captured: CapturedSubtask) -> SnapshotTarget:
        environment = captured.environment
        if captured.savepoint is not None:
            store = open_files(captured.savepoint.directory, write_buffer=deployment.write_buffer)
            return _SavepointTarget(deployment, captured, store)
        if self._store is None:
            return _MemoryTarget(deployment, captured)
        names = SnapshotNames(environment.vertex.id, environment.index, f"{deployment.term}.{deployment.attempt}")
        return _CheckpointTarget(deployment, captured, self._store, names)


class _Target:
    """The target of the files of one subtask's snapshot: the base of the three kinds of target."""

    def __init__(self, deployment: Deployment, captured: CapturedSubtask) -> None:
        self._deployment = deployment
        self._captured = captured
        self.bytes_written = 0
        self.payload_bytes = PAYLOAD_BYTES
        self._counting = threading.Lock()  # a backend may write several files at once

    def _count(self, file: StateFile) -> StateFile:
        with self._counting:
            self.bytes_written += file.size
        return file


class _FileTarget(_Target):
    """Writes to files. State below a threshold travels inside the metadata instead."""

    def __init__(
        self, deployment: Deployment, captured: CapturedSubtask, store: FileStore, inline_threshold_bytes: int
    ) -> None:
        super().__init__(deployment, captured)
        self._store = store
        self._inline_threshold_bytes = inline_threshold_bytes

    def write(self, path: str, payload: bytes) -> StateFile:
        file = write_state(
            self._store,
            path,
            payload,
            self._inline_threshold_bytes,
            compressed=self._deployment.compression,
            hashed=self._deployment.hashed_files,
        )
        return self._count(file)


class _CheckpointTarget(_FileTarget):
    """Writes to the job's checkpoint directory."""

    def __init__(
        self, deployment: Deployment, captured: CapturedSubtask, store: FileStore, names: SnapshotNames
    ) -> None:
        super().__init__(deployment, captured, store, deployment.inline_threshold_bytes)
        self._names = names

    def shared(self, label: str) -> str:
        return self._names.shared(self._captured.checkpoint_id)

    def exclusive(self, label: str) -> str:
        return self._names.exclusive(self._captured.checkpoint_id)


class _SavepointTarget(_FileTarget):
    """Writes to a savepoint's own directory, beside the metadata. No file is shared with a checkpoint."""

    def __init__(self, deployment: Deployment, captured: CapturedSubtask, store: FileStore) -> None:
        # Flink: without a directory for checkpoints, state travels inside the metadata.
        in_memory = deployment.checkpoint_directory is None
        threshold_bytes = deployment.max_state_bytes + 1 if in_memory else deployment.inline_threshold_bytes
        super().__init__(deployment, captured, store, threshold_bytes)
        self.payload_bytes = max(self.payload_bytes, threshold_bytes)

    def shared(self, label: str) -> str:
        return self.exclusive(label)

    def exclusive(self, label: str) -> str:
        environment = self._captured.environment
        return savepoint_file(environment.vertex.id, environment.index, secrets.token_hex(8))


class _MemoryTarget(_Target):
    """Keeps state in the event that goes to the driver, which holds it in memory."""

    def __init__(self, deployment: Deployment, captured: CapturedSubtask) -> None:
        super().__init__(deployment, captured)
        self.payload_bytes = deployment.max_state_bytes + 1  # a state that would be cut is refused

    def shared(self, label: str) -> str:
        return label

    def exclusive(self, label: str) -> str:
        return label

    def write(self, path: str, payload: bytes) -> StateFile:
        most, most_together = self._deployment.max_state_bytes, self._deployment.acknowledged_bytes
        file = inline_state(payload, compressed=self._deployment.compression)
        if file.size > most:
            self._refuse(
                f"a state of {file.size:,} bytes is too large for checkpoints in the driver's memory "
                f"(at most {most:,})",
                "raise max_state_size of the JobManagerCheckpointStorage or MemoryStateBackend",
            )
        file = self._count(file)
        if self.bytes_written > most_together:
            self._refuse(
                f"the acknowledgement of the subtask has at least {self.bytes_written:,} bytes of state, which is more "
                f"than the frame size (at most {most_together:,})",
                f"raise {options.FRAME_SIZE.key}",
            )
        return file

    def _refuse(self, what: str, raising: str) -> NoReturn:
        raise CheckpointFailed(
            self._captured.checkpoint_id,
            f"{what}; store checkpoints as files (execution.checkpointing.dir, and execution.checkpointing.storage: "
            f"filesystem), or {raising}",
        )
