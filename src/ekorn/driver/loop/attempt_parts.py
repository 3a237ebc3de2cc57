"""The parts of an attempt that both modes share: its deployment, and the procedures that end it."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import Protocol

from ekorn.checkpoint.restore_point import RestorePoint
from ekorn.driver.checkpoints.job_checkpoints import JobCheckpoints
from ekorn.driver.checkpoints.job_endings import FinalCheckpoint, SavepointStop
from ekorn.driver.checkpoints.retained_checkpoints import RetainedCheckpoints
from ekorn.driver.loop.between_epochs import BetweenEpochs
from ekorn.driver.loop.epoch_tracker import EpochTracker
from ekorn.driver.loop.interrupts import AttemptFailed, check_cancelled, raise_failure
from ekorn.driver.loop.job import Job
from ekorn.driver.output.job_output import JobOutput
from ekorn.driver.recovery.job_recovery import JobRecovery
from ekorn.driver.rescaling.elasticity import Elasticity
from ekorn.driver.rescaling.job_rescaling import Rescaling
from ekorn.driver.rescaling.rescale_switch import RescaleSwitch
from ekorn.engine.protocol import Engine, Failure
from ekorn.faults import point
from ekorn.functions.results.job_status import JobStatus
from ekorn.graph.addresses import SubtaskId
from ekorn.slot_protocol.deployment import Deployment
from ekorn.state.snapshots import RestorePlan

_log = logging.getLogger(__name__)

__all__ = ["AttemptParts", "AttemptRunner", "Deployer"]


class AttemptRunner(Protocol):
    """Runs the attempts of one job in its mode, one at a time."""

    def run(self, attempt: int) -> bool:
        """Run an attempt to the end of the job's input, or until the job is stopped with a savepoint or rescaled.

        Returns:
            Whether the job is over; if not, the next attempt continues at another parallelism.

        Raises:
            AttemptFailed: A subtask, a slot or too many checkpoints failed.
            Cancelled: The job was cancelled.
        """

    def end_epoch_early(self) -> None:
        """Let the sources end the running epoch, or the one that is about to start: the job stops. Thread-safe."""

    def wait_for_restart(self, delay_ms: int) -> None:
        """Wait before the next attempt.

        Raises:
            AttemptFailed: Another region failed meanwhile.
            Cancelled: The job was cancelled meanwhile.
        """


@dataclass
class AttemptParts:
    """The parts of the loop that the procedure of either mode calls."""

    deployer: Deployer
    tracker: EpochTracker
    between: BetweenEpochs
    checkpoints: JobCheckpoints
    stop: SavepointStop
    final_checkpoint: FinalCheckpoint
    rescaling: Rescaling
    switch: RescaleSwitch
    elasticity: Elasticity

    def follow_epoch(self) -> None:
        """Do what follows every epoch: settle a rescale, and observe the load."""
        self.rescaling.settle()
        self.elasticity.attend(has_backlog=self.tracker.has_backlog)


@dataclass
class Deployer:
    """Starts the subtasks of each attempt, and closes them at the end of the job.

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

    def deploy(self, attempt: int, region: frozenset[SubtaskId] | None) -> None:
        """Start the subtasks of a region, or all of them, from the newest checkpoint.

        Raises:
            AttemptFailed: A subtask or a slot could not be started.
            Cancelled: The job was cancelled.
        """
        check_cancelled(self.job.requests)
        self._deploy(attempt, region)
        self.output.begin_attempt(region)
        self._publish_running(attempt)

    def close_subtasks(self) -> None:
        """Close all subtasks of a job that has finished."""
        point("driver-close")
        raise_failure(self.engine.close_subtasks())

    def _deploy(self, attempt: int, region: frozenset[SubtaskId] | None) -> None:
        origin = self.recovery.recover(attempt)
        restarting = self.job.subtasks if region is None else region
        self.job.statistics.metrics.restart(restarting)
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
            self.job.log.info(_log, "job %s runs again from %s, attempt %d%s", self.job.name, start, attempt + 1, parts)
        self.job.statistics.run(restarting)
        if origin is not None:
            is_savepoint = origin.metadata.kind == "savepoint"
            self.job.statistics.checkpoints.restore(
                origin.metadata.checkpoint_id, origin.path, is_savepoint=is_savepoint
            )
        self.checkpoints.begin_attempt(attempt, plan)

    def _refuses(self, origin: RestorePoint, failure: Failure) -> bool:
        """Exclude a checkpoint that a slot has found damaged; return whether one has."""
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
            acknowledged_bytes=checkpoints.acknowledged_bytes,
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
        pids = self.engine.slot_pids
        self.job.statistics.slot_pids = pids
        view.update(replace(view.progress(), status=JobStatus.RUNNING, attempt=attempt, slot_pids=pids))
