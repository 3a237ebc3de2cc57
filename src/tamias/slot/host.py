"""A slot from the inside: the subtasks that live in it.

Knows nothing of processes and connections: the Spark engine puts one into each slot process, the local engine
keeps them all at home.
"""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence

from tamias.clock import Clock
from tamias.errors import SlotLostError
from tamias.faults import point
from tamias.graph.job_graph import Vertex
from tamias.graph.regions import regions
from tamias.operators.environment import FeedbackQueues, SubtaskEnvironment
from tamias.operators.epoch import Ack, EpochOrder
from tamias.slot.cached_files import CachedFiles
from tamias.slot.deployment import Deployment, SlotEvent
from tamias.slot.local_copies import LocalCopies
from tamias.slot.snapshot_writer import SnapshotWriter
from tamias.state.snapshots import SubtaskRestore
from tamias.storage.file_store import FileStore, open_files
from tamias.subtask.subtask import Subtask
from tamias.subtask.wire.frames import Blob

SubtaskId = tuple[int, int]  # vertex, index

_log = logging.getLogger(__name__)


class SlotHost:
    """The subtasks of one slot in one attempt."""

    def __init__(self, slot: int, clock: Clock, report: Callable[[SlotEvent], None], folder: str | None = None) -> None:
        self.slot = slot
        self._clock = clock
        self._folder = folder or tempfile.mkdtemp(prefix="tamias-slot-")
        self.files = CachedFiles(self._folder)
        self._subtasks: dict[SubtaskId, Subtask] = {}
        self._deployment: Deployment | None = None
        self._epochs_run: dict[SubtaskId, int] = {}
        self._feedback_queues: FeedbackQueues = {}
        self._dirty: set[SubtaskId] = set()
        self._regions: dict[SubtaskId, int] = {}
        self._writer = SnapshotWriter(report)
        self._copies: LocalCopies | None = None

    @property
    def attempt(self) -> int | None:
        """The attempt that lives here now."""
        return None if self._deployment is None else self._deployment.attempt

    def deploy(self, deployment: Deployment, subtasks: Sequence[SubtaskId]) -> None:
        """Open the subtasks of a new attempt in place of those that were here: all, or those that start anew."""
        kept = self._kept(deployment, subtasks)
        self._deployment = deployment
        self._regions = regions(deployment.graph)
        self._copies = LocalCopies(deployment.local_copies, deployment.job_id, self.slot)
        point("deploy", self.slot)
        self._writer.begin(deployment, self._copies)
        self.files.fetch(deployment.graph.settings.cached_files)
        restore = deployment.restore
        store = None
        if restore is not None and restore.directory:
            store = self._copies.reading(open_files(restore.directory), restore)
        for vertex_id, index in subtasks:
            if (vertex_id, index) in kept:
                self._subtasks[vertex_id, index] = kept[vertex_id, index]  # in the order of the graph again
                continue
            vertex = deployment.graph.vertices[vertex_id]
            subtask = Subtask(self._environment(deployment, vertex, index))
            self._subtasks[vertex_id, index] = subtask
            saved = restore.subtasks.get((vertex_id, index)) if restore is not None else None
            self._open(subtask, saved, store)

    def _open(self, subtask: Subtask, saved: SubtaskRestore | None, store: FileStore | None) -> None:
        if saved is None:
            subtask.open(None, store)
            return
        point("restore", self.slot)
        subtask.open(saved, store)
        point("restored", self.slot)

    def _kept(self, deployment: Deployment, subtasks: Sequence[SubtaskId]) -> dict[SubtaskId, Subtask]:
        """The subtasks that go on, taken out of the others, which are closed."""
        if deployment.only is None:
            self.discard()
            return {}
        going_on = [subtask for subtask in subtasks if subtask not in deployment.only]
        missing = [subtask for subtask in going_on if subtask not in self._subtasks or subtask in self._dirty]
        if missing:
            raise SlotLostError(self.slot, f"it has no state any more of subtasks that were to go on: {missing}")
        epochs_run, feedback_queues = dict(self._epochs_run), dict(self._feedback_queues)
        kept = {subtask: self._subtasks.pop(subtask) for subtask in going_on}
        self.discard()
        self._epochs_run.update({subtask: epochs_run[subtask] for subtask in going_on if subtask in epochs_run})
        self._feedback_queues.update(feedback_queues)  # a tail that starts anew empties its own
        return kept

    def _environment(self, deployment: Deployment, vertex: Vertex, index: int) -> SubtaskEnvironment:
        return SubtaskEnvironment(
            job_id=deployment.job_id,
            graph=deployment.graph,
            vertex=vertex,
            index=index,
            attempt=deployment.attempt,
            clock=self._clock,
            metrics={},
            cached_file=self.files.path_of,
            state_backend=deployment.state_backend,
            rocksdb=deployment.rocksdb,
            incremental=deployment.incremental,
            reuses_restored=_restores_its_own(deployment),
            scratch=self._scratch,
            feedback_queues=self._feedback_queues,
        )

    def _scratch(self) -> str:
        os.makedirs(self._folder, exist_ok=True)
        return tempfile.mkdtemp(dir=self._folder)

    def run(self, subtask_id: SubtaskId, attempt: int, order: EpochOrder, blobs: list[Blob]) -> Iterator[Blob | Ack]:
        """Run one subtask's epoch: what leaves it, then its acknowledgement.

        An epoch is run once, whatever Spark retries or speculates: a second run, or one of another attempt, is
        refused, and after a failed one nothing of its region is run until the next `deploy`.
        """
        if attempt != self.attempt or subtask_id not in self._subtasks:
            raise SlotLostError(self.slot, f"it hosts attempt {self.attempt} of the job, not attempt {attempt}")
        if self._broke_off(subtask_id) or self._epochs_run.get(subtask_id, -1) >= order.number:
            raise SlotLostError(self.slot, f"epoch {order.number} has been run here already")
        self._epochs_run[subtask_id] = order.number
        subtask = self._subtasks[subtask_id]
        self._dirty.add(subtask_id)
        yield from subtask.run_epoch(order, blobs)
        if order.checkpoint_id is not None and subtask_id not in order.settled:
            self._writer.add(subtask.snapshot(order.checkpoint_id, order.savepoint, order.checkpoint_ms))
        self._dirty.discard(subtask_id)
        yield subtask.ack

    def _broke_off(self, subtask_id: SubtaskId) -> bool:
        """Whether an epoch of a subtask that it is connected with did not come to its end here."""
        return any(self._regions[dirty] == self._regions[subtask_id] for dirty in self._dirty)

    def checkpoint_completed(self, checkpoint_id: int) -> None:
        """Tell the subtasks that a checkpoint is complete."""
        point("notify", self.slot)
        if self._copies is not None:
            self._copies.completed(checkpoint_id)
        for subtask in reversed(self._subtasks.values()):
            subtask.checkpoint_completed(checkpoint_id)

    def checkpoint_aborted(self, checkpoint_id: int) -> None:
        """Tell the subtasks that a checkpoint was given up."""
        for subtask in reversed(self._subtasks.values()):
            subtask.checkpoint_aborted(checkpoint_id)

    def close_subtasks(self) -> None:
        """Close all subtasks; the first error of the user's code is raised when all have been closed."""
        errors: list[Exception] = []
        point("close", self.slot)
        for subtask in reversed(self._subtasks.values()):
            try:
                subtask.close()
            except Exception as error:  # the others still have something to release
                errors.append(error)
        self._forget()
        if errors:
            raise errors[0]

    def discard(self) -> None:
        """Close what is here after a failure: errors in `close` no longer matter."""
        for subtask in reversed(self._subtasks.values()):
            try:
                subtask.close()
            except Exception as error:  # Flink: only logged when the attempt has failed already
                _log.warning("close after a failure: %s", error)
        self._forget()

    def _forget(self) -> None:
        self._subtasks.clear()
        self._epochs_run.clear()
        self._feedback_queues.clear()
        self._dirty.clear()

    def shutdown(self) -> None:
        """Close everything and remove the slot's folder."""
        self._writer.stop()
        self.discard()
        shutil.rmtree(self._folder, ignore_errors=True)
        if self._copies is not None:
            self._copies.remove()


def _restores_its_own(deployment: Deployment) -> bool:
    """Whether the restored checkpoint lies where this job's checkpoints go: they may then refer to its files."""
    return deployment.restore is not None and deployment.restore.directory == deployment.checkpoint_directory
