"""The engine as the job loop needs it: to host the subtasks of a job, and to run one epoch at a time."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from ekorn.graph.addresses import SubtaskId
from ekorn.graph.job_graph import JobGraph
from ekorn.metrics.thread_stacks import ThreadStack
from ekorn.operators.epoch import Ack, EpochOrder
from ekorn.slot_protocol.deployment import Deployment
from ekorn.slot_protocol.diagnostics import SamplingPlan, SlotLogs, StackSample
from ekorn.slot_protocol.slot_events import SlotEvent
from ekorn.slot_protocol.state_query import QueryableState, StateQuery
from ekorn.state.snapshots import RestorePlan


@dataclass(frozen=True)
class Failure:
    """The reason why an epoch, a deployment or a notification failed.

    Attributes:
        error: What was raised.
        slot: The slot that failed, if one did.
        subtasks: The subtasks that failed. Empty: the state of every subtask is unknown.
        others: What other slots raised at the same time.
    """

    error: BaseException
    slot: int | None = None
    subtasks: frozenset[SubtaskId] = frozenset()
    others: tuple[Failure, ...] = ()


@dataclass(frozen=True)
class EpochResult:
    """The acknowledgements of an epoch's subtasks, or a failure.

    If the failure names its subtasks, the acknowledgements are those of all subtasks outside their regions: their
    epoch succeeded. Where jobs run continuously there are none then: the epoch goes on in the other regions, and what
    they acknowledge of it comes with their next acknowledgements. After any other failure the state of every subtask is
    unknown, and all restart.
    """

    acks: list[Ack] = field(default_factory=list)
    failure: Failure | None = None


@runtime_checkable
class OrdersAhead(Protocol):
    """An engine on which an epoch may begin before the one before it has ended.

    Attributes:
        next_order: Asked again and again while `run_epoch` waits for the marks of an epoch. If it returns an order, the
            marks of that epoch are sent at once, and `run_epoch` is called with the order next.
    """

    next_order: Callable[[], EpochOrder | None] | None


@runtime_checkable
class SetsAside(Protocol):
    """An engine on which the other regions of a job run while one that has failed waits for its restart."""

    def set_aside(self, subtasks: frozenset[SubtaskId]) -> None:
        """End the subtasks of regions that have failed. Epochs are those of the others until the next `deploy`."""

    def run_others(self, order: EpochOrder, within_s: float) -> EpochResult | None:
        """Run an epoch of the subtasks that were not set aside, for so long at most.

        Returns:
            The result; None if the time is up and the marks of the epoch are still on their way. They go on, and what
            subtasks acknowledge of the epoch comes with their next acknowledgements.
        """


class Engine(Protocol):
    """Hosts a job's subtasks. One thread uses it, except for what is said to be thread-safe."""

    @property
    def in_process(self) -> bool:
        """Whether the subtasks run in the driver's own process and so share its memory."""

    @property
    def mark_interval_ms(self) -> int | None:
        """The time between two epochs of jobs that run continuously; None: an epoch reads what its order allows."""

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

    @property
    def log_path(self) -> str | None:
        """The path of the engine's own log, for people to read while the job runs. None as with `keep_log`."""

    def keep_log(self) -> str | None:
        """Return the path of the engine's own log for an error message, and keep the file when the driver ends.

        Returns None if the engine has no log, or if the log belongs to a session of the user.
        """

    @property
    def shares_disk(self) -> bool:
        """Whether the slots see the driver's files."""

    @property
    def places(self) -> int | None:
        """How many places the cluster has now for what `needed_places` counts; None if that is not known."""

    def needed_places(self, graph: JobGraph) -> int:
        """Return how many places a graph needs, so that all of its parallel parts run at the same time."""

    def prepare(self, graph: JobGraph) -> None:
        """Make ready what a deployment of another graph needs, while the running attempt goes on.

        What an earlier call made ready and this graph does not need is released. One thread at a time calls it, beside
        the thread that uses the engine.

        Raises:
            EkornError: The graph cannot be deployed now: there are too few slots or places.
        """

    def preload(self, graph: JobGraph, plan: RestorePlan) -> None:
        """Read state that a deployment of the graph for which the engine is prepared will restore, or most of it.

        The running attempt goes on. State that cannot be read in advance is read by the deployment: that is no error.
        The next deployment, or the next `prepare`, drops what was read and is not used. Threads: as with `prepare`.
        """

    def deploy(self, deployment: Deployment) -> Failure | None:
        """Start an attempt: replace slots that are gone, then restore and open the subtasks in every slot.

        The graph may have another parallelism than that of the attempt before, which is over then.
        """

    @property
    def description(self) -> str:
        """What runs the job, for people to read: such as ``embedded Spark local[2]``."""

    def run_epoch(self, order: EpochOrder) -> EpochResult:
        """Push one epoch through all levels."""

    def events(self) -> list[SlotEvent]:
        """Return the events that the slots reported since the last call."""

    def wait(self, timeout_s: float) -> None:
        """Wait until a slot reports an event, `wake` is called, or the time is up."""

    def wake(self) -> None:
        """End a `wait`. Thread-safe."""

    def lost(self) -> Failure | None:
        """Return a failure if a slot is gone while no epoch runs: events it has not reported will never come."""

    def cancel_epoch(self) -> None:
        """Make a running `run_epoch` return soon. Thread-safe."""

    def notify_completed(self, checkpoint_id: int) -> Failure | None:
        """Tell all subtasks that a checkpoint is completed."""

    def notify_aborted(self, checkpoint_id: int, failed: frozenset[SubtaskId] = frozenset()) -> Failure | None:
        """Tell all subtasks that a checkpoint was aborted, except for those that have failed."""

    def queryable_states(self) -> tuple[QueryableState, ...]:
        """Return the queryable states that functions asked for when they were opened. Thread-safe."""

    def look_up(self, query: StateQuery) -> Future[list[bytes | None]]:
        """Return a future of the pickled value of each key of a queryable state, None for a key without. Thread-safe.

        The future raises `StateNotServed` if the slot of the subtask is gone, runs another attempt, or is busy for too
        long. It always ends.
        """

    def close_subtasks(self) -> Failure | None:
        """Close all subtasks; return the first error that `close` raised."""

    def shutdown(self) -> None:
        """Release processes, sockets and folders. Raises nothing for what is gone already."""
