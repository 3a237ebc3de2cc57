"""The part of an epoch that both modes share: its number, the checkpoint that it carries, and its acknowledgements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

from ekorn.driver.checkpoints.checkpoint_positions import CheckpointPosition
from ekorn.driver.checkpoints.job_checkpoints import DueCheckpoint, JobCheckpoints
from ekorn.driver.loop.interrupts import AttemptFailed, check_cancelled
from ekorn.driver.loop.job import Job
from ekorn.driver.output.job_output import JobOutput
from ekorn.engine.protocol import AckT, EpochResult, Failure, OrderT
from ekorn.graph.addresses import SubtaskId
from ekorn.graph.regions import in_regions_of
from ekorn.operators.epoch import Ack, SubtaskOrder

__all__ = ["Epoch", "EpochTracker", "RunsEpochs", "least_by_group"]

Ack_co = TypeVar("Ack_co", bound=Ack, covariant=True)


@dataclass(frozen=True)
class Epoch(Generic[Ack_co]):
    """An epoch that every subtask has acknowledged.

    Attributes:
        wall_ms: The time from its start to its last acknowledgement.
    """

    order: SubtaskOrder
    acks: Sequence[Ack_co]
    wall_ms: float

    @property
    def finished(self) -> bool:
        """Whether every subtask has finished."""
        return all(ack.finished for ack in self.acks)


class RunsEpochs(Protocol):
    """Runs single epochs in the mode of the job, for the procedures that end an attempt.

    Every method raises `AttemptFailed` if a subtask or a slot failed, and `Cancelled` if the job was cancelled.
    """

    def run(self) -> Epoch[Ack]:
        """Run one epoch. It carries a checkpoint if one is due."""

    def run_last(self) -> Epoch[Ack]:
        """Run one epoch as `run` does. After it nothing is read or emitted before the next epoch."""

    def run_draining(self) -> Epoch[Ack]:
        """Run one epoch in which the sources end, although there is more to read. It carries no checkpoint."""


class EpochTracker:
    """Numbers the epochs of a job over all attempts, and takes in the result of each.

    Attributes:
        group_watermarks: The lowest watermark of each alignment group at the end of the last epoch.
        has_backlog: Whether a source had more to read at the end of the last epoch.
    """

    def __init__(self, job: Job, checkpoints: JobCheckpoints, output: JobOutput) -> None:
        self._job = job
        self._checkpoints = checkpoints
        self._output = output
        self._number = 0
        self._failed: frozenset[SubtaskId] = frozenset()  # subtasks that the next attempt restarts
        self.group_watermarks: dict[str, int] = {}
        self.has_backlog = False

    def begin_attempt(self) -> None:
        """Forget the watermarks of the attempt before."""
        self.group_watermarks = {}

    # ------------------------------------------------------------------------------------------ the start of an epoch

    @property
    def next_number(self) -> int:
        """The number of the next epoch."""
        return self._number

    def take_number(self) -> int:
        """Return the number of an epoch that starts now."""
        self._number += 1
        return self._number - 1

    def start_due(self) -> DueCheckpoint | None:
        """Start the checkpoint that the next epoch carries, if one is due."""
        before = CheckpointPosition(self._number, self._output.records_read)
        return self._checkpoints.start_due(before, backlog=self.has_backlog)

    def carrying(self, order: OrderT, due: DueCheckpoint | None) -> OrderT:
        """Return an order with the checkpoint that the epoch carries, if it carries one."""
        if due is None:
            return order
        return replace(
            order,
            checkpoint_id=due.checkpoint_id,
            checkpoint_ms=self._job.clock.now_ms(),
            settled=self._job.subtasks - due.participants,
            savepoint=due.savepoint,
        )

    # -------------------------------------------------------------------------------------------- the end of an epoch

    def end(self, order: SubtaskOrder, result: EpochResult[AckT], started: float) -> Epoch[AckT]:
        """Take in the result of an epoch.

        Args:
            order: The order of the epoch.
            result: The answer of the engine.
            started: When the epoch started, on the monotonic clock.

        Raises:
            AttemptFailed: A subtask, a slot or too many checkpoints failed.
            Cancelled: The job was cancelled while the epoch ran.
        """
        check_cancelled(self._job.requests)
        if result.failure is not None:
            if self.fail(result.failure) is not None and result.acks:
                # The epoch has succeeded in the other regions, without its checkpoint.
                self._publish(replace(order, checkpoint_id=None), result.acks, 0.0)
            raise AttemptFailed(result.failure)
        self.group_watermarks = least_by_group(result.acks)
        if order.checkpoint_id is not None:
            self._checkpoints.barrier_passed(order.checkpoint_id)
        wall_ms = (self._job.clock.monotonic() - started) * 1000
        self.has_backlog = any(ack.backlog for ack in self.sources_of(result.acks))
        self._publish(order, result.acks, wall_ms)
        return Epoch(order, result.acks, wall_ms)

    def sources_of(self, acks: Iterable[AckT]) -> list[AckT]:
        """Return the acknowledgements of source subtasks."""
        return [ack for ack in acks if self._job.graph.vertices[ack.vertex].is_source]

    def _publish(self, order: SubtaskOrder, acks: Sequence[Ack], wall_ms: float) -> None:
        self._output.show(order.number, acks, wall_ms)
        self._job.statistics.epoch(acks, wall_ms)
        if order.checkpoint_id is not None:
            taken_at = CheckpointPosition(order.number, self._output.records_read)
            self._checkpoints.taken_at(order.checkpoint_id, taken_at)

    # --------------------------------------------------------------------------------------------------- failed regions

    def fail(self, failure: Failure) -> frozenset[SubtaskId] | None:
        """Note a failure; return `failed_region` as it is now."""
        self._failed |= in_regions_of(self._job.graph, failure.subtasks) or self._job.subtasks
        return self.failed_region

    @property
    def failed_region(self) -> frozenset[SubtaskId] | None:
        """The subtasks that the next attempt restarts; None for all subtasks."""
        return self._failed if self._failed and self._failed != self._job.subtasks else None

    def take_failed_region(self) -> frozenset[SubtaskId] | None:
        """Return and forget `failed_region`."""
        region, self._failed = self.failed_region, frozenset()
        return region


def least_by_group(acks: Iterable[Ack]) -> dict[str, int]:
    """Return the watermark of the slowest source of each alignment group. Idle and finished sources do not count."""
    least: dict[str, int] = {}
    for ack in acks:
        for group, watermark in ack.group_watermarks.items():
            least[group] = min(watermark, least.get(group, watermark))
    return least
