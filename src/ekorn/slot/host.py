"""Hosts the subtasks of one slot: opens, runs, notifies and closes them.

It knows nothing of processes and connections. A slot process has one host; the local engine keeps all hosts of a job
in its own process.
"""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ekorn.clock import Clock
from ekorn.config.settings.memory_settings import SlotMemory
from ekorn.errors import QueryError, SlotLostError, StateNotServed
from ekorn.faults import point
from ekorn.graph.addresses import SubtaskId
from ekorn.graph.job_graph import Operator, Vertex
from ekorn.graph.regions import regions
from ekorn.operators.environment import FeedbackQueues, SubtaskEnvironment
from ekorn.operators.epoch import EpochAck, EpochOrder, SavepointOrder, SubtaskOrder
from ekorn.operators.sources.epoch_cut import EpochCut
from ekorn.slot.spool import Spool, SpoolMemory
from ekorn.slot.state.local_copies import LocalCopies
from ekorn.slot.state.preloading import PreloadedState
from ekorn.slot.state.snapshot_writer import SnapshotWriter
from ekorn.slot.state.state_look_ups import CheckpointStates, ServedState, queryable_states, served_state
from ekorn.slot.user_code_lock import UserCodeLock
from ekorn.slot_protocol.cached_files import CachedFiles
from ekorn.slot_protocol.deployment import Deployment
from ekorn.slot_protocol.preload_plan import PreloadPlan
from ekorn.slot_protocol.slot_events import OperatorHint, SlotEvent
from ekorn.slot_protocol.state_query import Found, QueryableState, StateQuery
from ekorn.state.restored_tables import ReadTables, read_tables
from ekorn.state.snapshots import SubtaskRestore
from ekorn.state.state_queries import look_up
from ekorn.storage.file_store import FileStore, open_files
from ekorn.storage.scratch_folders import LocalFolder
from ekorn.subtask.capture import CapturedSubtask, Declined
from ekorn.subtask.outbox import Emitted
from ekorn.subtask.subtask import Subtask
from ekorn.subtask.wire.frames import ReceivedBlob

_log = logging.getLogger(__name__)

_ABORTED = 128  # Flink: the number of aborted checkpoints that are remembered until their marks come


class SlotHost:
    """The subtasks of one slot in one attempt."""

    def __init__(self, slot: int, clock: Clock, report: Callable[[SlotEvent], None], folder: str | None = None) -> None:
        self.slot = slot
        self._clock = clock
        self._own_folder: LocalFolder | None = None
        if folder is None:
            self._own_folder = LocalFolder(tempfile.gettempdir(), "ekorn-slot-")
            folder = self._own_folder.path
        self._folder = folder
        self.files = CachedFiles(self._folder)
        self._subtasks: dict[SubtaskId, Subtask] = {}
        self._deployment: Deployment | None = None
        self._epochs_run: dict[SubtaskId, int] = {}
        self._feedback_queues: FeedbackQueues = {}
        self._dirty: set[SubtaskId] = set()
        self._regions: dict[SubtaskId, int] = {}
        self._report = report
        self._hints: dict[tuple[str, str], OperatorHint] = {}  # of the job, by operator and subject
        self._writer = SnapshotWriter(report)
        self._local_copies: LocalCopies | None = None
        self._savepoints: dict[int, SavepointOrder] = {}  # by checkpoint id; only the last one that the driver began
        self._aborted: deque[int] = deque(maxlen=_ABORTED)  # ids of the last aborted checkpoints
        self._spool_memory = SpoolMemory()
        self._checkpoint_states = CheckpointStates(clock)
        self.preloaded = PreloadedState(slot)
        self._read_tables: ReadTables = read_tables
        self.memory = SlotMemory()  # what the slot may use
        self.running: SubtaskId | None = None  # the subtask that `thread` runs, for samples of stacks
        self.thread = 0
        self.epoch_cut = EpochCut()
        self.user_code = UserCodeLock()  # user code is never called concurrently

    @property
    def attempt(self) -> int | None:
        """The number of the attempt that was deployed last; None before the first."""
        return None if self._deployment is None else self._deployment.attempt

    @property
    def subtasks(self) -> Mapping[SubtaskId, Subtask]:
        """The subtasks that are open, in the order of the graph."""
        return self._subtasks

    @property
    def local_copies(self) -> LocalCopies | None:
        """The slot's copies of its state files; None before the first deployment."""
        return self._local_copies

    def deploy(self, deployment: Deployment, subtasks: Sequence[SubtaskId]) -> None:
        """Open the subtasks of a new attempt. Subtasks that `deployment.only` leaves out go on as they are."""
        kept = self._kept(deployment, subtasks)
        self._deployment = deployment
        self.memory = deployment.graph.memory_of(self.slot)
        self._spool_memory.limit_bytes = deployment.graph.settings.slot_memory_bytes
        self._regions = regions(deployment.graph)
        self._local_copies = LocalCopies(deployment.local_copies, deployment.job_id, self.slot)
        point("deploy", self.slot)
        self._writer.begin(deployment, self._local_copies)
        self.files.fetch(deployment.graph.settings.cached_files)
        restore = deployment.restore
        self._read_tables = self.preloaded.take(None if restore is None else restore.directory)
        store = None
        if restore is not None and restore.directory:
            store = self._local_copies.reading(open_files(restore.directory), restore)
        try:
            for subtask_id in subtasks:
                if subtask_id in kept:
                    self._subtasks[subtask_id] = kept[subtask_id]  # the subtasks stay in the order of the graph
                    continue
                vertex = deployment.graph.vertices[subtask_id.vertex]
                subtask = Subtask(self._environment(deployment, vertex, subtask_id.subtask))
                self._subtasks[subtask_id] = subtask
                saved = restore.subtasks.get(subtask_id) if restore is not None else None
                self._open(subtask, saved, store)
        finally:
            self._subtasks |= kept  # they go on, whatever the others do when they are opened
            self._read_tables = read_tables  # what was read in advance and not used is dropped

    def preload(self, plan: PreloadPlan, pause: Callable[[], None] = lambda: None) -> None:
        """Read state for subtasks that the next deployment opens, beside those that run. Thread-safe.

        Args:
            plan: What to read. It replaces what was read before; an empty plan drops it.
            pause: Called again and again. What it raises ends the reading.

        Raises:
            CorruptFileError: A file is missing or damaged.
        """
        self.preloaded.read(plan, pause)

    def _open(self, subtask: Subtask, saved: SubtaskRestore | None, store: FileStore | None) -> None:
        if saved is None:
            subtask.open(None, store)
            return
        point("restore", self.slot)
        subtask.open(saved, store)
        point("restored", self.slot)

    def _kept(self, deployment: Deployment, subtasks: Sequence[SubtaskId]) -> dict[SubtaskId, Subtask]:
        """Close the subtasks that restart; return those that go on."""
        if deployment.only is None:
            self.discard()
            return {}
        going_on = [subtask for subtask in subtasks if subtask not in deployment.only]
        missing = [subtask for subtask in going_on if subtask not in self._subtasks or subtask in self._dirty]
        if missing:
            raise SlotLostError(self.slot, f"it has lost the state of subtasks that were to continue: {missing}")
        self.discard(deployment.only)  # a feedback tail that restarts empties its own queue
        kept = {subtask: self._subtasks[subtask] for subtask in going_on}
        self._subtasks.clear()
        self._savepoints = {}
        self._checkpoint_states.clear()
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
            rocksdb=None if deployment.rocksdb is None else deployment.rocksdb.for_slot(self.memory),
            incremental=deployment.incremental,
            reuses_restored=_restores_its_own(deployment),
            most_blob_bytes=deployment.most_blob_bytes if deployment.continuous else None,
            continuous=deployment.continuous,
            hint=self._hint,
            give_way=self.user_code.give_way,
            epoch_cut=self.epoch_cut,
            read_tables=self._read_tables,
            scratch=self._scratch,
            feedback_queues=self._feedback_queues,
        )

    def _hint(self, operator: Operator, about: str, text: str) -> None:
        assert self._deployment is not None, "operators are opened by a deployment"
        hint = OperatorHint(self._deployment.attempt, operator.id, operator.name, about, text)
        self._hints[operator.id, about] = hint
        self._report(hint)

    def hint_at_memory(self, operator_id: str | None, text: str) -> bool:
        """Report that the memory of the slot is short, as a hint of the operator that keeps most, or of any.

        Returns:
            Whether there is an operator in the slot. Without one, nothing is reported.
        """
        operators = [each.operator for subtask in list(self._subtasks.values()) for each in subtask.operators]
        if not operators:
            return False
        found = next((each for each in operators if each.id == operator_id), operators[0])
        self._hint(found, f"memory of slot {self.slot}", text)
        return True

    def take_hints(self) -> tuple[OperatorHint, ...]:
        """Return the hints that operators have given since the last call, although each was reported when given."""
        taken, self._hints = tuple(self._hints.values()), {}
        return taken

    def _scratch(self) -> str:
        return tempfile.mkdtemp(dir=self.existing_folder())

    def existing_folder(self) -> str:
        """Return the slot's folder, which is created on first use."""
        os.makedirs(self._folder, exist_ok=True)
        return self._folder

    def spool(self) -> Spool:
        """Return a new spool, whose file is in the slot's folder."""
        return Spool(self._spool_memory, self.existing_folder)

    def begin_savepoint(self, checkpoint_id: int, savepoint: SavepointOrder) -> None:
        """Note where a savepoint goes: the order of the epoch that carries it comes without the address."""
        self._savepoints = {checkpoint_id: savepoint}

    def run(
        self,
        subtask_id: SubtaskId,
        attempt: int,
        order: EpochOrder,
        blobs: Iterable[ReceivedBlob],
        send: Callable[[Emitted], None] | None = None,
    ) -> Iterator[Emitted | EpochAck]:
        """Run one subtask's epoch; yield what leaves the subtask, then its acknowledgement.

        Blobs and output that leave while records are being emitted go to `send`, if there is one. The input may wait
        in a spool.

        An epoch runs once, whatever Spark retries or speculates: a second run, and a run of another attempt, is
        refused. After a failed epoch no subtask of its region runs until the next `deploy`.

        Raises:
            SlotLostError: The run is refused.
        """
        if attempt != self.attempt or subtask_id not in self._subtasks:
            raise SlotLostError(self.slot, f"it hosts attempt {self.attempt} of the job, not attempt {attempt}")
        if self._region_is_dirty(subtask_id) or self._epochs_run.get(subtask_id, -1) >= order.number:
            raise SlotLostError(self.slot, f"epoch {order.number} has already run here")
        savepoint = self._savepoint_of(order)
        self._epochs_run[subtask_id] = order.number
        subtask = self._subtasks[subtask_id]
        self._dirty.add(subtask_id)
        self.thread, self.running = threading.get_ident(), subtask_id
        try:
            yield from subtask.run_epoch(order, blobs, send)
            captured = self._capture(subtask_id, order, savepoint)
        finally:
            self.running = None
        if captured is not None:
            self.write(captured)
        self._dirty.discard(subtask_id)
        yield subtask.ack

    def capture(self, subtask_id: SubtaskId, order: SubtaskOrder) -> CapturedSubtask | None:
        """Capture the state of a subtask at the mark of an epoch, if the epoch carries a checkpoint.

        `write` is called with the snapshot once it is whole: the mark may have overtaken blobs that belong to it.

        Raises:
            SlotLostError: The slot was not told where a savepoint goes.
        """
        if order.checkpoint_id in self._aborted:
            return None  # the driver does not wait for it, and the address of a savepoint is forgotten
        return self._capture(subtask_id, order, self._savepoint_of(order))

    def _capture(
        self, subtask_id: SubtaskId, order: SubtaskOrder, savepoint: SavepointOrder | None
    ) -> CapturedSubtask | None:
        if order.checkpoint_id is None or subtask_id in order.settled:
            return None
        taken = self._subtasks[subtask_id].snapshot(order.checkpoint_id, savepoint, order.checkpoint_ms)
        if isinstance(taken, Declined):
            self._writer.decline(subtask_id, taken)
            return None
        return taken

    def write(self, captured: CapturedSubtask) -> None:
        """Write a snapshot, and report it."""
        self._writer.add(captured)

    def _savepoint_of(self, order: SubtaskOrder) -> SavepointOrder | None:
        if not order.savepoint_apart:
            return order.savepoint
        if order.checkpoint_id not in self._savepoints:
            raise SlotLostError(self.slot, f"it was not told where savepoint {order.checkpoint_id} goes")
        return self._savepoints[order.checkpoint_id]

    def region_of(self, subtask_id: SubtaskId) -> list[SubtaskId]:
        """Return the subtasks of this slot that fail with a subtask."""
        return [of for of in self._subtasks if self._regions[of] == self._regions[subtask_id]]

    def _region_is_dirty(self, subtask_id: SubtaskId) -> bool:
        """Return whether an epoch of some subtask in the same region broke off."""
        return any(self._regions[dirty] == self._regions[subtask_id] for dirty in self._dirty)

    def checkpoint_completed(self, checkpoint_id: int) -> None:
        """Tell the subtasks that a checkpoint is completed."""
        point("notify", self.slot)
        if self._local_copies is not None:
            self._local_copies.completed(checkpoint_id)
        for subtask in reversed(self._subtasks.values()):
            subtask.checkpoint_completed(checkpoint_id)

    def checkpoint_aborted(self, checkpoint_id: int, failed: Collection[SubtaskId] = ()) -> None:
        """Tell the subtasks that a checkpoint was aborted, except for those that have failed.

        Its marks may still be in flight: they pass, and no snapshot is taken.
        """
        self._aborted.append(checkpoint_id)
        for subtask_id, subtask in reversed(self._subtasks.items()):
            if subtask_id not in failed:
                subtask.checkpoint_aborted(checkpoint_id)

    def queryable_states(self) -> tuple[QueryableState, ...]:
        """Return the queryable states of the subtasks. Called with the lock on user code."""
        return queryable_states(self._subtasks)

    def look_up_all(self, queries: Sequence[StateQuery]) -> list[Found]:
        """Return the answers to some queries, those of live state from one pause of user code. Thread-safe.

        This waits until the user's code has come to the end of a run of records. The error is `StateNotServed` if a
        subtask does not run here in the attempt of the query, or user code takes too long.
        """
        live = [query for query in queries if query.checkpoint is None]
        found = iter(self._at_pause(live, self._live_values))
        return [next(found) if query.checkpoint is None else self._of_checkpoint(query) for query in queries]

    def _at_pause(self, queries: list[StateQuery], answer: Callable[[StateQuery, ServedState], Any]) -> list[Any]:
        """Answer queries while user code pauses. An answer may be an error."""
        answers: list[Any] = []

        def answer_all() -> None:
            answers.extend(self._answer(query, answer) for query in queries)

        if not queries or self.user_code.at_pause(answer_all, min(query.timeout_s for query in queries)):
            return answers
        return [StateNotServed(q.name, f"user code has run for {q.timeout_s:g} s without a pause") for q in queries]

    def look_up_now(self, queries: Sequence[StateQuery]) -> list[Found]:
        """Return the answers to queries of live state. Called in a pause, by the holder of the lock on user code."""
        return [self._answer(query, self._live_values) for query in queries]

    def _answer(self, query: StateQuery, answer: Callable[[StateQuery, ServedState], Any]) -> Any:
        try:
            if query.attempt != self.attempt:
                raise StateNotServed(query.name, "the job restarts")
            return answer(query, served_state(self._subtasks, query))
        # The value of an aggregate is user code, and a panic of RocksDB is no Exception. Neither concerns the step of
        # the job between whose runs of records this is called.
        except BaseException as error:
            return _refusal(query, error)

    def _live_values(self, query: StateQuery, state: ServedState) -> list[bytes | None]:
        return look_up(state.backend, state.descriptor, query.keys, self._clock.now_ms())

    def _of_checkpoint(self, query: StateQuery) -> Found:
        assert query.checkpoint is not None, "the query is one of a checkpoint"
        (state,) = self._at_pause([query], lambda _, state: state)
        if isinstance(state, QueryError):
            return state
        try:
            stored = self._checkpoint_states.backend(query.checkpoint, state.descriptor, state.backend.key_type)
        except Exception as error:  # the files cannot be read
            return _refusal(query, error)

        def values(query: StateQuery, state: ServedState) -> list[bytes | None]:
            return look_up(stored, state.descriptor, query.keys, self._clock.now_ms())

        # The value of an aggregate is user code. The job may have restarted while files were read.
        found: Found = self._at_pause([query], values)[0]
        return found

    def close_subtasks(self) -> None:
        """Close all subtasks, the last of the graph first; then raise the first error of the user's code."""
        errors: list[Exception] = []
        point("close", self.slot)
        for subtask in reversed(self._subtasks.values()):
            try:
                subtask.close()
            except Exception as error:  # the other subtasks still have something to release
                errors.append(error)
        self.drop_subtasks()
        if errors:
            raise errors[0]

    def discard(self, only: Collection[SubtaskId] | None = None) -> None:
        """Close all subtasks, or some of them, after a failure; log errors in `close`."""
        discarded = [of for of in self._subtasks if only is None or of in only]
        for subtask_id in reversed(discarded):
            try:
                self._subtasks[subtask_id].close()
            except Exception as error:  # Flink: only logged when the attempt has failed already
                _log.warning("slot %d: a subtask could not be closed after a failure: %s", self.slot, error)
        if only is None:
            self.drop_subtasks()
            return
        for subtask_id in discarded:
            del self._subtasks[subtask_id]
            self._epochs_run.pop(subtask_id, None)
            self._dirty.discard(subtask_id)

    def drop_subtasks(self) -> None:
        """Drop all subtasks without closing them, as if the process had been killed."""
        self._subtasks.clear()
        self._epochs_run.clear()
        self._feedback_queues.clear()
        self._dirty.clear()
        self._savepoints = {}
        self._aborted.clear()
        self._checkpoint_states.clear()

    def shutdown(self) -> None:
        """Close all subtasks; remove the slot's folder and its local copies."""
        self._writer.stop()
        self.discard()
        shutil.rmtree(self._folder, ignore_errors=True)
        if self._own_folder is not None:
            self._own_folder.close()
        if self._local_copies is not None:
            self._local_copies.remove()


def _refusal(query: StateQuery, error: BaseException) -> QueryError:
    return error if isinstance(error, QueryError) else StateNotServed(query.name, f"{type(error).__name__}: {error}")


def _restores_its_own(deployment: Deployment) -> bool:
    """Return whether the job restores from its own directory: new checkpoints may then share the restored files."""
    return deployment.restore is not None and deployment.restore.directory == deployment.checkpoint_directory
