"""The base of the engines with slot processes: what does not depend on whether a job runs in epochs or continuously.

An engine is composed of parts: calls to the slots (`slot_calls.py`), their deployments (`slot_deployments.py`), their
events (`event_queue.py`), diagnostics (`slot_diagnostics.py`), and the watch over the running epoch below. The engines
of the two modes (`epoch_engine.py`, `continuous_engine.py`) have one more: what carries blobs between the slots, such
as Spark.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from concurrent.futures import Future
from typing import Protocol

from ekorn.engine.protocol import AckT, EpochResult, Failure, OrderT
from ekorn.engine.slots.event_queue import EventInbox
from ekorn.engine.slots.slot_calls import SlotCalls, subtasks_by_slot, subtasks_of
from ekorn.engine.slots.slot_deployments import SlotDeployments
from ekorn.engine.slots.slot_diagnostics import SlotDiagnostics
from ekorn.errors import EpochStalledError
from ekorn.graph.addresses import SubtaskId
from ekorn.graph.job_graph import JobGraph
from ekorn.metrics.thread_stacks import ThreadStack
from ekorn.operators.epoch import SubtaskOrder
from ekorn.slot_protocol.deployment import Deployment
from ekorn.slot_protocol.diagnostics import SamplingPlan, SlotLogs, SlotVitals, StackSample
from ekorn.slot_protocol.messages import Aborted, BeginSavepoint, CloseSubtasks, Completed, Discard
from ekorn.slot_protocol.slot_events import FlowEvent, SlotActivity, SlotEvent
from ekorn.slot_protocol.state_query import QueryableState, StateQuery
from ekorn.state.snapshots import RestorePlan

__all__ = ["EpochWatch", "Platform", "SlotEngine"]

_DISCARD_S = 3.0  # user code that hangs for longer ends with its process


class Platform(Protocol):
    """What a job runs on, such as a Spark session."""

    @property
    def description(self) -> str:
        """What runs the job, for people to read."""

    @property
    def log_path(self) -> str | None:
        """The path of the platform's own log, if the driver may show it."""

    def keep_log(self) -> str | None:
        """Return the path of the platform's own log, and keep the file when the driver ends."""

    @property
    def task_slots(self) -> int | None:
        """The number of tasks that the platform can run at the same time; None if that is not known."""

    def needed_task_slots(self, graph: JobGraph) -> int:
        """Return how many of the `task_slots` a graph needs, so that all of its parallel parts run at the same time."""


class SlotEngine(ABC):
    """Hosts a job in slot processes. A subclass runs the epochs.

    Args:
        graph: The job.
        calls: The slots of the job.
        platform: What the job runs on.
        stall_timeout_s: How long an epoch may make no progress before it fails.
    """

    def __init__(self, graph: JobGraph, calls: SlotCalls, platform: Platform, stall_timeout_s: float) -> None:
        self.pool = calls.pool
        self._graph = graph
        self._calls = calls
        self._platform = platform
        self._deployments = SlotDeployments(calls)
        self._diagnostics = SlotDiagnostics(calls.pool)
        self._inbox = EventInbox(calls.pool.events, self._take_flow)
        self._watch = EpochWatch(stall_timeout_s)
        calls.pool.on_lost = self._slot_lost
        calls.pool.on_activity = self._slot_reported

    @property
    def in_process(self) -> bool:
        return False

    # ------------------------------------------------------------------------------------ platform and diagnostics

    @property
    def description(self) -> str:
        return self._platform.description

    @property
    def log_path(self) -> str | None:
        return self._platform.log_path

    def keep_log(self) -> str | None:
        return self._platform.keep_log()

    @property
    def task_slots(self) -> int | None:
        return self._platform.task_slots

    def needed_task_slots(self, graph: JobGraph) -> int:
        return self._platform.needed_task_slots(graph)

    @property
    def shares_disk(self) -> bool:
        return self.pool.shares_disk

    @property
    def slot_pids(self) -> tuple[int, ...]:
        return self._diagnostics.slot_pids

    def thread_stacks(self, slot: int) -> list[ThreadStack]:
        return self._diagnostics.thread_stacks(slot)

    def sample_stacks(self, slot: int, plan: SamplingPlan) -> list[StackSample]:
        return self._diagnostics.sample_stacks(slot, plan)

    def recent_log(self, slot: int) -> SlotLogs | None:
        return self._diagnostics.recent_log(slot)

    def vitals(self, slot: int) -> SlotVitals:
        return self._diagnostics.vitals(slot)

    def queryable_states(self) -> tuple[QueryableState, ...]:
        return self._deployments.queryable

    def look_up(self, query: StateQuery) -> Future[list[bytes | None]]:
        return self._diagnostics.look_up(self._graph, query)

    # ------------------------------------------------------------------------------------------------- deployments

    def prepare(self, graph: JobGraph) -> None:
        self._deployments.prepare(graph)

    def preload(self, graph: JobGraph, plan: RestorePlan) -> None:
        self._deployments.preload(graph, plan)

    def deploy(self, deployment: Deployment) -> Failure | None:
        self._inbox.unreadable = None
        if deployment.graph is not self._graph:
            self._graph = deployment.graph
            self._lay_out(deployment.graph)
        return self._deployments.deploy(deployment)

    @abstractmethod
    def _lay_out(self, graph: JobGraph) -> None:
        """Note the graph of the next attempts. No attempt runs."""

    @property
    def _attempt(self) -> int:
        attempt = self._deployments.attempt
        assert attempt is not None, "deploy comes before the first epoch"
        return attempt

    # ------------------------------------------------------------------------------------------------------ epochs

    def _run_watched(self, order: OrderT, run: Callable[[OrderT], EpochResult[AckT]]) -> EpochResult[AckT]:
        """Run an epoch. An epoch that stalls is cancelled and fails."""
        failure = self._begin_savepoint(order)
        if failure is not None:
            return EpochResult(failure=failure)
        self._watch.begin(order.number, range(len(self.pool.slots)), time.monotonic())
        result = run(order.without_address())
        if self._watch.end() and result.failure is not None and self._calls.lost_slot() is None:
            return EpochResult(failure=Failure(self._watch.stall_error(order.number, self._graph)))
        return result

    def _begin_savepoint(self, order: SubtaskOrder) -> Failure | None:
        """Tell the slots where the savepoint of an epoch goes. What carries the blobs does not learn the address."""
        if order.savepoint is None:
            return None
        assert order.checkpoint_id is not None, "a savepoint is a checkpoint"
        return self._calls.ask_each(BeginSavepoint(order.checkpoint_id, order.savepoint))

    def cancel_epoch(self) -> None:
        """Make a running `run_epoch`, and every wait for the answer of a slot, return soon. Thread-safe."""
        self._calls.cancelled.set()
        self._cancel()

    @abstractmethod
    def _cancel(self) -> None:
        """Make a running `run_epoch` return soon: the job was cancelled. Thread-safe."""

    def _slot_reported(self, number: int, activity: SlotActivity) -> None:
        if not self._watch.observe(number, activity, time.monotonic()):
            return
        if self._waits_for_resources():
            self._watch.excuse(time.monotonic())
        else:
            self._epoch_stalled()

    @abstractmethod
    def _waits_for_resources(self) -> bool:
        """Return whether nothing moves because nothing runs yet. Thread-safe."""

    @abstractmethod
    def _epoch_stalled(self) -> None:
        """Make a running `run_epoch` return soon: what carries blobs between the slots hangs. Thread-safe."""

    @abstractmethod
    def _slot_lost(self, number: int) -> None:
        """Make a running `run_epoch` return soon: a slot was given up and will not answer. Thread-safe."""

    # ---------------------------------------------------------------------------------------- notifications and end

    def notify_completed(self, checkpoint_id: int) -> Failure | None:
        return self._calls.ask_each(Completed(checkpoint_id))

    def notify_aborted(self, checkpoint_id: int, failed: frozenset[SubtaskId] = frozenset()) -> Failure | None:
        hosted = subtasks_by_slot(self._graph, [slot.number for slot in self.pool.slots])
        asked = [number for number, subtasks in hosted.items() if not failed or not failed.issuperset(subtasks)]
        return self._calls.ask_all(dict.fromkeys(asked, Aborted(checkpoint_id, failed)))

    def close_subtasks(self) -> Failure | None:
        return self._calls.ask_each(CloseSubtasks())

    def shutdown(self) -> None:
        self._calls.ask_each(Discard(), timeout_s=_DISCARD_S)
        self.pool.shutdown()

    # ------------------------------------------------------------------------------------------------------ events

    def lost(self) -> Failure | None:
        error = self._calls.lost_slot()
        return self._inbox.unreadable if error is None else Failure(error, error.slot)

    def events(self) -> list[SlotEvent]:
        return self._inbox.take_all()

    def wait(self, timeout_s: float) -> None:
        self._inbox.wait(timeout_s)

    def wake(self) -> None:
        self._inbox.wake()

    @abstractmethod
    def _take_flow(self, event: FlowEvent) -> None:
        """Take an event of subtasks that run continuously."""


# ------------------------------------------------------------------------------------------------- epochs that stall


class EpochWatch:
    """Decides when a running epoch has stalled: no slot exchanges blobs with a task, and none is inside user code.

    A lost slot is noticed by its silence. What hangs here is something between the slots: a Spark task whose Python
    worker was stopped or blocked asks no slot for anything, and Spark itself waits for that worker for ever.
    Thread-safe.

    Args:
        timeout_s: How long an epoch may make no progress.
    """

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._epoch: int | None = None  # None while no epoch runs
        self._quiet_since = 0.0
        self._quiet_until: dict[int, float] = {}  # by slot: when it last reported that nothing happened
        self._reports: dict[int, SlotActivity] = {}  # the last one of each slot
        self._stalled = False

    def begin(self, epoch: int, slots: Collection[int], now: float) -> None:
        """Watch a new epoch that runs in these slots."""
        with self._lock:
            self._epoch = epoch
            self._quiet_since = now
            self._quiet_until = dict.fromkeys(slots, now)
            self._stalled = False

    def end(self) -> bool:
        """Stop watching; return whether the epoch had stalled."""
        with self._lock:
            self._epoch = None
            return self._stalled

    def observe(self, slot: int, activity: SlotActivity, now: float) -> bool:
        """Take in a slot's report; return True if it shows that the epoch has stalled. That happens once an epoch."""
        with self._lock:
            before = self._reports.get(slot)
            self._reports[slot] = activity
            if self._epoch is None or slot not in self._quiet_until:
                return False
            self._quiet_until[slot] = now
            if activity.in_user_code or before is None or activity.messages != before.messages:
                self._quiet_since = now
                return False
            # Every slot must have confirmed the silence: one that has not reported may be inside user code.
            if self._stalled or min(self._quiet_until.values()) - self._quiet_since < self._timeout_s:
                return False
            self._stalled = True
            return True

    def excuse(self, now: float) -> None:
        """Take back that the epoch has stalled: it waits for something that is known, and gets the full time again."""
        with self._lock:
            self._quiet_since = now
            self._stalled = False

    def unanswered(self, epoch: int, subtasks: Collection[SubtaskId]) -> list[SubtaskId]:
        """Return the subtasks whose part of the epoch no slot has reported as run to its end."""
        with self._lock:
            answered = {of for report in self._reports.values() if report.epoch == epoch for of in report.answered}
        return sorted(subtask for subtask in subtasks if subtask not in answered)

    def stall_error(self, epoch: int, graph: JobGraph) -> EpochStalledError:
        """Return the error of an epoch that has stalled, which names the subtasks that have not ended it."""
        waiting = [
            f"{graph.vertices[of.vertex].name!r} (subtask {of.subtask})"
            for of in self.unanswered(epoch, list(subtasks_of(graph)))
        ]
        return EpochStalledError(epoch, self._timeout_s, waiting)
