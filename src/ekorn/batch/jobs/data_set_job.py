"""A DataSet program as a job: it runs on a thread of its own, and is seen and cancelled by its handle.

The handle is that of jobs of streams. What a job without checkpoints cannot do is refused by its requests.
"""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable
from contextvars import copy_context
from dataclasses import replace
from typing import Any

from ekorn.batch.jobs.drawn_graph import drawn_graph
from ekorn.batch.jobs.job_watch import JobWatch
from ekorn.batch.plan.operators import Plan
from ekorn.batch.planner.plan_runner import PlanResult, RunSettings
from ekorn.clock import Clock, SystemClock
from ekorn.config.settings.job_settings import JobSettings
from ekorn.driver.display.job_lines import JobFacts, end_line, plan_lines, start_line
from ekorn.driver.job_handle import JobHandle
from ekorn.driver.job_log import open_job_log
from ekorn.driver.recovery.failures import job_error, text_of
from ekorn.driver.recovery.restarts import restart_strategy
from ekorn.driver.statistics.job_statistics import JobStatistics
from ekorn.driver.submit import show_graph, show_lines
from ekorn.engine.protocol import Failure
from ekorn.errors import JobCancelledError, JobExecutionError, OutputsPartlyVisibleError, may_be_retried
from ekorn.functions.results.job_execution_result import JobExecutionResult
from ekorn.functions.results.job_status import JobStatus
from ekorn.graph.addresses import SubtaskId
from ekorn.graph.job_graph import ExecutionSettings
from ekorn.reporters.running import JobReporters
from ekorn.rest.driver_web import WEB
from ekorn.rest.job_socket import open_job_socket

__all__ = ["DataSetJob"]

_log = logging.getLogger(__name__)

# Cancel again at this interval: a plan is several Spark jobs, and may be about to start the next one.
_CANCEL_AGAIN_S = 0.2
_NO_CHECKPOINTS = (
    "a DataSet program has no checkpoints and no state to save: it can be cancelled, and runs from the beginning again"
)

Runner = Callable[[Plan, RunSettings], PlanResult]


class DataSetJob:
    """One job of a DataSet program.

    Args:
        plan: What it runs.
        run: The settings of its run.
        settings: The settings of the job.
        runner: Runs the plan.
        cancel: Cancels what the runner does on Spark now.
        engine: What runs it, for people.
        on_spark: Whether that is Spark, so that other processes of the user may reach the job.
        at_result: Takes the result of a job that has finished, before the end is published.

    Attributes:
        handle: What is seen of the job, and what is asked of it.
        records: What each sink sent to the driver, once the job has finished.
    """

    def __init__(
        self,
        plan: Plan,
        run: RunSettings,
        settings: JobSettings,
        *,
        runner: Runner,
        cancel: Callable[[RunSettings], None],
        engine: str,
        on_spark: bool,
        at_result: Callable[[JobExecutionResult], None] = lambda result: None,
        clock: Clock | None = None,
    ) -> None:
        self._clock = clock or SystemClock()
        drawn = drawn_graph(plan, settings.job_name, _execution_settings(run))
        show_graph(drawn.graph, settings)
        settings = WEB.opened_for(settings)
        self.handle = handle = JobHandle(settings.job_id, settings.job_name)
        handle.requests.refuse_all_but_cancel(_NO_CHECKPOINTS)
        handle.takes_requests_from_outside = bool(settings.control or (settings.control is None and on_spark))
        self._statistics = statistics = JobStatistics(drawn.graph, settings, self._clock)
        statistics.facts = JobFacts(
            job_name=settings.job_name,
            job_id=str(settings.job_id),
            engine=engine,
            parallelism=max((vertex.parallelism for vertex in drawn.graph.vertices), default=1),
            is_default_parallelism=not settings.parallelism_set,
            web_address=settings.web.address,
        )
        handle.view.publish_metrics(statistics.metrics.values)
        handle.view.statistics = statistics
        watch = JobWatch(plan, drawn, handle, statistics, self._clock)
        self._plan = plan
        self._run = replace(run, job_id=str(settings.job_id), job_name=settings.job_name, watch=watch)
        self._settings = settings
        self._runner = runner
        self._cancel = cancel
        self._at_result = at_result
        self._on_spark = on_spark
        self._is_within_reach = threading.Event()
        self._ended = threading.Event()
        self.records: list[list[Any]] = []

    def start(self) -> JobHandle:
        """Start the job on a thread of its own; return its handle."""
        handle, settings, statistics = self.handle, self._settings, self._statistics
        assert statistics.facts is not None
        handle.requests.wake_with(on_cancel=self._begin_to_cancel, on_request=_do_nothing)
        with JobReporters(settings) as reporters:
            reporters.start(handle)
        if self._on_spark and settings.web.address is not None:  # the lines of each collect() would be noise without it
            show_lines(handle, settings, statistics.facts, self._clock, prints=False, began=self._clock.monotonic())
        WEB.show(handle, settings)
        # A test of this thread may run plans in process, so the thread of the job has the variables of this one.
        thread = threading.Thread(
            target=copy_context().run, args=(self._run_to_end,), name=f"ekorn-{settings.job_name}", daemon=True
        )
        thread.start()
        try:
            self._bring_within_reach()  # while Spark works: a short job hardly waits for its log and its socket
        except BaseException:
            handle.requests.suspend()
            raise
        finally:
            self._is_within_reach.set()
        return handle

    def _bring_within_reach(self) -> None:
        """Open the log and the socket of the job, for people and commands of other processes."""
        handle, settings, statistics = self.handle, self._settings, self._statistics
        if (
            handle.takes_requests_from_outside and settings.executions is None
        ):  # a service keeps the logs of its drivers
            handle.log = open_job_log(str(settings.job_id), settings.job_name, self._clock.now_ms())
        assert statistics.facts is not None
        for line in (start_line(statistics.facts), *plan_lines(statistics.graph)):
            handle.log.info(_log, "%s", line)
        open_job_socket(handle)

    # -------------------------------------------------------------------------------------------- the job's own thread

    def _run_to_end(self) -> None:
        """Run the job to its end, and publish in the handle how it ended. Never raises."""
        began_s, handle = self._clock.monotonic(), self.handle
        status, result, error = JobStatus.FAILED, None, None
        try:
            found = self._run_attempts()
            self.records, result, status = found.records, found.job, JobStatus.FINISHED
            handle.results.set_accumulators(found.accumulators)
            self._at_result(found.job)
        except BaseException as raised:
            error = raised
            if handle.requests.cancel_requested and not isinstance(raised, OutputsPartlyVisibleError):
                error = JobCancelledError(handle.job_name)
                status = JobStatus.SUSPENDED if handle.requests.suspend_requested else JobStatus.CANCELED
            else:
                self._note_failure(raised)
        self._publish_end(status, result, error, self._clock.monotonic() - began_s)

    def _publish_end(
        self, status: JobStatus, result: JobExecutionResult | None, error: BaseException | None, seconds: float
    ) -> None:
        handle = self.handle
        self._ended.set()
        self._is_within_reach.wait()
        ended = replace(handle.progress(), status=status)
        handle.log.info(_log, "%s", end_line(handle.job_name, ended, seconds))
        handle.log.end(status.name, str(error) if status is JobStatus.FAILED else None)
        self._statistics.end(status)
        handle.end(status, result, error)

    def _run_attempts(self) -> PlanResult:
        """Run the plan, from its beginning again after a failure if the restart strategy says so."""
        strategy = restart_strategy(self._settings.restart, random.Random())
        restarts, name = 0, self.handle.job_name
        while True:
            try:
                return self._runner(self._plan, self._run)
            except JobExecutionError as error:
                if error.cause is None or not may_be_retried(error.cause) or self.handle.requests.cancel_requested:
                    raise
                decision = strategy.on_failure(round(self._clock.monotonic() * 1000))
                if not decision.restart and not restarts:
                    raise
                if not decision.restart:
                    raise job_error(
                        name, error.cause, log_path=error.log_path, restarts=restarts, refusal=decision.reason
                    ) from None
                restarts += 1
                self._note_failure(error)
                self._statistics.restart()
                progress, what = self.handle.progress(), text_of(error.cause).partition("\n")[0]
                self.handle.view.update(
                    replace(progress, status=JobStatus.RESTARTING, restarts=restarts, last_failure=what)
                )
                self.handle.log.warning(_log, "job %r starts again (restart %d): %s", name, restarts, error.cause)
                if self.handle.requests.wait_for_cancel(decision.delay_ms / 1000):
                    raise

    def _note_failure(self, error: BaseException) -> None:
        cause = error.cause if isinstance(error, JobExecutionError) and error.cause is not None else error
        self._statistics.fail(Failure(cause, subtasks=self._failed_subtasks(cause)))

    def _failed_subtasks(self, error: BaseException) -> frozenset[SubtaskId]:
        """Return the subtask whose function failed, if the error names one."""
        name, index = getattr(error, "operator_name", None), getattr(error, "subtask_index", None)
        for vertex in self._statistics.graph.vertices:
            if isinstance(index, int) and any(operator.name == name for operator in vertex.operators):
                return frozenset({SubtaskId(vertex.id, index % vertex.parallelism)})
        return frozenset()

    # --------------------------------------------------------------------------------------- the thread that cancels

    def _begin_to_cancel(self) -> None:
        threading.Thread(target=copy_context().run, args=(self._cancel_until_ended,), daemon=True).start()

    def _cancel_until_ended(self) -> None:
        while not self._ended.is_set():
            try:
                self._cancel(self._run)
            except Exception as error:  # the session has ended, and the job with it
                _log.debug("the Spark jobs of %s could not be cancelled: %s", self.handle.job_name, error)
            self._ended.wait(_CANCEL_AGAIN_S)


def _execution_settings(run: RunSettings) -> ExecutionSettings:
    return ExecutionSettings(batch=True, in_slots=False, job_parameters=dict(run.job_parameters))


def _do_nothing() -> None:
    pass
