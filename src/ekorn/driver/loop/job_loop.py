"""The loop of one job in the driver: attempt after attempt, until the job has finished, failed or been cancelled.

One thread per job. The rules live in `restarts`, `pacing` and `checkpoint.coordinator`, which have neither threads nor
files. The loop and its parts own the engine and perform what the rules decide:

    JobLoop           attempts and restarts, the end of the job
    AttemptRunner     one attempt, in the mode of the job: EpochAttempts or ContinuousAttempts
    RunsEpochs        one epoch, in the mode of the job: EpochRunner or MarkRunner
    EpochTracker      what the modes share about an epoch: its number, its checkpoint, its acknowledgements
    Deployer          the start of an attempt
    BetweenEpochs     requests, snapshots and waits between two epochs
    JobCheckpoints    the events of the coordinator; CheckpointActions performs its actions
    FinalCheckpoint   the checkpoint after the last record
    SavepointStop     the end of a job with a savepoint
    Rescaling         another parallelism; RescaleSwitch ends the attempt at the old one
    Elasticity        reactive mode and the autoscaler, which ask for another parallelism
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from dataclasses import replace

from ekorn.checkpoint.checkpoint_directory import CheckpointDirectory
from ekorn.clock import Clock, SteadyClock
from ekorn.config.choices import CheckpointingMode
from ekorn.config.settings.job_settings import JobSettings, for_batch
from ekorn.driver.checkpoints.job_checkpoints import JobCheckpoints
from ekorn.driver.checkpoints.job_directory import address_for_slots, check_reachable, open_directory
from ekorn.driver.checkpoints.job_endings import FinalCheckpoint, SavepointStop
from ekorn.driver.checkpoints.retained_checkpoints import RetainedCheckpoints
from ekorn.driver.display.job_lines import JobFacts, end_line, plan_lines, start_line
from ekorn.driver.job_handle import JobHandle
from ekorn.driver.job_outcome import JobOutcome, note_outcome, outcomes_are_noted
from ekorn.driver.loop.attempt_parts import AttemptParts, AttemptRunner, Deployer
from ekorn.driver.loop.between_epochs import BetweenEpochs
from ekorn.driver.loop.continuous_mode import ContinuousAttempts, MarkRunner, MarkWaits
from ekorn.driver.loop.epoch_tracker import EpochTracker, RunsEpochs
from ekorn.driver.loop.epochs_mode import EpochAttempts, EpochRunner, EpochWaits
from ekorn.driver.loop.interrupts import AttemptFailed, Cancelled, check_cancelled
from ekorn.driver.loop.job import Job
from ekorn.driver.output.job_output import JobOutput
from ekorn.driver.queries.query_routing import StateQueries
from ekorn.driver.queries.query_server import answer_queries
from ekorn.driver.recovery.failures import job_error, keeps_checkpoints, text_of
from ekorn.driver.recovery.job_recovery import JobRecovery
from ekorn.driver.recovery.repeated_failures import RepeatedFailures
from ekorn.driver.recovery.restarts import restart_strategy
from ekorn.driver.rescaling.elasticity import Elasticity
from ekorn.driver.rescaling.job_rescaling import Rescaling
from ekorn.driver.rescaling.rescale_switch import RescaleSwitch
from ekorn.engine.protocol import AnyEngine, Failure
from ekorn.errors import Fenced, JobCancelledError, may_be_retried
from ekorn.functions.results.job_execution_result import JobExecutionResult
from ekorn.functions.results.job_status import JobStatus
from ekorn.graph.job_graph import JobGraph

__all__ = ["EngineFactory", "JobLoop"]

_log = logging.getLogger(__name__)

EngineFactory = Callable[[JobGraph], AnyEngine]


class JobLoop:
    """Runs one job to its end."""

    def __init__(
        self,
        graph: JobGraph,
        settings: JobSettings,
        handle: JobHandle,
        make_engine: EngineFactory,
        *,
        clock: Clock,
        chance: random.Random,
    ) -> None:
        """Prepare the job: claim its checkpoint directory, find what it starts from, make its engine.

        Args:
            graph: The job.
            settings: The job's settings.
            handle: Where the job's progress and end are published.
            make_engine: Makes the engine that runs the job.
            clock: The clock of the driver.
            chance: Spreads the delays of restarts, so that jobs that failed together do not restart together.

        Raises:
            EkornError: The job cannot be started as it is. Nothing was begun then.
        """
        self._settings = for_batch(settings) if graph.settings.batch else settings
        self._handle = handle
        self._steady = SteadyClock(clock)
        self._started_ms = self._steady.now_ms()
        self._strategy = restart_strategy(self._settings.restart, chance)
        self._repeats = RepeatedFailures()
        self._refusal: str | None = None  # why the restart strategy refused another attempt
        self._keeps_checkpoints = False  # whatever their retention: output that they refer to is not committed
        directory = open_directory(self._settings, clock.now_ms())
        try:
            recovery = JobRecovery(self._settings, directory)
            graph = recovery.prepare(graph)
            self._job = Job.of(graph, self._settings, handle, clock, self._steady)
            retained = RetainedCheckpoints(self._settings, directory, recovery)
            self._engine = make_engine(graph)
            try:
                check_reachable(self._settings, directory, self._engine)
                self._attempts = self._assemble(directory, recovery, retained)
                if settings.queryable.enabled:
                    queries = StateQueries(self._job, self._engine, retained, directory)
                    answer_queries(settings.queryable, settings.links, handle, queries)
                    handle.view.state_reader = queries
            except BaseException:
                self._engine.shutdown()
                raise
        except BaseException:
            directory.release()  # the next driver need not wait
            raise
        self.facts = JobFacts(
            job_name=self._settings.job_name,
            job_id=str(self._settings.job_id),
            engine=self._engine.description,
            parallelism=max(vertex.parallelism for vertex in graph.vertices),
            is_default_parallelism=not self._settings.parallelism_set,
            restored_from=recovery.origin,
            restored_path=recovery.origin_path,
            is_resumed=recovery.is_resumed,
            log_path=self._engine.log_path,
            web_address=self._settings.web.address,
        )
        self._job.statistics.facts = self.facts
        for line in (start_line(self.facts), *plan_lines(graph)):
            self._job.log.info(_log, "%s", line)
        handle.requests.savepoint_directory = self._settings.savepoint_directory
        handle.requests.wake_with(
            on_cancel=self._interrupt, on_request=self._engine.wake, on_stop=self._attempts.end_epoch_early
        )
        handle.view.inspect(self._engine)

    def _assemble(
        self, directory: CheckpointDirectory, recovery: JobRecovery, retained: RetainedCheckpoints
    ) -> AttemptRunner:
        """Put the parts of the loop together, in the mode of the engine. They live as long as the job."""
        job, engine = self._job, self._engine
        metrics = job.statistics.metrics
        job.view.publish_metrics(metrics.values)
        job.view.statistics = job.statistics
        output = JobOutput(
            job.graph,
            job.view,
            job.results,
            metrics,
            takes_back=_takes_back(job),
            collect_buffer_bytes=self._settings.collect_buffer_bytes,
        )
        self._checkpoints = checkpoints = JobCheckpoints(
            job, engine, directory=directory, recovery=recovery, retained=retained, output=output
        )
        self._rescaling = rescaling = Rescaling(job, engine, checkpoints, output)
        self._tracker = tracker = EpochTracker(job, checkpoints, output)
        between = BetweenEpochs(job, engine, checkpoints, rescaling)
        deployer = Deployer(
            job,
            engine,
            slot_directory=address_for_slots(self._settings, directory),
            term=directory.term,
            recovery=recovery,
            retained=retained,
            checkpoints=checkpoints,
            output=output,
        )
        if engine.execution == "continuous":
            marks = MarkRunner(job, engine, tracker=tracker, checkpoints=checkpoints, between=between)
            parts = self._parts(marks, deployer, between, Elasticity(job, engine, rescaling, max))
            return ContinuousAttempts(job, engine, parts, marks, MarkWaits(job, engine, checkpoints, between))
        epochs = EpochRunner(job, engine, tracker)
        parts = self._parts(epochs, deployer, between, Elasticity(job, engine, rescaling, sum))
        return EpochAttempts(job, parts, epochs, EpochWaits(job, engine, checkpoints, between))

    def _parts(
        self, epochs: RunsEpochs, deployer: Deployer, between: BetweenEpochs, elasticity: Elasticity
    ) -> AttemptParts:
        """Return the parts that both modes share, given what runs single epochs in the mode of the job."""
        job, tracker, checkpoints, rescaling = self._job, self._tracker, self._checkpoints, self._rescaling
        self._stop = SavepointStop(job, epochs, tracker=tracker, between=between, checkpoints=checkpoints)
        self._switch = RescaleSwitch(
            job, self._engine, epochs=epochs, between=between, checkpoints=checkpoints, rescaling=rescaling
        )
        final = FinalCheckpoint(
            job, epochs, tracker=tracker, between=between, checkpoints=checkpoints, output=deployer.output
        )
        return AttemptParts(
            deployer,
            tracker,
            between,
            checkpoints,
            stop=self._stop,
            final_checkpoint=final,
            rescaling=rescaling,
            switch=self._switch,
            elasticity=elasticity,
        )

    def run(self) -> None:
        """Run attempts until the job is over, and publish in the handle how it ended. Never raises."""
        status = JobStatus.FAILED
        error: BaseException | None = None
        try:
            self._run_attempts()
            status = JobStatus.FINISHED
        except Cancelled:
            status = JobStatus.SUSPENDED if self._handle.requests.suspend_requested else JobStatus.CANCELED
            error = JobCancelledError(self._settings.job_name)
        except AttemptFailed as failed:
            self._keeps_checkpoints = keeps_checkpoints(failed.failure.error)
            error = self._job_error(failed.failure.error)
        except Exception as unexpected:  # a defect of ekorn must still end the job and reach the user
            _log.exception("job %s failed", self._settings.job_name)
            self._job.statistics.fail(Failure(unexpected))
            error = self._job_error(unexpected)
        finally:
            self._release_all(status)
            result, runtime_ms = None, self._steady.now_ms() - self._started_ms
            if error is None:
                try:
                    result = JobExecutionResult(self._settings.job_id, runtime_ms, self._handle.results.accumulators())
                except Exception as unreadable:  # raised by an accumulator of the user
                    status, error = JobStatus.FAILED, self._job_error(unreadable)
            ended = replace(self._job.view.progress(), status=status)
            self._job.log.info(_log, "%s", end_line(self._settings.job_name, ended, runtime_ms / 1000))
            self._job.log.end(status.name, None if status is not JobStatus.FAILED else str(error))
            self._job.statistics.end(status)
            self._handle.end(status, result, error)
            self._checkpoints.answer_requests(status)
            self._rescaling.job_ended(status)

    def _run_attempts(self) -> None:
        attempt = 0
        while True:
            try:
                if self._attempts.run(attempt):
                    return
            except AttemptFailed as failed:
                self._recover(failed.failure)
            attempt += 1

    def _recover(self, failure: Failure) -> None:
        """Return when it is time for the next attempt. It restarts the regions that fail meanwhile, too."""
        while True:
            self._tracker.fail(failure)
            if self._go_back(failure):
                return
            delay_ms = self._restart_delay_ms(failure)
            try:
                self._attempts.wait_for_restart(delay_ms)
                return
            except AttemptFailed as failed:
                failure = failed.failure

    def _go_back(self, failure: Failure) -> bool:
        """Let the next attempt have the parallelism before a rescale, if the rescale is what has failed.

        The restart strategy is not asked: the job itself did not fail.
        """
        check_cancelled(self._job.requests)
        what, _, _ = text_of(failure.error).partition("\n")
        if not self._rescaling.is_unsettled or not may_be_retried(failure.error):
            self._rescaling.fail(what)
            return False
        self._end_attempt(failure, what)
        self._tracker.take_failed_region()  # its subtasks belong to the other graph
        self._rescaling.go_back(what)
        return True

    def _end_attempt(self, failure: Failure, what: str) -> None:
        self._job.statistics.fail(failure)
        self._checkpoints.end_attempt(what)
        self._stop.fail(what)

    def _restart_delay_ms(self, failure: Failure) -> int:
        """End the attempt that has failed; return how long the next one is to wait.

        Raises:
            AttemptFailed: The restart strategy refuses another attempt, or no attempt could succeed.
            Cancelled: The job was cancelled meanwhile.
        """
        check_cancelled(self._job.requests)
        error = failure.error
        what, _, traceback = text_of(error).partition("\n")
        self._end_attempt(failure, what)
        if not may_be_retried(error):
            raise AttemptFailed(failure) from error
        decision = self._strategy.on_failure(self._steady.now_ms())
        if not decision.restart:
            self._refusal = decision.reason or None
            raise AttemptFailed(failure) from error
        more = self._repeats.advice_after(error) or (traceback and f"\n{traceback}")  # the log has the traceback once
        log, name = self._job.log, self._settings.job_name
        log.warning(_log, "job %s restarts in %d ms: %s%s", name, decision.delay_ms, what, more)
        for other in failure.others:
            log.warning(_log, "job %s, slot %s failed at the same time: %s", name, other.slot, text_of(other.error))
        progress = self._job.view.progress()
        self._job.view.update(
            replace(
                progress,
                status=JobStatus.RESTARTING,
                restarts=progress.restarts + 1,
                last_failure=what or type(error).__name__,
            )
        )
        self._job.statistics.restart()
        return decision.delay_ms

    def _job_error(self, error: BaseException) -> BaseException:
        return job_error(
            self._settings.job_name,
            error,
            log_path=self._engine.keep_log(),
            restarts=self._job.view.progress().restarts,
            refusal=self._refusal,
        )

    def _interrupt(self) -> None:
        """End the running epoch, on the thread that cancels the job."""
        self._engine.cancel_epoch()
        self._engine.wake()

    def _release_all(self, status: JobStatus) -> None:
        """Release the engine, and keep or delete the checkpoints. Never raises: the program must learn of the end."""
        for release in (self._release_engine, self._release_checkpoints):
            try:
                release(status)
            except Exception:  # the job's outcome stands; what could not be released is in the log
                _log.exception("job %s could not be shut down cleanly", self._settings.job_name)

    def _release_engine(self, status: JobStatus) -> None:
        try:
            if status is JobStatus.CANCELED:
                self._checkpoints.job_cancelled()
        finally:
            self._engine.shutdown()
            self._checkpoints.show_last_hints()

    def _release_checkpoints(self, status: JobStatus) -> None:
        self._switch.close()
        if status.is_globally_terminal_state() and not self._note_outcome(status):
            status = JobStatus.SUSPENDED  # a service that does not know of the end starts the job again from them
        if self._keeps_checkpoints:
            status = JobStatus.SUSPENDED
        self._checkpoints.job_ended(status)

    def _note_outcome(self, status: JobStatus) -> bool:
        """Note how the job ended, so that no service starts it again; return False if that cannot be done."""
        if not outcomes_are_noted():
            return True
        try:
            self._checkpoints.check_owner()  # a replaced driver does not know how the job ends
            saved = self._job.statistics.checkpoints.last_savepoint
            stopped_with = saved.path if saved is not None and saved.synchronous else None
            note_outcome(JobOutcome(str(self._settings.job_id), status, stopped_with))
        except (OSError, Fenced) as error:
            _log.warning("the end of job %s could not be recorded: %s", self._settings.job_name, error)
            return False
        return True


def _takes_back(job: Job) -> bool:
    """Return whether a failure takes back what was collected since the last checkpoint (in BATCH: since the start)."""
    checkpoints = job.settings.checkpoints
    if checkpoints.enabled:
        return checkpoints.mode is CheckpointingMode.EXACTLY_ONCE
    return job.graph.settings.batch
