"""Runs epochs one by one: what each is ordered to do, and what its acknowledgements mean for the next one."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace

from ekorn.driver.checkpoints.cuts import Cut
from ekorn.driver.checkpoints.job_checkpoints import DueCheckpoint, JobCheckpoints
from ekorn.driver.loop.interrupts import AttemptFailed, check_cancelled
from ekorn.driver.loop.job import Job
from ekorn.driver.loop.pacing import EpochBudget, EpochReport
from ekorn.driver.output.job_output import JobOutput
from ekorn.engine.protocol import Engine, EpochResult, Failure, OrdersAhead, SetsAside
from ekorn.faults import point
from ekorn.graph.addresses import SubtaskId
from ekorn.graph.regions import in_regions_of
from ekorn.operators.epoch import Ack, EpochOrder

__all__ = ["CROWDED_BYTES", "Epoch", "EpochRunner", "least_by_group"]

CROWDED_BYTES = 16 << 20  # of blobs that wait in one subtask: sources read no more until there are fewer


@dataclass(frozen=True)
class Epoch:
    """An epoch that every subtask has acknowledged."""

    order: EpochOrder
    acks: list[Ack]
    report: EpochReport

    @property
    def finished(self) -> bool:
        """Whether every subtask has finished."""
        return all(ack.finished for ack in self.acks)


class EpochRunner:
    """Runs the epochs of one job. Epochs are numbered over all attempts."""

    def __init__(self, job: Job, engine: Engine, checkpoints: JobCheckpoints, output: JobOutput) -> None:
        self._job = job
        self._engine = engine
        self._checkpoints = checkpoints
        self._output = output
        self._number = 0
        self._backlog = False  # whether a source had more to read at the end of the last epoch
        self._group_watermarks: dict[str, int] = {}
        self._open_loops: frozenset[int] | None = None
        self._crowded = False  # more blobs wait in a subtask than one more checkpoint may add to
        self._holds_sources = False  # in the epochs that begin now
        self._failed: frozenset[SubtaskId] = frozenset()  # subtasks that the next attempt restarts
        self._ahead: deque[EpochOrder] = deque()  # orders whose marks are on their way already
        self._budget: EpochBudget | None = None  # of a further epoch that may begin meanwhile; None: none may
        self._most_ahead = job.settings.checkpoints.max_concurrent - 1
        if self._most_ahead > 0 and isinstance(engine, OrdersAhead):
            engine.next_order = self._next_order

    @property
    def next_number(self) -> int:
        """The number of the next epoch."""
        return self._number

    def begin_attempt(self) -> None:
        """Forget the watermarks and loops of the attempt before."""
        self._group_watermarks = {}
        self._open_loops = None
        self._crowded = False
        self._ahead.clear()

    @property
    def has_backlog(self) -> bool:
        """Whether a source had more to read at the end of the last epoch."""
        return self._backlog

    @property
    def has_ordered(self) -> bool:
        """Whether the marks of the next epoch are on their way already."""
        return bool(self._ahead)

    def fail(self, failure: Failure) -> frozenset[SubtaskId] | None:
        """Note a failure; return the subtasks that restart because of it and of those before; None for all of them."""
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

    def run(
        self,
        budget: EpochBudget,
        *,
        holds_sources: bool = False,
        suspends: bool = False,
        may_order_ahead: bool = False,
    ) -> Epoch:
        """Run one epoch. It carries a checkpoint if one is due.

        Args:
            budget: How much the sources may read.
            holds_sources: Where jobs run continuously: the sources read nothing behind this epoch until the next one.
            suspends: Where jobs run continuously: nothing happens behind this epoch until the next one.
            may_order_ahead: Where jobs run continuously: the marks of a checkpoint that comes due may follow before
                this epoch has ended. The next call runs that epoch.

        Raises:
            AttemptFailed: A subtask or a slot failed.
            Cancelled: The job was cancelled while the epoch ran.
        """
        self._budget = budget if may_order_ahead else None
        self._holds_sources = holds_sources or self._crowded
        try:
            return self._run(self._ahead.popleft() if self._ahead else self._ordered(budget, suspends=suspends))
        finally:
            self._budget = None

    def _ordered(self, budget: EpochBudget, *, suspends: bool) -> EpochOrder:
        due = self._start_due()
        order = replace(self._order(budget), suspends=suspends)
        if self._job.graph.settings.unaligned and not suspends:
            order = replace(order, overtakes_after_ms=self._overtakes_after_ms(due))
        return order if due is None else self._carrying(order, due)

    def _without_checkpoint(self, budget: EpochBudget) -> EpochOrder:
        order = self._order(budget)
        unaligned = self._job.graph.settings.unaligned
        return replace(order, overtakes_after_ms=self._overtakes_after_ms(None)) if unaligned else order

    def _start_due(self) -> DueCheckpoint | None:
        return self._checkpoints.start_due(Cut(self._number, self._output.records_read), backlog=self._backlog)

    def _carrying(self, order: EpochOrder, due: DueCheckpoint) -> EpochOrder:
        return replace(
            order,
            checkpoint_id=due.checkpoint_id,
            checkpoint_ms=self._job.clock.now_ms(),
            settled=self._job.subtasks - due.participants,
            savepoint=due.savepoint,
        )

    def _next_order(self) -> EpochOrder | None:
        """Return the order of a checkpoint that is due while the marks of another epoch are on their way.

        A requested savepoint waits for the end of that epoch: the slots know the place of one savepoint at a time.
        """
        if self._budget is None or self._checkpoints.is_requested or len(self._ahead) >= self._most_ahead:
            return None
        due = self._start_due()
        if due is None:
            return None
        self._ahead.append(self._carrying(self._order(self._budget), due))
        return self._ahead[-1]

    def _overtakes_after_ms(self, due: DueCheckpoint | None) -> int | None:
        """Return when the mark of the next epoch overtakes blobs, where jobs run continuously; None: never."""
        if due is None:
            return 0  # there is nothing to store, and the next checkpoint need not wait behind the mark
        # Flink: savepoints are always aligned.
        return None if due.savepoint is not None else self._job.settings.checkpoints.aligned_timeout_ms

    def run_draining(self, budget: EpochBudget) -> Epoch:
        """Run one epoch in which the sources end, although there is more to read. It carries no checkpoint."""
        return self._run(replace(self._order(budget), drain=True, holds_sources=False))

    def run_others(self, budget: EpochBudget, *, holds_sources: bool, within_ms: int) -> None:
        """Run one epoch of the regions that have not failed, for so long at most. It carries no checkpoint.

        The restart of a region must not wait for the marks of others: under back-pressure they take their time.

        Raises:
            AttemptFailed: Another subtask or slot failed.
            Cancelled: The job was cancelled while the epoch ran.
        """
        self._holds_sources = holds_sources or self._crowded
        assert isinstance(self._engine, SetsAside), "regions run apart there"
        order, started = self._without_checkpoint(budget), self._job.clock.monotonic()
        point("driver-epoch")
        result = self._engine.run_others(order, within_ms / 1000)
        if result is None:
            check_cancelled(self._job.requests)
            return
        self._end(order, result, started)

    def _order(self, budget: EpochBudget) -> EpochOrder:
        order = EpochOrder(
            number=self._number,
            max_records=budget.max_records_per_source_subtask,
            max_source_ms=budget.max_source_ms,
            max_source_bytes=budget.max_bytes,
            group_watermarks=self._group_watermarks,
            open_loops=self._open_loops,
            holds_sources=self._holds_sources,
        )
        self._number += 1
        return order

    def _run(self, order: EpochOrder) -> Epoch:
        started = self._job.clock.monotonic()
        point("driver-epoch")
        return self._end(order, self._engine.run_epoch(order), started)

    def _end(self, order: EpochOrder, result: EpochResult, started: float) -> Epoch:
        check_cancelled(self._job.requests)
        if result.failure is not None:
            if self.fail(result.failure) is not None and result.acks:
                # The other regions' part of the epoch stands, without its checkpoint.
                self._publish(replace(order, checkpoint_id=None), result.acks, 0.0)
            raise AttemptFailed(result.failure)
        self._group_watermarks = least_by_group(result.acks)
        self._open_loops = frozenset(loop for ack in result.acks for loop in ack.open_loops)
        if order.checkpoint_id is not None:
            self._checkpoints.barrier_passed(order.checkpoint_id)
        # Each checkpoint that overtakes draws the blobs on their way into the receivers, which makes room for more.
        self._crowded = any(ack.kept_bytes > CROWDED_BYTES for ack in result.acks)
        report = self._report(result.acks, (self._job.clock.monotonic() - started) * 1000)
        self._backlog = report.backlog
        self._publish(order, result.acks, report.wall_ms)
        return Epoch(order, result.acks, report)

    def _report(self, acks: list[Ack], wall_ms: float) -> EpochReport:
        sources = [ack for ack in acks if self._job.graph.vertices[ack.vertex].is_source]
        return EpochReport(
            wall_ms=wall_ms,
            records=sum(ack.records_in for ack in sources),
            backlog=any(ack.backlog for ack in sources),
            bytes_read=max(sum(ack.bytes_out for ack in sources), sum(ack.output_bytes for ack in acks)),
        )

    def _publish(self, order: EpochOrder, acks: list[Ack], wall_ms: float) -> None:
        self._output.show(order.number, acks, wall_ms)
        self._job.statistics.epoch(acks, wall_ms)
        if order.checkpoint_id is not None:
            self._checkpoints.taken_at(order.checkpoint_id, Cut(order.number, self._output.records_read))


def least_by_group(acks: list[Ack]) -> dict[str, int]:
    """Return the watermark of the slowest source of each alignment group. Idle and finished sources do not count."""
    least: dict[str, int] = {}
    for ack in acks:
        for group, watermark in ack.group_watermarks.items():
            least[group] = min(watermark, least.get(group, watermark))
    return least
