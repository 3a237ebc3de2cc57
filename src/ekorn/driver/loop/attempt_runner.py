"""Runs one attempt of a job: deploys its subtasks, then runs epochs until all of them have finished."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

from ekorn.checkpoint.restore_point import RestorePoint
from ekorn.driver.checkpoints.final_checkpoint import FinalCheckpoint
from ekorn.driver.checkpoints.job_checkpoints import JobCheckpoints
from ekorn.driver.checkpoints.retained_checkpoints import RetainedCheckpoints
from ekorn.driver.checkpoints.savepoint_stop import SavepointStop
from ekorn.driver.loop.between_epochs import BetweenEpochs
from ekorn.driver.loop.epoch_runner import EpochRunner
from ekorn.driver.loop.interrupts import AttemptFailed, Cancelled, check_cancelled, raise_failure
from ekorn.driver.loop.job import Job
from ekorn.driver.loop.pacing import EpochPacer, MarkPacer, PacingSettings
from ekorn.driver.output.job_output import JobOutput
from ekorn.driver.recovery.job_recovery import JobRecovery
from ekorn.driver.rescaling.elasticity import Elasticity
from ekorn.driver.rescaling.job_rescaling import Rescaling
from ekorn.driver.rescaling.rescale_switch import RescaleSwitch
from ekorn.driver.statistics.job_metrics import JobMetrics
from ekorn.engine.protocol import Engine, Failure, SetsAside
from ekorn.faults import point
from ekorn.functions.results.job_status import JobStatus
from ekorn.graph.addresses import SubtaskId
from ekorn.slot_protocol.deployment import Deployment
from ekorn.state.snapshots import RestorePlan

_log = logging.getLogger(__name__)

__all__ = ["AttemptRunner"]


@dataclass
class AttemptRunner:
    """Runs the attempts of one job, one at a time.

    Attributes:
        slot_directory: The checkpoint directory that slots write to; None if their state travels to the driver.
        term: The number of this driver among those of the job.
    """

    job: Job
    engine: Engine
    slot_directory: str | None
    term: int
    recovery: JobRecovery
    retained: RetainedCheckpoints
    checkpoints: JobCheckpoints
    output: JobOutput
    metrics: JobMetrics
    epochs: EpochRunner
    between: BetweenEpochs
    stop: SavepointStop
    final_checkpoint: FinalCheckpoint
    rescaling: Rescaling
    switch: RescaleSwitch
    elasticity: Elasticity

    def run(self, attempt: int) -> bool:
        """Run an attempt to the end of the job's input, or until the job is stopped with a savepoint or rescaled.

        Returns:
            Whether the job is over; else the next attempt goes on at another parallelism.

        Raises:
            AttemptFailed: A subtask, a slot or too many checkpoints failed.
            Cancelled: The job was cancelled.
        """
        check_cancelled(self.job.requests)
        region = self.epochs.take_failed_region()
        if attempt > 0 and self.elasticity.shrink_for_restart():
            region = None
        self._deploy(attempt, region)
        self.output.begin_attempt(region)
        self.epochs.begin_attempt()
        self._publish_running(attempt)
        pacer = EpochPacer(self._pacing())
        marks = None if self.engine.mark_interval_ms is None else MarkPacer(self.engine.mark_interval_ms)
        finished = False
        while True:
            self.between.attend()
            if marks is None:
                self.between.wait_for_reader()  # else marks go on, and the sources are held below
            stop = self.between.stop
            if stop is not None and not self.epochs.has_ordered and self.stop.perform(stop, pacer.pace.budget):
                break
            rescales = stop is None and self.rescaling.is_ready
            if rescales and not self.epochs.has_ordered and self.switch.perform(pacer.pace.budget):
                return False
            may_order_ahead = stop is None and not rescales and not finished
            epoch = self.epochs.run(
                pacer.pace.budget, holds_sources=self.between.reader_is_behind, may_order_ahead=may_order_ahead
            )
            self.rescaling.settle()
            self.elasticity.attend(has_backlog=self.epochs.has_backlog)
            finished = epoch.finished
            if self.epochs.has_ordered:
                continue
            if finished:
                self.final_checkpoint.take(EpochPacer(self._pacing()).pace.budget)
                break
            if marks is not None:
                self.between.wait_for_mark(marks.next_ms())
                continue
            self.between.idle(pacer.observe(epoch.report).idle_wait_ms, epoch.acks)
            if epoch.order.checkpoint_id is not None:
                self.between.wait_for_checkpoint(epoch.order.checkpoint_id)
        point("driver-close")
        raise_failure(self.engine.close_subtasks())
        return True

    def wait_for_restart(self, delay_ms: int) -> None:
        """Wait before the next attempt. Regions that have not failed run on meanwhile, where jobs run continuously.

        Raises:
            AttemptFailed: Another region failed meanwhile.
            Cancelled: The job was cancelled meanwhile.
        """
        region, steady = self.epochs.failed_region, self.job.steady
        until_ms = steady.now_ms() + delay_ms
        if region is None or not isinstance(self.engine, SetsAside):
            if region is not None:
                self.checkpoints.tell_aborted(region)
            if self.job.requests.wait_for_cancel(delay_ms / 1000):
                raise Cancelled
            return
        self.engine.set_aside(region)
        self.checkpoints.tell_aborted(region)
        budget = EpochPacer(self._pacing()).pace.budget
        while (left_ms := until_ms - steady.now_ms()) > 0:
            self.epochs.run_others(budget, holds_sources=self.between.reader_is_behind, within_ms=left_ms)
            left_ms = until_ms - steady.now_ms()
            self.between.rest(min(left_ms, self.engine.mark_interval_ms or 1))

    def _deploy(self, attempt: int, region: frozenset[SubtaskId] | None) -> None:
        """Start the subtasks of a region, or all of them, from the newest checkpoint."""
        origin = self.recovery.recover(attempt)
        restarting = self.job.subtasks if region is None else region
        self.metrics.restart(restarting)
        self.job.statistics.deploy(sorted(restarting), attempt)
        plan = self.recovery.plan(self.job.graph, origin) if origin is not None else None
        point("driver-deploy")
        failure = self.engine.deploy(self._deployment(attempt, plan, region))
        if failure is not None:
            if origin is not None and self._refuses(origin, failure):
                self.retained.forget(origin.metadata.checkpoint_id)
                failure = replace(failure, subtasks=frozenset())  # all regions go back to the checkpoint before
            raise AttemptFailed(failure)
        if attempt > 0:
            parts = "" if region is None else f", {len(region)} of {len(self.job.subtasks)} subtasks"
            start = "the beginning" if origin is None else origin.label
            _log.info("job %s runs again from %s, attempt %d%s", self.job.name, start, attempt + 1, parts)
        self.job.statistics.run(restarting)
        if origin is not None:
            is_savepoint = origin.metadata.kind == "savepoint"
            self.job.statistics.checkpoints.restore(
                origin.metadata.checkpoint_id, origin.path, is_savepoint=is_savepoint
            )
        self.checkpoints.begin_attempt(attempt, plan)

    def _refuses(self, origin: RestorePoint, failure: Failure) -> bool:
        """Exclude a checkpoint that is damaged, as one of the slots has found; return whether it is."""
        return any(self.recovery.refuse(origin, each.error) for each in (failure, *failure.others))

    def _deployment(self, attempt: int, plan: RestorePlan | None, region: frozenset[SubtaskId] | None) -> Deployment:
        settings = self.job.settings
        checkpoints = settings.checkpoints
        return Deployment(
            job_id=str(settings.job_id),
            graph=self.job.graph,
            attempt=attempt,
            term=self.term,
            checkpoint_directory=self.slot_directory,
            inline_threshold_bytes=checkpoints.inline_threshold_bytes,
            max_state_bytes=checkpoints.max_state_bytes,
            state_backend=settings.state_backend,
            rocksdb=settings.rocksdb,
            incremental=checkpoints.incremental,
            asynchronous=checkpoints.asynchronous,
            compression=checkpoints.compression,
            hashed_files=checkpoints.signing_key_file is not None,
            write_buffer=checkpoints.write_buffer_bytes,
            local_copies=checkpoints.local_copies,
            buffer_timeout_ms=settings.buffer_timeout_ms,
            restore=plan,
            only=region,
        )

    def _publish_running(self, attempt: int) -> None:
        view = self.job.view
        view.update(
            replace(view.progress(), status=JobStatus.RUNNING, attempt=attempt, slot_pids=self.engine.slot_pids)
        )

    def _pacing(self) -> PacingSettings:
        settings = self.job.settings
        return PacingSettings(
            target_ms=settings.epoch_target_ms,
            latency_target_ms=None if self.job.graph.settings.batch else settings.epoch_latency_target_ms,
            max_bytes=settings.epoch_source_bytes,
            checkpoint_interval_ms=settings.checkpoints.interval_ms,
        )
