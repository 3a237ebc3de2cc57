"""The procedure of a job that runs continuously: subtasks run all the time, and an epoch is a mark in the stream."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

from ekorn.driver.checkpoints.job_checkpoints import DueCheckpoint, JobCheckpoints
from ekorn.driver.loop.attempt_parts import AttemptParts
from ekorn.driver.loop.between_epochs import POLL_S, BetweenEpochs
from ekorn.driver.loop.epoch_tracker import Epoch, EpochTracker
from ekorn.driver.loop.interrupts import Cancelled, check_cancelled, raise_failure
from ekorn.driver.loop.job import Job
from ekorn.engine.protocol import ContinuousEngine, EpochResult
from ekorn.faults import point
from ekorn.graph.broadcast_first import awaited_by_sources
from ekorn.graph.job_graph import VertexId
from ekorn.operators.mark import MarkAck, MarkOrder

__all__ = ["CROWDED_BYTES", "ContinuousAttempts", "MarkPacer", "MarkRunner", "MarkWaits"]

CROWDED_BYTES = 16 << 20  # above this size of unprocessed blobs in one subtask, the sources read nothing
_FIRST_MARK_MS = 10


class ContinuousAttempts:
    """Runs the attempts of one job, one at a time. Regions that have not failed run on between two attempts."""

    def __init__(
        self, job: Job, engine: ContinuousEngine, parts: AttemptParts, marks: MarkRunner, waits: MarkWaits
    ) -> None:
        self._job = job
        self._engine = engine
        self._parts = parts
        self._marks = marks
        self._waits = waits

    def run(self, attempt: int) -> bool:
        """Run an attempt, as `AttemptRunner.run` says."""
        parts = self._parts
        region = parts.tracker.take_failed_region()
        if attempt > 0 and parts.elasticity.shrink_for_restart():
            region = None
        parts.deployer.deploy(attempt, region)
        self._marks.begin_attempt()
        pacer = MarkPacer(self._engine.mark_interval_ms)
        finished = False
        while True:
            parts.between.attend()
            stop = parts.between.stop
            if stop is not None and not self._marks.has_ordered and parts.stop.perform(stop):
                break
            rescales = stop is None and parts.rescaling.is_ready
            if rescales and not self._marks.has_ordered and parts.switch.perform():
                return False
            epoch = self._marks.run(may_order_ahead=stop is None and not rescales and not finished)
            parts.follow_epoch()
            finished = epoch.finished
            if self._marks.has_ordered:
                continue
            if finished:
                parts.final_checkpoint.take()
                break
            self._waits.for_mark(pacer.next_ms())
        parts.deployer.close_subtasks()
        return True

    def end_epoch_early(self) -> None:
        """Do nothing: an epoch is as short as the time between two marks."""

    def wait_for_restart(self, delay_ms: int) -> None:
        """Wait before the next attempt. The regions that have not failed run on meanwhile."""
        region, steady = self._parts.tracker.failed_region, self._job.steady
        if region is None:
            if self._job.requests.wait_for_cancel(delay_ms / 1000):
                raise Cancelled
            return
        until_ms = steady.now_ms() + delay_ms
        self._engine.set_aside(region)
        self._parts.checkpoints.tell_aborted(region)
        while (left_ms := until_ms - steady.now_ms()) > 0:
            self._marks.run_others(within_ms=left_ms)
            left_ms = until_ms - steady.now_ms()
            self._waits.while_regions_restart(min(left_ms, self._engine.mark_interval_ms))


class MarkRunner:
    """Orders the marks of one job. Where several checkpoints may be in flight, a mark may follow before the last one.

    The sources read nothing while the collect buffer is half full, or while too many blobs wait in a subtask. Some wait
    until a bounded broadcast input has ended. Marks do not overtake until then, so every record before a mark has been
    processed when all subtasks have acknowledged it.
    """

    def __init__(
        self,
        job: Job,
        engine: ContinuousEngine,
        *,
        tracker: EpochTracker,
        checkpoints: JobCheckpoints,
        between: BetweenEpochs,
    ) -> None:
        self._job = job
        self._engine = engine
        self._tracker = tracker
        self._checkpoints = checkpoints
        self._between = between
        self._crowded = False  # too many blobs wait in a subtask
        self._awaited: dict[VertexId, frozenset[VertexId]] = {}  # by source that waits: what has to finish before
        self._ahead: deque[MarkOrder] = deque()  # orders whose marks the engine has sent, and that `run` takes next
        self._most_ahead = job.settings.checkpoints.max_concurrent - 1
        self._may_order_ahead = False  # in the epoch that runs now
        if self._most_ahead > 0:
            engine.next_order = self._next_order

    def begin_attempt(self) -> None:
        """Forget the watermarks and the orders of the attempt before."""
        self._tracker.begin_attempt()
        self._crowded = False
        self._awaited = awaited_by_sources(self._job.graph)
        self._ahead.clear()

    @property
    def has_ordered(self) -> bool:
        """Whether the marks of the next epoch were sent already."""
        return bool(self._ahead)

    def run(self, *, may_order_ahead: bool = False) -> Epoch[MarkAck]:
        """Run one epoch. It carries a checkpoint if one is due.

        Args:
            may_order_ahead: If a checkpoint comes due before the epoch has ended, its marks may follow at once. The
                next call runs that epoch.

        Raises:
            AttemptFailed: A subtask or a slot failed.
            Cancelled: The job was cancelled while the epoch ran.
        """
        self._may_order_ahead = may_order_ahead
        try:
            return self._run(self._ahead.popleft() if self._ahead else self._due_order())
        finally:
            self._may_order_ahead = False

    def run_last(self) -> Epoch[MarkAck]:
        """Run one epoch after which nothing is read or emitted before the next epoch."""
        due = self._tracker.start_due()
        return self._run(self._tracker.carrying(replace(self._order(), suspends=True), due))

    def run_draining(self) -> Epoch[MarkAck]:
        """Run one epoch in which the sources end, although there is more to read. It carries no checkpoint."""
        return self._run(replace(self._order(), drain=True, pauses_sources=False))

    def run_others(self, *, within_ms: int) -> None:
        """Run one epoch of the regions that have not failed. It carries no checkpoint.

        The restart of a region does not wait for the marks of others, which take their time under back-pressure.

        Raises:
            AttemptFailed: Another subtask or slot failed.
            Cancelled: The job was cancelled while the epoch ran.
        """
        order, started = self._unaligned(self._order(), None), self._job.clock.monotonic()
        point("driver-epoch")
        result = self._engine.run_others(order, within_ms / 1000)
        if result is None:
            check_cancelled(self._job.requests)
            return
        self._end(order, result, started)

    def _due_order(self) -> MarkOrder:
        due = self._tracker.start_due()
        return self._tracker.carrying(self._unaligned(self._order(), due), due)

    def _order(self) -> MarkOrder:
        return MarkOrder(
            number=self._tracker.take_number(),
            group_watermarks=self._tracker.group_watermarks,
            pauses_sources=self._crowded or self._between.reader_is_behind,
            waiting=frozenset(self._awaited),
        )

    def _unaligned(self, order: MarkOrder, due: DueCheckpoint | None) -> MarkOrder:
        """Let the mark of an order overtake blobs, in a job with unaligned checkpoints."""
        if not self._job.graph.settings.unaligned or self._awaited:
            return order
        if due is None:
            after_ms: int | None = 0  # no blob has to be stored, and the next checkpoint need not wait for the mark
        elif due.savepoint is not None:
            after_ms = None  # Flink: savepoints are always aligned
        else:
            after_ms = self._job.settings.checkpoints.aligned_timeout_ms
        return replace(order, overtakes_after_ms=after_ms)

    def _next_order(self) -> MarkOrder | None:
        """Return the order of a checkpoint that has come due while the marks of another epoch are in flight.

        A requested savepoint waits for the end of that epoch: a slot knows the directory of one savepoint at a time.
        """
        if not self._may_order_ahead or self._checkpoints.is_requested or len(self._ahead) >= self._most_ahead:
            return None
        due = self._tracker.start_due()
        if due is None:
            return None
        self._ahead.append(self._tracker.carrying(self._order(), due))
        return self._ahead[-1]

    def _run(self, order: MarkOrder) -> Epoch[MarkAck]:
        started = self._job.clock.monotonic()
        point("driver-epoch")
        return self._end(order, self._engine.run_epoch(order), started)

    def _end(self, order: MarkOrder, result: EpochResult[MarkAck], started: float) -> Epoch[MarkAck]:
        epoch = self._tracker.end(order, result, started)
        # A mark that overtakes moves blobs from the queues into the receivers, which makes room for more of them.
        self._crowded = any(ack.kept_bytes > CROWDED_BYTES for ack in epoch.acks)
        if self._awaited:
            running = {ack.vertex for ack in epoch.acks if not ack.finished}
            self._awaited = {source: above for source, above in self._awaited.items() if above & running}
        return epoch


class MarkPacer:
    """Decides the time between two marks. The first marks follow soon, so that a short job ends soon.

    >>> pacer = MarkPacer(200)
    >>> [pacer.next_ms() for _ in range(7)]
    [10, 20, 40, 80, 160, 200, 200]
    """

    def __init__(self, interval_ms: int) -> None:
        self._interval_ms = interval_ms
        self._wait_ms = _FIRST_MARK_MS

    def next_ms(self) -> int:
        """Return the time until the next mark."""
        wait_ms = min(self._wait_ms, self._interval_ms)
        self._wait_ms = 2 * wait_ms  # bounded, since `wait_ms` is
        return wait_ms


class MarkWaits:
    """The waits between two epochs that only this mode has."""

    def __init__(self, job: Job, engine: ContinuousEngine, checkpoints: JobCheckpoints, between: BetweenEpochs) -> None:
        self._job = job
        self._engine = engine
        self._checkpoints = checkpoints
        self._between = between

    def for_mark(self, interval_ms: int) -> None:
        """Wait until the next mark is to be sent. A checkpoint that is due or the end of the attempt ends the wait."""
        steady = self._job.steady
        until_ms = steady.now_ms() + interval_ms
        while True:
            self._between.attend()
            now_ms = steady.now_ms()
            due_ms = self._checkpoints.next_due_ms(now_ms)
            left_ms = (until_ms if due_ms is None else min(until_ms, due_ms)) - now_ms
            if left_ms <= 0 or self._between.attempt_is_to_end:
                return
            raise_failure(self._engine.lost())
            self._engine.wait(min(left_ms / 1000, POLL_S))

    def while_regions_restart(self, wait_ms: int) -> None:
        """Wait while some regions run and others wait for their restart. Requests wait for the restart too.

        Raises:
            AttemptFailed: A subtask or slot of the regions that run has failed.
        """
        steady = self._job.steady
        until_ms = steady.now_ms() + wait_ms
        while (left_ms := until_ms - steady.now_ms()) > 0:
            check_cancelled(self._job.requests)
            self._checkpoints.attend()
            raise_failure(self._engine.lost())
            self._engine.wait(min(left_ms / 1000, POLL_S))
