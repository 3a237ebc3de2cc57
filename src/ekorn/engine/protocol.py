"""The engine as the job loop sees it: what every engine offers, and what each of the two modes adds.

An engine hosts the subtasks of a job. An `EpochEngine` runs one pass of input at a time. On a `ContinuousEngine` the
subtasks run all the time, and an epoch is a mark in the stream. `AnyEngine` is one of the two; the driver chooses its
procedures by `execution` when it has started the engine.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Generic, Literal, Protocol, TypeAlias, TypeVar

from ekorn.graph.addresses import SubtaskId
from ekorn.graph.job_graph import JobGraph
from ekorn.metrics.thread_stacks import ThreadStack
from ekorn.operators.epoch import Ack, EpochAck, EpochOrder, SubtaskOrder
from ekorn.operators.mark import MarkAck, MarkOrder
from ekorn.slot_protocol.deployment import Deployment
from ekorn.slot_protocol.diagnostics import SamplingPlan, SlotLogs, SlotVitals, StackSample
from ekorn.slot_protocol.slot_events import SlotEvent
from ekorn.slot_protocol.state_query import QueryableState, StateQuery
from ekorn.state.snapshots import RestorePlan

AckT = TypeVar("AckT", bound=Ack)
OrderT = TypeVar("OrderT", bound=SubtaskOrder)


@dataclass(frozen=True)
class Failure:
    """The reason why an epoch, a deployment or a notification failed.

    Attributes:
        error: The exception.
        slot: The slot that failed, if one did.
        subtasks: The subtasks that failed. Empty: the state of every subtask is unknown.
        others: The failures of other slots at the same time.
    """

    error: BaseException
    slot: int | None = None
    subtasks: frozenset[SubtaskId] = frozenset()
    others: tuple[Failure, ...] = ()


@dataclass(frozen=True)
class EpochResult(Generic[AckT]):
    """The acknowledgements of an epoch, or a failure.

    A failure without subtasks leaves the state of every subtask unknown, and all of them restart. After a failure that
    names its subtasks, only their regions restart; `acks` then has what the mode says about the other regions.
    """

    acks: list[AckT] = field(default_factory=list)
    failure: Failure | None = None


class Engine(Protocol):
    """What every engine offers. One thread uses an engine, except for the methods marked as thread-safe."""

    @property
    def in_process(self) -> bool:
        """Whether the subtasks run in the driver's own process and so share its memory."""

    @property
    def slot_pids(self) -> tuple[int, ...]:
        """The process ids of the slots, by slot number. Empty while no slot process runs."""

    def thread_stacks(self, slot: int) -> list[ThreadStack]:
        """Return the stacks of a slot's threads. Thread-safe.

        Raises:
            SlotLostError: The slot does not answer.
        """

    def sample_stacks(self, slot: int, plan: SamplingPlan) -> list[StackSample]:
        """Sample the stacks of a slot's subtasks for as long as the plan says. Thread-safe.

        Raises:
            SlotLostError: The slot does not answer.
        """

    def recent_log(self, slot: int) -> SlotLogs | None:
        """Return the last lines of a slot's log; None if it has no log of its own. Thread-safe.

        Raises:
            SlotLostError: The slot does not answer.
        """

    def vitals(self, slot: int) -> SlotVitals:
        """Return what the process of a slot uses. Thread-safe.

        Raises:
            SlotLostError: The slot does not answer.
        """

    @property
    def log_path(self) -> str | None:
        """The path of the engine's own log while the job runs. None in the same cases as for `keep_log`."""

    def keep_log(self) -> str | None:
        """Return the path of the engine's own log for an error message, and keep the file when the driver ends.

        Returns None if the engine has no log, or if the log belongs to a session of the user.
        """

    @property
    def shares_disk(self) -> bool:
        """Whether the slots see the driver's files."""

    @property
    def task_slots(self) -> int | None:
        """The number of tasks that the cluster can run at the same time; None if that is not known."""

    def needed_task_slots(self, graph: JobGraph) -> int:
        """Return how many of the `task_slots` a graph needs, so that all of its parallel parts run at the same time."""

    def prepare(self, graph: JobGraph) -> None:
        """Start the slots that a deployment of another graph needs, while the running attempt goes on.

        Slots of an earlier call that this graph does not need are released. One thread at a time may call this method,
        concurrently with the thread that uses the engine.

        Raises:
            EkornError: The graph cannot be deployed now: there are too few slots or task slots.
        """

    def preload(self, graph: JobGraph, plan: RestorePlan) -> None:
        """Read state into the prepared slots before the deployment that restores it, while the running attempt goes on.

        The deployment reads the state that could not be read in advance. The next deployment or the next `prepare`
        drops state that was read and is not used. The rule for threads is that of `prepare`.
        """

    def deploy(self, deployment: Deployment) -> Failure | None:
        """Start an attempt: replace slots that are gone, then restore and open the subtasks in every slot.

        The graph may have another parallelism than that of the attempt before.
        """

    @property
    def description(self) -> str:
        """The engine's name for people to read, such as ``embedded Spark local[2]``."""

    def events(self) -> list[SlotEvent]:
        """Return the events that the slots reported since the last call."""

    def wait(self, timeout_s: float) -> None:
        """Wait for an event of a slot or a call of `wake`, until the timeout. A negative timeout returns at once."""

    def wake(self) -> None:
        """End a `wait`. Thread-safe."""

    def lost(self) -> Failure | None:
        """Return a failure if a slot is gone while no epoch runs, so that its missing events will never come."""

    def cancel_epoch(self) -> None:
        """Make a running `run_epoch` return soon. Thread-safe."""

    def notify_completed(self, checkpoint_id: int) -> Failure | None:
        """Tell all subtasks that a checkpoint is completed."""

    def notify_aborted(self, checkpoint_id: int, failed: frozenset[SubtaskId] = frozenset()) -> Failure | None:
        """Tell all subtasks that a checkpoint was aborted, except for those that have failed."""

    def queryable_states(self) -> tuple[QueryableState, ...]:
        """Return the queryable states that functions asked for when they were opened. Thread-safe."""

    def look_up(self, query: StateQuery) -> Future[list[bytes | None]]:
        """Look up keys of a queryable state; the future has the pickled value of each key, or None. Thread-safe.

        The future raises `StateNotServed` if the slot of the subtask is gone, runs another attempt, or is busy for too
        long. It always ends.
        """

    def close_subtasks(self) -> Failure | None:
        """Close all subtasks; return the first error that `close` raised."""

    def shutdown(self) -> None:
        """Release processes, sockets and folders. Raises nothing for what is gone already."""


class EpochEngine(Engine, Protocol):
    """An engine on which an epoch is one pass of input. Between two epochs no user code runs."""

    @property
    def execution(self) -> Literal["epochs"]:
        """The mode of the engine."""

    def cut_epoch(self, number: int) -> None:
        """Let sources that still read in an epoch, or in one before it, end it now: the job stops. Thread-safe."""

    def run_epoch(self, order: EpochOrder) -> EpochResult[EpochAck]:
        """Push the input of one epoch through all levels.

        After a failure that names its subtasks, the result has the acknowledgements of all other regions: their epoch
        has succeeded.
        """


class ContinuousEngine(Engine, Protocol):
    """An engine on which subtasks run all the time, and an epoch ends when its mark has passed through all of them.

    Attributes:
        next_order: Called repeatedly while `run_epoch` waits for marks. If it returns an order, the engine sends the
            marks of that epoch at once. The driver passes the same order to its next call of `run_epoch`.
    """

    next_order: Callable[[], MarkOrder | None] | None

    @property
    def execution(self) -> Literal["continuous"]:
        """The mode of the engine."""

    @property
    def mark_interval_ms(self) -> int:
        """The time between the marks of two epochs."""

    def run_epoch(self, order: MarkOrder) -> EpochResult[MarkAck]:
        """Send the mark of an epoch, and wait until it has passed through every subtask that runs.

        After a failure that names its subtasks, the result has no acknowledgements: the marks go on in the other
        regions, and their acknowledgements of this epoch come with those of the next one.
        """

    def set_aside(self, subtasks: frozenset[SubtaskId]) -> None:
        """End the subtasks of failed regions. Epochs concern the other subtasks alone until the next `deploy`."""

    def run_others(self, order: MarkOrder, within_s: float) -> EpochResult[MarkAck] | None:
        """Run an epoch of the subtasks that were not set aside.

        Returns:
            The result; None if the time was up before the mark had passed through all subtasks. The mark goes on, and
            the acknowledgements of this epoch come with those of the next one.
        """


AnyEngine: TypeAlias = EpochEngine | ContinuousEngine
