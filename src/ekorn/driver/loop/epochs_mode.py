"""The procedure of a job that runs in epochs: an epoch reads a budget of input, and nothing runs between two epochs."""

from __future__ import annotations

import logging
from dataclasses import replace

from ekorn.driver.checkpoints.job_checkpoints import JobCheckpoints
from ekorn.driver.loop.attempt_parts import AttemptParts
from ekorn.driver.loop.between_epochs import BetweenEpochs
from ekorn.driver.loop.epoch_tracker import Epoch, EpochTracker
from ekorn.driver.loop.interrupts import Cancelled
from ekorn.driver.loop.job import Job
from ekorn.driver.loop.pacing import EpochPacer, EpochReport, PacingSettings
from ekorn.engine.protocol import EpochEngine
from ekorn.faults import point
from ekorn.operators.epoch import EpochAck, EpochOrder

__all__ = ["EpochAttempts", "EpochRunner", "EpochWaits"]

_log = logging.getLogger(__name__)


class EpochAttempts:
    """Runs the attempts of one job, one at a time."""

    def __init__(self, job: Job, parts: AttemptParts, epochs: EpochRunner, waits: EpochWaits) -> None:
        self._job = job
        self._parts = parts
        self._epochs = epochs
        self._waits = waits
        if job.settings.checkpoints.unaligned:
            _log.info(
                "job %s has unaligned checkpoints enabled but runs in epochs: no record is in flight at the end of "
                "an epoch, so its checkpoints are the same as without",
                job.name,
            )

    def run(self, attempt: int) -> bool:
        """Run an attempt, as `AttemptRunner.run` says."""
        parts = self._parts
        parts.deployer.deploy(attempt, parts.tracker.take_failed_region())
        self._epochs.begin_attempt()
        while True:
            parts.between.attend()
            self._waits.for_reader()
            stop = parts.between.stop
            if stop is not None and parts.stop.perform(stop):
                break
            if stop is None and parts.rescaling.is_ready and parts.switch.perform():
                return False
            epoch = self._epochs.run()
            parts.follow_epoch()
            if epoch.finished:
                parts.final_checkpoint.take()
                break
            parts.between.idle(self._epochs.pace_next(epoch), epoch.acks)
            if epoch.order.checkpoint_id is not None:
                self._waits.for_checkpoint(epoch.order.checkpoint_id)
        parts.deployer.close_subtasks()
        return True

    def end_epoch_early(self) -> None:
        """Let the sources end the running epoch, or the one that is about to start, as `AttemptRunner` says."""
        self._epochs.cut_short()

    def wait_for_restart(self, delay_ms: int) -> None:
        """Wait before the next attempt. No subtask runs meanwhile."""
        region = self._parts.tracker.failed_region
        if region is not None:
            self._parts.checkpoints.tell_aborted(region)
        if self._job.requests.wait_for_cancel(delay_ms / 1000):
            raise Cancelled


class EpochRunner:
    """Runs the epochs of one job. Each reads as much as the pacer allows."""

    def __init__(self, job: Job, engine: EpochEngine, tracker: EpochTracker) -> None:
        self._job = job
        self._engine = engine
        self._tracker = tracker
        self._open_loops: frozenset[int] | None = None
        self._pacer = EpochPacer(_pacing(job))

    def begin_attempt(self) -> None:
        """Forget the pace, the watermarks and the feedback loops of the attempt before."""
        self._tracker.begin_attempt()
        self._open_loops = None
        self._pacer = EpochPacer(_pacing(self._job))

    def run(self) -> Epoch[EpochAck]:
        """Run one epoch. It carries a checkpoint if one is due.

        Raises:
            AttemptFailed: A subtask or a slot failed.
            Cancelled: The job was cancelled while the epoch ran.
        """
        due = self._tracker.start_due()
        return self._run(self._tracker.carrying(self._order(), due))

    def run_last(self) -> Epoch[EpochAck]:
        """Run one epoch in which no source reads. Nothing is emitted before the next epoch, as always in this mode."""
        due = self._tracker.start_due()
        return self._run(self._tracker.carrying(replace(self._order(), max_records=0), due))

    def cut_short(self) -> None:
        """Let the sources end the running epoch, or the next one, before its budget is spent. Thread-safe."""
        self._engine.cut_epoch(self._tracker.next_number)

    def run_draining(self) -> Epoch[EpochAck]:
        """Run one epoch in which the sources end, although there is more to read. It carries no checkpoint."""
        return self._run(self._order(drain=True))

    def pace_next(self, epoch: Epoch[EpochAck]) -> int:
        """Choose the budget of the next epoch by the last one; return how long to wait before it, in milliseconds."""
        sources = self._tracker.sources_of(epoch.acks)
        report = EpochReport(
            wall_ms=epoch.wall_ms,
            records=sum(ack.records_in for ack in sources),
            backlog=any(ack.backlog for ack in sources),
            bytes_read=max(sum(ack.bytes_out for ack in sources), sum(ack.output_bytes for ack in epoch.acks)),
        )
        return self._pacer.observe(report).idle_wait_ms

    def _order(self, *, drain: bool = False) -> EpochOrder:
        budget = self._pacer.pace.budget
        return EpochOrder(
            number=self._tracker.take_number(),
            group_watermarks=self._tracker.group_watermarks,
            drain=drain,
            max_records=budget.max_records_per_source_subtask,
            max_source_ms=budget.max_source_ms,
            max_source_bytes=budget.max_bytes,
            open_loops=self._open_loops,
        )

    def _run(self, order: EpochOrder) -> Epoch[EpochAck]:
        started = self._job.clock.monotonic()
        point("driver-epoch")
        epoch = self._tracker.end(order, self._engine.run_epoch(order), started)
        self._open_loops = frozenset(loop for ack in epoch.acks for loop in ack.open_loops)
        return epoch


class EpochWaits:
    """The waits between two epochs that only this mode has."""

    def __init__(self, job: Job, engine: EpochEngine, checkpoints: JobCheckpoints, between: BetweenEpochs) -> None:
        self._job = job
        self._engine = engine
        self._checkpoints = checkpoints
        self._between = between

    def for_reader(self) -> None:
        """Wait while the collect buffer is full, unless the attempt is to end or a checkpoint was requested."""
        collected, between, checkpoints = self._job.results.collected, self._between, self._checkpoints
        most_bytes = self._job.settings.collect_buffer_bytes
        between.wait_until(
            lambda: collected.size_bytes < most_bytes or between.attempt_is_to_end or checkpoints.is_requested
        )

    def for_checkpoint(self, checkpoint_id: int) -> None:
        """Wait for a checkpoint to complete if that keeps the next one on time."""
        started = self._job.clock.monotonic()
        for _ in range(len(self._job.subtasks) + 1):  # the report of each subtask ends a wait
            self._between.attend()
            left_s = self._checkpoints.patience_ms() / 1000 - (self._job.clock.monotonic() - started)
            if checkpoint_id not in self._checkpoints.pending_ids or left_s <= 0:
                return
            self._engine.wait(left_s)


def _pacing(job: Job) -> PacingSettings:
    settings = job.settings
    return PacingSettings(
        target_ms=settings.epoch_target_ms,
        latency_target_ms=None if job.graph.settings.batch else settings.epoch_latency_target_ms,
        max_bytes=settings.epoch_source_bytes,
        checkpoint_interval_ms=settings.checkpoints.interval_ms,
    )
