"""The coordinator in the driver: attempts, epochs, checkpoints, until the job has ended one way or another.

One thread per job. Rules live elsewhere (`job.restarts`, `job.pacing`, `checkpoint.coordinator`); this loop owns the
engine and performs what the rules decide, between epochs, when no user code runs. `job.checkpoints` does the same for
checkpoints and their storage.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from dataclasses import replace

from tamias.clock import Clock, SteadyClock
from tamias.config.job_settings import JobSettings, for_batch
from tamias.driver.attempt import AttemptFailed, Cancelled, Restored
from tamias.driver.failures import job_error
from tamias.driver.job_checkpoints import Carried, JobCheckpoints
from tamias.driver.job_handle import JobHandle
from tamias.driver.job_metrics import JobMetrics
from tamias.driver.job_output import JobOutput
from tamias.driver.pacing import EpochPacer, EpochReport, PacingSettings
from tamias.driver.restarts import restart_strategy
from tamias.driver.savepoint_requests import SavepointRequest
from tamias.engine.protocol import Engine, EpochResult, Failure
from tamias.errors import CheckpointError, JobCancelledError, may_be_retried
from tamias.faults import point
from tamias.functions.job_execution_result import JobExecutionResult
from tamias.functions.job_status import JobStatus
from tamias.graph.addresses import SubtaskId
from tamias.graph.job_graph import JobGraph
from tamias.graph.regions import in_regions_of
from tamias.operators.epoch import Ack, EpochOrder
from tamias.slot.deployment import Deployment

_log = logging.getLogger(__name__)

EngineFactory = Callable[[JobGraph], Engine]


class JobLoop:
    """Runs one job to its end."""

    def __init__(
        self, graph: JobGraph, settings: JobSettings, handle: JobHandle, make_engine: EngineFactory, clock: Clock
    ) -> None:
        settings = for_batch(settings) if graph.settings.batch else settings
        self._settings = settings
        self._handle = handle
        self._clock = clock
        self._steady = SteadyClock(clock)
        self._started_ms = self._steady.now_ms()
        self._checkpoints = JobCheckpoints(settings, handle, clock)
        try:
            self._prepare(graph, make_engine)
        except BaseException:
            self._checkpoints.release()  # nothing was begun: the next one need not wait
            raise
        handle.savepoint_directory = settings.savepoint_directory
        handle.on_cancel(self._interrupt)
        handle.on_request(self._engine.wake)

    def _prepare(self, graph: JobGraph, make_engine: EngineFactory) -> None:
        self._graph = graph = self._checkpoints.prepare(graph)  # what does not fit is said before anything runs
        self._subtasks = frozenset((v.id, i) for v in graph.vertices for i in range(v.parallelism))
        self._strategy = restart_strategy(self._settings.restart, random.Random())
        self._refusal = ""  # why the restart strategy gave up
        self._group_watermarks: dict[str, int] = {}
        self._open_loops: frozenset[int] | None = None
        self._attempt = 0
        self._hit: frozenset[SubtaskId] | None = None  # by the last failure, when it was not everyone
        self._epoch = 0
        self._backlog = False  # of the sources, in the last epoch
        self._stop: SavepointRequest | None = None  # the savepoint that the job is to end with
        self._metrics = JobMetrics(graph)
        self._handle.publish_metrics(self._metrics.values)
        # A failure takes back what was collected up to the last checkpoint or, in BATCH, to the start.
        takes_back = self._checkpoints.take_back if self._checkpoints.enabled else graph.settings.batch
        self._output = JobOutput(graph, self._handle, self._metrics, takes_back=takes_back)
        self._pacing = pacing(self._settings)
        self._engine = make_engine(graph)
        try:
            self._checkpoints.start(self._engine, self._output.committed)
        except BaseException:
            self._engine.shutdown()
            raise

    # ---------------------------------------------------------------------------------------------- the whole life

    def run(self) -> None:
        """Run attempts until the job is over; the handle then knows how it ended. Never raises."""
        status = JobStatus.FAILED
        error: BaseException | None = None
        try:
            self._attempts()
            status = JobStatus.FINISHED
        except Cancelled:
            status, error = JobStatus.CANCELED, JobCancelledError(self._settings.job_name)
        except AttemptFailed as failed:
            error = self._job_error(failed.failure.error)
        except Exception as unexpected:  # a defect of ours must still end the job and reach the user
            _log.exception("job %s failed", self._settings.job_name)
            error = self._job_error(unexpected)
        finally:
            self._tidy(status)
            result = None
            if error is None:
                runtime_ms = self._steady.now_ms() - self._started_ms
                try:
                    result = JobExecutionResult(self._settings.job_id, runtime_ms, self._handle.accumulators())
                except Exception as unreadable:  # an accumulator of the user's
                    status, error = JobStatus.FAILED, self._job_error(unreadable)
            self._handle.end(status, result, error)
            self._checkpoints.answer_requests(status)

    def _attempts(self) -> None:
        while True:
            try:
                self._run_attempt()
                return
            except AttemptFailed as failed:
                self._fail_or_wait(failed.failure)

    def _fail_or_wait(self, failure: Failure) -> None:
        """Ask the restart strategy; return when it is time for the next attempt."""
        self._check_cancelled()
        self._checkpoints.end_attempt(str(failure.error))
        self._give_up_stopping(str(failure.error))
        error = failure.error
        if not may_be_retried(error):
            raise AttemptFailed(failure) from error
        decision = self._strategy.on_failure(self._steady.now_ms())
        if not decision.restart:
            self._refusal = decision.reason
            raise AttemptFailed(failure) from error
        _log.warning("job %s restarts in %d ms: %s", self._settings.job_name, decision.delay_ms, error)
        progress = self._handle.progress()
        self._handle.update(
            replace(
                progress,
                status=JobStatus.RESTARTING,
                restarts=progress.restarts + 1,
                last_failure=str(error).splitlines()[0] if str(error) else type(error).__name__,
            )
        )
        if self._handle.wait_for_cancel(decision.delay_ms / 1000):
            raise Cancelled
        self._attempt += 1

    def _job_error(self, error: BaseException) -> BaseException:
        return job_error(
            self._settings.job_name,
            error,
            log_path=self._engine.keep_log(),
            restarts=self._handle.progress().restarts,
            refusal=self._refusal or None,
        )

    # ------------------------------------------------------------------------------------------------ one attempt

    def _run_attempt(self) -> None:
        """Deploy, then epoch after epoch until every subtask has finished."""
        self._check_cancelled()
        only, self._hit = self._hit, None
        self._deploy(self._checkpoints.recover(self._attempt), only)
        self._output.begin_attempt(only)
        self._group_watermarks = {}  # watermarks start anew with the attempt
        self._open_loops = None
        self._handle.update(
            replace(self._handle.progress(), status=JobStatus.RUNNING, attempt=self._attempt, slot_pids=self._pids())
        )
        pacer = EpochPacer(self._pacing)
        while True:
            self._attend()
            if self._stop is not None and self._stop_with_savepoint(self._stop, pacer):
                return
            order = self._next_order(pacer)
            started = self._clock.monotonic()
            acks = self._run_epoch(order)
            wall_ms = (self._clock.monotonic() - started) * 1000
            self._publish(order, acks, wall_ms)
            if all(a.finished for a in acks):
                self._last_checkpoint()
                self._close()
                return
            sources = [a for a in acks if self._graph.vertices[a.vertex].is_source]
            report = EpochReport(
                wall_ms=wall_ms,
                records=sum(a.records_in for a in sources),
                backlog=any(a.backlog for a in sources),
                bytes_read=sum(a.bytes_out for a in sources),
            )
            self._backlog = report.backlog
            self._idle(pacer.observe(report).idle_wait_ms, acks)
            if order.checkpoint_id is not None:
                self._wait_a_moment_for(order.checkpoint_id)

    def _deploy(self, restored: Restored | None, only: frozenset[SubtaskId] | None) -> None:
        self._metrics.restart(self._subtasks if only is None else only)
        plan = self._checkpoints.plan(restored) if restored is not None else None
        checkpoints = self._settings.checkpoints
        point("driver-deploy")
        failure = self._engine.deploy(
            Deployment(
                job_id=str(self._settings.job_id),
                graph=self._graph,
                attempt=self._attempt,
                term=self._checkpoints.term,
                checkpoint_directory=self._checkpoints.address,
                inline_threshold=checkpoints.inline_threshold_bytes,
                max_state_size=checkpoints.max_state_bytes,
                state_backend=self._settings.state_backend,
                rocksdb=self._settings.rocksdb,
                incremental=checkpoints.incremental,
                asynchronous=checkpoints.asynchronous,
                compression=checkpoints.compression,
                write_buffer=checkpoints.write_buffer_bytes,
                local_copies=checkpoints.local_copies,
                restore=plan,
                only=only,
            )
        )
        if failure is not None:
            if restored is not None:
                self._checkpoints.refused(restored, failure.error)
            raise AttemptFailed(failure)
        self._checkpoints.begin_attempt(restored, plan)

    def _next_order(self, pacer: EpochPacer) -> EpochOrder:
        start = self._checkpoints.start_due(Carried(self._epoch, self._output.records_read), backlog=self._backlog)
        order = self._plain_order(pacer)
        if start is None:
            return order
        return replace(
            order,
            checkpoint_id=start.checkpoint_id,
            checkpoint_ms=self._clock.now_ms(),
            settled=self._subtasks - start.participants,
            savepoint=start.savepoint,
        )

    def _plain_order(self, pacer: EpochPacer) -> EpochOrder:
        budget = pacer.pace.budget
        order = EpochOrder(
            number=self._epoch,
            max_records=budget.max_records_per_source_subtask,
            max_source_ms=budget.max_source_ms,
            group_watermarks=self._group_watermarks,
            open_loops=self._open_loops,
        )
        self._epoch += 1
        return order

    def _run_epoch(self, order: EpochOrder) -> list[Ack]:
        point("driver-epoch")
        result: EpochResult = self._engine.run_epoch(order)
        self._check_cancelled()
        if result.failure is not None:
            self._hit = self._region_of(result.failure)
            if self._hit is not None:
                self._publish(replace(order, checkpoint_id=None), result.acks, 0.0)
            raise AttemptFailed(result.failure)
        self._group_watermarks = least_by_group(result.acks)
        self._open_loops = frozenset(loop for ack in result.acks for loop in ack.open_loops)
        if order.checkpoint_id is not None:
            self._checkpoints.barrier_passed(order.checkpoint_id)
        return result.acks

    def _region_of(self, failure: Failure) -> frozenset[SubtaskId] | None:
        """Who starts anew after a failure, when the others may go on; None: everyone."""
        if self._settings.failover != "region" or not failure.subtasks:
            return None
        hit = in_regions_of(self._graph, failure.subtasks)
        return hit if hit != self._subtasks else None

    def _last_checkpoint(self) -> None:
        """All input is read: one more checkpoint, so that transactional output of the last epochs is committed.

        Should it fail, and the tolerable number of failures allow it, another one is taken after an interval.
        """
        self._await(lambda: not self._checkpoints.pending_ids)  # of epochs before
        interval_ms = self._settings.checkpoints.interval_ms
        if interval_ms is None or not self._settings.checkpoints.after_tasks_finish:
            self._output.release(self._epoch)
            return
        while not self._take_checkpoint():
            self._let_pass(interval_ms)

    def _take_checkpoint(self) -> bool:
        """Take a checkpoint now and wait for it; False when it failed."""
        self._checkpoints.request()
        pacer = EpochPacer(self._pacing)
        while (order := self._one_more_epoch(pacer)).checkpoint_id is None or order.savepoint is not None:
            self._await(lambda: not self._checkpoints.pending_ids)  # somebody's savepoint came first
        wanted = order.checkpoint_id
        self._await(lambda: wanted not in self._checkpoints.pending_ids)
        return self._checkpoints.last_completed_id == wanted

    def _stop_with_savepoint(self, request: SavepointRequest, pacer: EpochPacer) -> bool:
        """End the job with a savepoint; False when there could be none and the job goes on."""
        if request.then == "drain":
            self._drain(pacer)
        self._checkpoints.request_savepoint(request)
        while request.checkpoint_id is None and not request.failed:
            self._attend()  # it waits for one that the job was to be cancelled with
            self._one_more_epoch(pacer)
        self._await(lambda: request.exists or request.failed)
        if request.exists:
            self._close()
            return True
        if request.then == "drain":
            raise AttemptFailed(Failure(CheckpointError("the job was drained, but its savepoint could not be taken")))
        self._stop = None
        return False

    def _drain(self, pacer: EpochPacer) -> None:
        """End all input here: event time goes to its end, windows and timers fire, functions finish."""
        while True:
            order = replace(self._plain_order(pacer), drain=True)
            acks = self._run_epoch(order)
            self._publish(order, acks, 0.0)
            if all(a.finished for a in acks):
                return
            self._attend()
            self._idle(self._settings.buffer_timeout_ms, acks)  # loops wait for what may still come round

    def _one_more_epoch(self, pacer: EpochPacer) -> EpochOrder:
        order = self._next_order(pacer)
        self._publish(order, self._run_epoch(order), 0.0)
        return order

    def _await(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self._attend()
            if not condition() and (failure := self._engine.lost()) is not None:
                raise AttemptFailed(failure)  # what is waited for will not come
            self._engine.wait(0.05)

    def _let_pass(self, wait_ms: int) -> None:
        until_ms = self._steady.now_ms() + wait_ms
        self._await(lambda: self._steady.now_ms() >= until_ms)

    def _wait_a_moment_for(self, checkpoint_id: int) -> None:
        """Let a checkpoint complete if that keeps the next one on time."""
        started = self._clock.monotonic()
        for _ in range(len(self._subtasks) + 1):  # each subtask's news ends a wait
            self._attend()
            left_s = self._checkpoints.patience_ms() / 1000 - (self._clock.monotonic() - started)
            if checkpoint_id not in self._checkpoints.pending_ids or left_s <= 0:
                return
            self._engine.wait(left_s)

    def _close(self) -> None:
        point("driver-close")
        failure = self._engine.close_subtasks()
        if failure is not None:
            raise AttemptFailed(failure)

    def _give_up_stopping(self, why: str) -> None:
        if self._stop is not None:
            if self._stop.then == "drain":
                self._hit = None  # everyone's input was ended: everyone starts anew
            self._stop.not_ended(f"the job failed: {why}")
            self._stop = None

    # --------------------------------------------------------------------------------------------- between epochs

    def _attend(self) -> None:
        """See to everything that happened meanwhile: snapshots, timeouts, a request to cancel."""
        self._check_cancelled()
        for request in self._handle.take_requests():
            self._accept(request)
        self._checkpoints.attend()

    def _accept(self, request: SavepointRequest) -> None:
        if self._graph.settings.batch:
            request.fail("a job in BATCH mode has no savepoints")
        elif self._stop is not None:
            request.fail("the job is being stopped with a savepoint already")
        elif self._checkpoints.admit(request):
            if request.synchronous:
                self._stop = request
            else:
                self._checkpoints.request_savepoint(request)

    def _publish(self, order: EpochOrder, acks: list[Ack], wall_ms: float) -> None:
        self._output.show(order.number, acks, wall_ms)
        if order.checkpoint_id is not None:
            self._checkpoints.taken_at(order.checkpoint_id, Carried(order.number, self._output.records_read))

    def _idle(self, wait_ms: int, acks: list[Ack]) -> None:
        """Wait before the next epoch, but not past a timer, a checkpoint that is due, or news."""
        buffer_timeout_ms = self._settings.buffer_timeout_ms
        if buffer_timeout_ms >= 0:
            wait_ms = min(wait_ms, max(buffer_timeout_ms, 1))
        if wait_ms <= 0:
            return
        now_ms, day_ms = self._steady.now_ms(), self._clock.now_ms()
        waits = [wait_ms, *(a.next_timer_ms - day_ms for a in acks if a.next_timer_ms is not None)]
        due_ms = self._checkpoints.next_due_ms(now_ms)
        if due_ms is not None:
            waits.append(due_ms - now_ms)
        self._engine.wait(max(0, min(waits)) / 1000)

    # ------------------------------------------------------------------------------------------------- the end

    def _check_cancelled(self) -> None:
        if self._handle.cancel_requested:
            raise Cancelled

    def _interrupt(self) -> None:
        self._engine.cancel_epoch()
        self._engine.wake()

    def _tidy(self, status: JobStatus) -> None:
        """Release everything; checkpoints are kept or deleted as the job asked."""
        try:
            self._engine.shutdown()
        except Exception:  # the job's outcome stands; what could not be released is in the log
            _log.exception("job %s could not be shut down in order", self._settings.job_name)
        self._checkpoints.tidy(status)

    def _pids(self) -> tuple[int, ...]:
        return self._engine.slot_pids


def pacing(settings: JobSettings) -> PacingSettings:
    """What an epoch of a job may cost."""
    return PacingSettings(
        target_ms=settings.epoch_target_ms,
        checkpoint_interval_ms=settings.checkpoints.interval_ms,
    )


def least_by_group(acks: list[Ack]) -> dict[str, int]:
    """How far the slowest source of each watermark alignment group has come; idle and finished ones do not count."""
    least: dict[str, int] = {}
    for ack in acks:
        for group, watermark in ack.group_watermarks.items():
            least[group] = min(watermark, least.get(group, watermark))
    return least
