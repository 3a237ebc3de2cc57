"""The base of all engines with slot processes: everything but how an epoch's blobs move between the slots."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable
from concurrent.futures import Future
from dataclasses import replace

from ekorn.engine.protocol import EpochResult, Failure
from ekorn.engine.slots.epoch_watch import EpochWatch
from ekorn.engine.slots.file_sending import send_files
from ekorn.engine.slots.preloading import drop_preloaded, preload
from ekorn.engine.slots.slot_handle import SlotHandle
from ekorn.engine.slots.slot_pool import SlotPool
from ekorn.engine.subtask_outcome import SubtaskFailure, add_output
from ekorn.errors import (
    DeploymentError,
    EkornError,
    EpochStalledError,
    QueryableNameTwice,
    SlotLostError,
    StateNotServed,
    UserFunctionError,
)
from ekorn.graph.addresses import SubtaskId
from ekorn.graph.job_graph import JobGraph
from ekorn.graph.regions import in_regions_of
from ekorn.metrics.thread_stacks import ThreadStack
from ekorn.operators.epoch import Ack, EpochOrder, OutputPart
from ekorn.slot_protocol.deployment import Deployment
from ekorn.slot_protocol.deployment_codec import encode_deployment
from ekorn.slot_protocol.diagnostics import SamplingPlan, SlotLogs, StackSample
from ekorn.slot_protocol.messages import Aborted, BeginSavepoint, CloseSubtasks, Completed, Deploy, Discard, Request
from ekorn.slot_protocol.preload_plan import preload_plans
from ekorn.slot_protocol.slot_events import FlowEvent, SlotActivity, SlotEvent, UnreadableEvent
from ekorn.slot_protocol.state_query import QueryableState, StateQuery, check_names, slot_of_query
from ekorn.state.snapshots import RestorePlan

_STACKS_S = 10.0  # how long a slot may take to answer with its stacks or its log


class SlotEngine(ABC):
    """Hosts a job in slot processes. A subclass runs the epochs."""

    def __init__(self, graph: JobGraph, pool: SlotPool, stall_timeout_s: float) -> None:
        self._graph = graph
        self.pool = pool
        self._watch = EpochWatch(stall_timeout_s)
        self._stall_timeout_s = stall_timeout_s
        pool.on_lost = self._slot_lost
        pool.on_activity = self._slot_reported
        self._deployment: Deployment | None = None
        self._queryable: tuple[QueryableState, ...] = ()  # states of the last deployment
        self._without_files: set[int] = set()  # slots that lack cached files; for slots that see no disk of the driver
        self._held: list[SlotEvent] = []  # events that `wait` took from the queue
        self._unreadable: Failure | None = None  # an event of this attempt could not be read
        self._cancelled = threading.Event()
        self._has_preloaded = False  # since the last `prepare`

    @property
    def in_process(self) -> bool:
        return False

    @property
    def mark_interval_ms(self) -> int | None:
        return None

    @property
    def slot_pids(self) -> tuple[int, ...]:
        return tuple(slot.process.pid for slot in self.pool.slots)

    def thread_stacks(self, slot: int) -> list[ThreadStack]:
        return self._handle_of(slot).thread_stacks(_STACKS_S)

    def sample_stacks(self, slot: int, plan: SamplingPlan) -> list[StackSample]:
        return self._handle_of(slot).sample_stacks(plan, _STACKS_S)

    def recent_log(self, slot: int) -> SlotLogs | None:
        return self._handle_of(slot).recent_log(_STACKS_S)

    def _handle_of(self, slot: int) -> SlotHandle:
        slots = list(self.pool.slots)
        if slot >= len(slots):
            raise SlotLostError(slot, "it does not run now")
        return slots[slot]

    @property
    def description(self) -> str:
        return "processes of this machine, without Spark"

    @property
    def log_path(self) -> str | None:
        return None

    def keep_log(self) -> str | None:
        return None

    @property
    def shares_disk(self) -> bool:
        return self.pool.shares_disk

    @property
    def places(self) -> int | None:
        return None

    def needed_places(self, graph: JobGraph) -> int:
        return graph.slot_count

    def prepare(self, graph: JobGraph) -> None:
        self.pool.prepare(graph.slot_count)
        if self._has_preloaded:
            self._has_preloaded = False
            drop_preloaded(self.pool.upcoming(graph.slot_count))

    def preload(self, graph: JobGraph, plan: RestorePlan) -> None:
        self._has_preloaded = True
        preload(self.pool.upcoming(graph.slot_count), preload_plans(graph, plan))

    def _lay_out(self, graph: JobGraph) -> None:
        """Note the graph of the next attempts. No attempt runs."""
        self._graph = graph

    def run_epoch(self, order: EpochOrder) -> EpochResult:
        """Push one epoch through all levels. An epoch that stalls is cancelled and fails."""
        failure = self._begin_savepoint(order)
        if failure is not None:
            return EpochResult(failure=failure)
        self._watch.begin(order.number, range(len(self.pool.slots)), time.monotonic())
        result = self._run_levels(order.without_address())
        if self._watch.end() and result.failure is not None and self._lost_slot() is None:
            return EpochResult(failure=Failure(self._stall_error(order.number)))
        return result

    def _begin_savepoint(self, order: EpochOrder) -> Failure | None:
        """Tell the slots where the savepoint of an epoch goes. What runs the levels does not learn the address."""
        if order.savepoint is None:
            return None
        assert order.checkpoint_id is not None, "a savepoint is a checkpoint"
        return self._ask_each(BeginSavepoint(order.checkpoint_id, order.savepoint))

    @abstractmethod
    def _run_levels(self, order: EpochOrder) -> EpochResult:
        """Push one epoch through all levels."""

    @abstractmethod
    def _epoch_stalled(self) -> None:
        """Make a running `run_epoch` return soon: what carries blobs between the slots hangs. Thread-safe."""

    def _slot_reported(self, number: int, activity: SlotActivity) -> None:
        if not self._watch.observe(number, activity, time.monotonic()):
            return
        if self._waits_for_resources():
            self._watch.excuse(time.monotonic())
        else:
            self._epoch_stalled()

    def _waits_for_resources(self) -> bool:
        """Return whether nothing moves because nothing runs yet. Thread-safe."""
        return False

    def _stall_error(self, epoch: int) -> EpochStalledError:
        subtasks = [SubtaskId(v.id, index) for v in self._graph.vertices for index in range(v.parallelism)]
        waiting = [
            f"{self._graph.vertices[of.vertex].name!r} (subtask {of.subtask})"
            for of in self._watch.unanswered(epoch, subtasks)
        ]
        return EpochStalledError(epoch, self._stall_timeout_s, waiting)

    def cancel_epoch(self) -> None:
        """Make a running `run_epoch`, and every wait for the answer of a slot, return soon. Thread-safe."""
        self._cancelled.set()
        self._cancel_levels()

    @abstractmethod
    def _cancel_levels(self) -> None:
        """Make a running `_run_levels` return soon: the job was cancelled. Thread-safe."""

    @abstractmethod
    def _slot_lost(self, number: int) -> None:
        """Make a running `run_epoch` return soon: a slot was given up and will not answer. Thread-safe."""

    # ------------------------------------------------------------------------------------------------ requests

    def deploy(self, deployment: Deployment) -> Failure | None:
        self._unreadable = None
        if deployment.graph is not self._graph:
            self._lay_out(deployment.graph)
        # Also if the graph is the same: slots that were made ready for a rescale which has failed end.
        count, in_use = deployment.graph.slot_count, len(self.pool.slots)
        self.pool.resize(count)
        self._without_files.update(range(in_use, count))  # those that were made ready for a rescale run already
        self._without_files &= set(range(count))
        try:
            started = self.pool.ensure()
            deployment = replace(deployment, slot_hosts=self._slot_hosts())
            data = encode_deployment(deployment)
        except EkornError as error:
            return Failure(error)
        if not self.pool.shares_disk:
            failure = self._send_files(started, deployment)
            if failure is not None:
                return failure
        by_slot = self._by_slot(deployment.graph)
        self._deployment = deployment
        failure = self._ask_all({number: Deploy(data, subtasks) for number, subtasks in by_slot.items()})
        return failure or self._check_queryable_names()

    def _by_slot(self, graph: JobGraph) -> dict[int, list[SubtaskId]]:
        """Return the subtasks that each slot hosts."""
        by_slot: dict[int, list[SubtaskId]] = {slot.number: [] for slot in self.pool.slots}
        for vertex in graph.vertices:
            for index in range(vertex.parallelism):
                by_slot[graph.slot_of(vertex, index)].append(SubtaskId(vertex.id, index))
        return by_slot

    def _slot_hosts(self) -> tuple[str, ...]:
        """Return the address of each slot's host; nothing if all are on one."""
        hosts = tuple(slot.address[0] if isinstance(slot.address, tuple) else "" for slot in self.pool.slots)
        return hosts if len(set(hosts)) > 1 else ()

    def _check_queryable_names(self) -> Failure | None:
        """Refuse two states of one name, which may be in different slots."""
        self._queryable = tuple(dict.fromkeys(state for slot in self.pool.slots for state in slot.queryable))
        try:
            check_names(self._queryable)
        except QueryableNameTwice as error:
            return Failure(error)
        return None

    def queryable_states(self) -> tuple[QueryableState, ...]:
        return self._queryable

    def look_up(self, query: StateQuery) -> Future[list[bytes | None]]:
        refused: Future[list[bytes | None]] = Future()
        try:
            number = slot_of_query(self._graph, query)
        except StateNotServed as error:
            refused.set_exception(error)
            return refused
        slot = next((slot for slot in list(self.pool.slots) if slot.number == number), None)
        if slot is None:
            refused.set_exception(StateNotServed(query.name, "the slots of the job have ended"))
            return refused
        return slot.queries.ask(query)

    def _send_files(self, started: list[int], deployment: Deployment) -> Failure | None:
        """Send the cached files to every slot that lacks them; return the failures of all slots as one."""
        self._without_files.update(started)
        failures: list[tuple[int, BaseException]] = []
        for number in sorted(self._without_files):
            error = send_files(self.pool.slots[number], deployment.graph.settings.cached_files)
            if error is None:
                self._without_files.discard(number)  # else the next deployment tries again
            else:
                failures.append((number, error))
        if len(failures) < 2:
            return next((Failure(error, number) for number, error in failures), None)
        said = "; ".join(f"slot {number}: {error}" for number, error in failures)
        return Failure(DeploymentError(f"{len(failures)} slots did not get the cached files: {said}"), failures[0][0])

    def notify_completed(self, checkpoint_id: int) -> Failure | None:
        return self._ask_each(Completed(checkpoint_id))

    def notify_aborted(self, checkpoint_id: int, failed: frozenset[SubtaskId] = frozenset()) -> Failure | None:
        request, hosted = Aborted(checkpoint_id, failed), self._by_slot(self._graph)
        return self._ask_all({n: request for n, of in hosted.items() if not failed or not failed.issuperset(of)})

    def close_subtasks(self) -> Failure | None:
        return self._ask_each(CloseSubtasks())

    def shutdown(self) -> None:
        self._ask_each(Discard(), timeout_s=3.0)  # user code that hangs ends with its process
        self.pool.shutdown()

    def _ask_each(self, request: Request, timeout_s: float | None = None) -> Failure | None:
        return self._ask_all({slot.number: request for slot in self.pool.slots}, timeout_s)

    def _ask_all(self, requests: dict[int, Request], timeout_s: float | None = None) -> Failure | None:
        """Send a request to each slot, wait for all answers, and return the failures, the most telling first; or None.

        A slot performs most requests when no user code runs. A job that is cancelled does not wait for that, unless
        the time is limited anyway.
        """
        for number, request in requests.items():
            self.pool.slots[number].tell(request)
        given_up = self._cancelled if timeout_s is None else None
        answers = [(number, self.pool.slots[number].answer(timeout_s, given_up)) for number in requests]
        # The user's own error says more than the loss of a slot that followed from it.
        answers.sort(key=lambda answer: isinstance(answer[1], SlotLostError))
        failures = [Failure(error, number) for number, error in answers if error is not None]
        return replace(failures[0], others=tuple(failures[1:])) if failures else None

    # ------------------------------------------------------------------------------------------------ outcomes

    def _result(self, outcomes: list[Ack | OutputPart | SubtaskFailure]) -> EpochResult:
        """Combine the outcomes of an epoch's subtasks, and their output."""
        acks = sorted((o for o in outcomes if isinstance(o, Ack)), key=lambda a: (a.vertex, a.subtask))
        add_output(acks, [o for o in outcomes if isinstance(o, OutputPart)])
        errors = {o.subtask: o.error for o in outcomes if isinstance(o, SubtaskFailure)}
        if not errors:
            return EpochResult(acks)
        first = min(errors.values(), key=lambda error: not isinstance(error, UserFunctionError))
        failed = frozenset(errors) | self._lost_subtasks(errors.values())
        hit = in_regions_of(self._graph, failed)
        rest = [ack for ack in acks if (ack.vertex, ack.subtask) not in hit]
        return EpochResult(rest, Failure(self._with_cause(first, errors), subtasks=failed))

    def _lost_subtasks(self, errors: Iterable[BaseException]) -> frozenset[SubtaskId]:
        """Return the subtasks of all lost slots, including those whose epoch had succeeded."""
        lost = {slot.number for slot in self.pool.slots if not slot.process.alive}
        lost |= {error.slot for error in errors if isinstance(error, SlotLostError)}
        return frozenset(
            SubtaskId(vertex.id, index)
            for vertex in self._graph.vertices
            for index in range(vertex.parallelism)
            if self._graph.slot_of(vertex, index) in lost
        )

    def _with_cause(self, error: BaseException, errors: dict[SubtaskId, BaseException]) -> BaseException:
        """Return the error; in place of a broken connection, say how the slot ended and what it was running.

        This waits for a process that is still ending, so that the next attempt does not take it for alive.
        """
        if not isinstance(error, SlotLostError):
            return error
        ended = self.pool.slots[error.slot].process.wait_for_end()
        if ended is None:
            return self._lost_slot() or error
        left = [of for of, found in errors.items() if isinstance(found, SlotLostError) and found.slot == error.slot]
        ran = ", ".join(f"{self._graph.vertices[of.vertex].name!r} (subtask {of.subtask})" for of in sorted(left))
        return SlotLostError(error.slot, f"{ended} while it ran {ran}")

    def _lost_slot(self) -> SlotLostError | None:
        for slot in self.pool.slots:
            if not slot.process.alive:
                return SlotLostError(slot.number, slot.process.wait_for_end() or "its process ended")
        return None

    def lost(self) -> Failure | None:
        error = self._lost_slot()
        return self._unreadable if error is None else Failure(error, error.slot)

    # -------------------------------------------------------------------------------------------------- events

    def events(self) -> list[SlotEvent]:
        with contextlib.suppress(queue.Empty):
            while True:
                self._take(self.pool.events.get(0.0))
        found, self._held = self._held, []
        return found

    def wait(self, timeout_s: float) -> None:
        with contextlib.suppress(queue.Empty):
            self._take(self.pool.events.get(max(timeout_s, 0.0)))

    def _take(self, event: SlotEvent | FlowEvent | UnreadableEvent | None) -> None:
        if isinstance(event, SlotEvent):
            self._held.append(event)
        elif isinstance(event, UnreadableEvent):
            why = f"slot {event.slot} reported something that cannot be read in the driver: {event.why}"
            self._unreadable = Failure(DeploymentError(why), event.slot)
        elif event is not None:
            self._take_flow(event)

    def _take_flow(self, event: FlowEvent) -> None:  # noqa: B027
        """Take an event of subtasks that run continuously. An engine of epochs has none."""

    def wake(self) -> None:
        self.pool.events.put(None)
