"""What an engine is: it hosts the subtasks of a job and runs one epoch at a time. The job loop drives it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from tamias.operators.epoch import Ack, EpochOrder
from tamias.slot.deployment import Deployment, SlotEvent


@dataclass(frozen=True)
class Failure:
    """Why an epoch, a deployment or a notification failed, and of whom it is known that they did."""

    error: BaseException
    slot: int | None = None
    subtasks: frozenset[tuple[int, int]] = frozenset()  # (vertex, index); none: nothing is known of anyone


@dataclass(frozen=True)
class EpochResult:
    """What came of an epoch: an answer from every subtask, or a failure.

    With a failure that names its subtasks come the answers of all that are in no region with them, whose epoch went
    well. After any other failure nothing is known, and everything starts anew.
    """

    acks: list[Ack] = field(default_factory=list)
    failure: Failure | None = None


class Engine(Protocol):
    """Hosts a job's subtasks. One thread uses it, except for `cancel_epoch` and `wake`, which any thread may call."""

    @property
    def in_process(self) -> bool:
        """Whether the subtasks run in the driver's own process and so share its memory."""

    @property
    def slot_pids(self) -> tuple[int, ...]:
        """The process ids of the slots, by slot number. Empty while no slot process runs."""

    def keep_log(self) -> str | None:
        """Return the path of the engine's own log for an error message, and keep the file when the driver ends.

        Returns None if the engine has no log, or if the log belongs to a session of the user.
        """

    def deploy(self, deployment: Deployment) -> Failure | None:
        """Start an attempt: fresh slots where one is gone, new subtasks in all of them, state restored, opened."""

    def run_epoch(self, order: EpochOrder) -> EpochResult:
        """Push one epoch through all levels."""

    def events(self) -> list[SlotEvent]:
        """What the slots reported since the last call."""

    def wait(self, timeout_s: float) -> None:
        """Sleep until a slot reports something, `wake` is called, or the time is up."""

    def wake(self) -> None:
        """End a `wait`. From any thread."""

    def lost(self) -> Failure | None:
        """A slot that is gone, found while no epoch runs: what it has not reported will never be."""

    def cancel_epoch(self) -> None:
        """Make a running `run_epoch` return soon. From any thread."""

    def notify_completed(self, checkpoint_id: int) -> Failure | None:
        """Tell all subtasks that a checkpoint is complete."""

    def notify_aborted(self, checkpoint_id: int) -> Failure | None:
        """Tell all subtasks that a checkpoint was given up."""

    def close_subtasks(self) -> Failure | None:
        """Close all subtasks in the order of the graph; what `close` raised, if anything."""

    def shutdown(self) -> None:
        """Release everything: processes, sockets, folders. Never raises for what is gone already."""
