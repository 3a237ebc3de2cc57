"""Runs a plan on Spark, and turns what Spark raises into errors that a user can act on."""

from __future__ import annotations

import contextlib
import logging
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ekorn.batch.iterations.iteration_runner import IterationRunner, SparkSuperstepEngine, SuperstepEngine
from ekorn.batch.outputs.output import Output
from ekorn.batch.plan.data_set_specs import CountSpec, FrameSpec, OutputSpec
from ekorn.batch.plan.operators import IterationSpec, Plan, PlanOperator
from ekorn.batch.planner.plan_translation import Translation
from ekorn.batch.planner.rdds import Rdds, SparkRdds
from ekorn.batch.planner.run_watch import NoWatch, RunWatch
from ekorn.batch.planner.spark_progress import watched_on_spark
from ekorn.batch.planner.stages import Flow, Stages
from ekorn.batch.tasks.blobs import OperatorReport, OperatorSubtask
from ekorn.batch.tasks.exits import CountExit, ForwardExit, StageExit
from ekorn.batch.tasks.task_context import TaskJobInfo, packed_files
from ekorn.batch.tasks.task_errors import carried_error
from ekorn.config import options
from ekorn.config.configuration import Configuration
from ekorn.config.job_id import JobID
from ekorn.config.restart_strategy import RestartStrategyConfiguration
from ekorn.driver.recovery.failures import job_error
from ekorn.engine.spark.driver_side.cluster import ship_package
from ekorn.engine.spark.driver_side.session import (
    SparkLog,
    first_line_of,
    is_started_by_us,
    loss_of,
    running_context,
    spark_context,
)
from ekorn.engine.spark.driver_side.worker_python import compare_pythons
from ekorn.errors import (
    DeploymentError,
    JobExecutionError,
    OutputsPartlyVisibleError,
    RecomputedInputError,
    SparkSessionLostError,
)
from ekorn.functions.results.accumulators import merge_accumulators
from ekorn.functions.results.job_execution_result import JobExecutionResult
from ekorn.graph.job_graph import CachedFile

__all__ = [
    "PlanOutputs",
    "PlanResult",
    "RunSettings",
    "cancel",
    "default_parallelism",
    "engine_description",
    "error_of_function",
    "exit_of",
    "run",
    "run_as_this_thread",
    "run_on",
    "start",
]


_log = logging.getLogger(__name__)

_MOST_RUNS = 4
_CANNOT_ROLL_BACK = (  # parts of the message with which Spark's scheduler fails a job over lost results
    "indeterminate output was failed and retried. However, Spark cannot rollback",
    "Task with indeterminate results from old attempt succeeded",
    "ollback failed due to: ",
    "please re-run the query to ensure data correctness",
)
_GROUP_PROPERTIES = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")


@dataclass(frozen=True)
class RunSettings:
    """The settings with which a plan is run."""

    job_name: str
    configuration: dict[str, str]
    job_parameters: dict[str, str]
    cached_files: tuple[CachedFile, ...] = ()
    spark_session: Any = None
    restart: RestartStrategyConfiguration | None = None  # None uses the strategy of the configuration
    job_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    watch: RunWatch = field(default_factory=NoWatch, compare=False, repr=False)


@dataclass(frozen=True)
class PlanResult:
    """The result of a run.

    Attributes:
        records: What each sink sent to the driver.
        job: The id, running time and values of the accumulators.
        accumulators: The accumulators, each merged over all subtasks.
    """

    records: list[list[Any]]
    job: JobExecutionResult
    accumulators: dict[str, Any] = field(default_factory=dict)


def start(settings: RunSettings) -> None:
    """Start the Spark that would run a plan, if it does not run yet."""
    spark_context(settings.configuration, settings.spark_session)


def default_parallelism(settings: RunSettings) -> int:
    """Return how many tasks Spark runs at a time."""
    return int(spark_context(settings.configuration, settings.spark_session).defaultParallelism)


def engine_description(settings: RunSettings) -> str:
    """Return the name of what runs a plan, for people to read. Starts Spark if it does not run yet."""
    context = spark_context(settings.configuration, settings.spark_session)
    return f"embedded Spark {context.master}" if context.master.startswith("local") else f"Spark at {context.master}"


def run_as_this_thread(plan: Plan, settings: RunSettings) -> Callable[[Plan, RunSettings], PlanResult]:
    """Return a function that runs a plan on another thread as this one would: with the same session and properties."""
    context = running_context() if settings.spark_session is None else settings.spark_session.sparkContext
    if context is None or context._jsc is None:
        return run
    sql = sys.modules.get("pyspark.sql")
    session = settings.spark_session
    if session is None and sql is not None and any(isinstance(sink.spec, FrameSpec) for sink in plan.sinks):
        session = sql.SparkSession.getActiveSession()
    properties = context._jsc.sc().getLocalProperties().clone()  # such as the scheduler's pool

    def run_there(plan: Plan, settings: RunSettings) -> PlanResult:
        if context._jsc is not None:
            context._jsc.sc().setLocalProperties(properties)
        return run(plan, settings, session)

    return run_there


def run(plan: Plan, settings: RunSettings, frame_session: Any = None) -> PlanResult:
    """Run all sinks of a plan on Spark. Data that several sinks read is computed once.

    Args:
        plan: The plan.
        settings: The settings of the run.
        frame_session: The session of the DataFrames that are made; None for the active one.

    Raises:
        JobExecutionError: A function of the program failed.
        DeploymentError: Spark could not run the job.
    """
    context = spark_context(settings.configuration, settings.spark_session)
    if not context.master.startswith("local"):
        ship_package(context)
        compare_pythons(context)
    engine = SparkSuperstepEngine(context, settings.configuration)
    with _in_job_group(context, settings), watched_on_spark(context, settings.job_id, settings.watch):
        try:
            settings.watch.check()
            return run_on(SparkRdds(context, frame_session), engine, plan, settings, settings.job_id)
        except Exception as error:
            raise explained(error, context, settings.job_name) from None


def cancel(settings: RunSettings) -> None:
    """Cancel the Spark jobs of a run that are active now. Called by another thread than that of the run.

    A run whose Spark does not run yet has no jobs: nothing is started to cancel them.
    """
    context = running_context() if settings.spark_session is None else settings.spark_session.sparkContext
    if context is not None:
        context.cancelJobGroup(_group(settings))


def _group(settings: RunSettings) -> str:
    return f"ekorn-{settings.job_id}"


def run_on(rdds: Rdds, engine: SuperstepEngine, plan: Plan, settings: RunSettings, job_id: str) -> PlanResult:
    """Run all sinks of a plan where the partitions are."""
    started = time.monotonic()
    facts = TaskJobInfo(
        job_id,
        settings.job_name,
        settings.configuration,
        settings.job_parameters,
        packed_files(settings.cached_files, None if rdds.local else rdds.broadcast),
        all_frames=options.ERROR_FRAMES.read(Configuration.from_dict(settings.configuration)) == "all",
    )
    iterations = IterationRunner(engine, facts)
    with PlanOutputs(plan, job_id) as outputs:
        runs = PlanRuns()
        records = None
        while (
            records is None
        ):  # again if results were lost before all sinks had read them and cannot be recomputed alone
            settings.watch.begin()
            stages = Stages(rdds, facts, watch=settings.watch)
            records, reports = _run_sinks(stages, plan, iterations, runs)
        settings.watch.check()
        outputs.commit(records)
    reports |= iterations.reports
    merged = merge_accumulators([*iterations.accumulators, *[report.accumulators for report in reports.values()]])
    results = {name: each if isinstance(each, Exception) else each.get_local_value() for name, each in merged.items()}
    runtime_ms = int((time.monotonic() - started) * 1000)
    return PlanResult(records, JobExecutionResult(JobID(job_id), runtime_ms, results), dict(merged))


def _run_sinks(
    stages: Stages, plan: Plan, iterations: IterationRunner, runs: PlanRuns
) -> tuple[list[list[Any]] | None, dict[OperatorSubtask, OperatorReport]]:
    """Run all sinks; return what they sent to the driver, and all reports. None if the plan has to be run again."""
    try:
        flows = Translation(stages, plan, iterations=iterations).flows
        results = []
        for sink in plan.sinks:
            stages.translate(sink)
            results.append(_result(stages, sink, flows[sink]))
        return results, stages.reports
    except Exception as error:
        if not iterations.lost_a_result(error) and not runs.may_restart(error):
            raise
        iterations.drop_reports()
        return None, {}
    finally:
        iterations.close()
        with contextlib.suppress(Exception):  # the session has ended, and its data with it
            stages.release()


class PlanRuns:
    """Counts how often a plan has started again because Spark could not recompute lost results alone."""

    def __init__(self) -> None:
        self._left = _MOST_RUNS

    def may_restart(self, error: Exception) -> bool:
        """Return whether a failure means that the whole plan is to run again."""
        carried = carried_error(str(error))
        recomputed = carried is not None and carried.original_type == RecomputedInputError.__qualname__
        not_rolled_back = carried is None and any(each in str(error) for each in _CANNOT_ROLL_BACK)
        if not (recomputed or not_rolled_back):
            return False
        self._left -= 1
        if self._left > 0:
            _log.warning("the job starts again: an executor was lost with results that depend on the order of records")
        return self._left > 0


def explained(error: Exception, context: Any, job_name: str) -> Exception:
    """Return the error of a failed job, without the JVM's frames."""
    if carried_error(str(error)) is not None:
        log_path = SparkLog.keep() if is_started_by_us(context) else None
        return error_of_function(error, job_name, log_path) or error
    if not type(error).__module__.startswith(("py4j", "pyspark")):
        return error
    why = loss_of(context)
    if why is not None:
        return SparkSessionLostError(why, SparkLog.keep())
    log = SparkLog.keep() or "the log of your session"
    return DeploymentError(f"Spark could not run {job_name!r}: {first_line_of(error)}; Spark's log: {log}")


def error_of_function(error: Exception, job_name: str, log_path: str | None) -> JobExecutionError | None:
    """Return the error of a job whose task failed; None if the error is not of a task's function."""
    found = carried_error(str(error))
    return None if found is None else job_error(job_name, found, log_path=log_path, restarts=0, refusal=None)


def _result(stages: Stages, sink: PlanOperator, flow: Flow) -> list[Any]:
    if isinstance(sink.spec, FrameSpec):
        from_slots = any(isinstance(each.spec, IterationSpec) for each in Plan((sink,)).operators())
        return [stages.frame(flow, sink.spec.row_type, copies=2 if from_slots else 1)]  # slots end with the job
    return stages.collected(flow, exit_of(sink))


def exit_of(sink: PlanOperator) -> StageExit:
    """Return how the records of a sink get to the driver."""
    return CountExit(sink.name) if isinstance(sink.spec, CountSpec) else ForwardExit(sink.name)


@contextlib.contextmanager
def _in_job_group(context: Any, settings: RunSettings) -> Iterator[None]:
    """Let all Spark jobs of a run belong together, so that an interrupt cancels them."""
    group = _group(settings)
    before = {key: context.getLocalProperty(key) for key in _GROUP_PROPERTIES}
    context.setJobGroup(group, settings.job_name, interruptOnCancel=False)
    try:
        yield
    except BaseException:
        with contextlib.suppress(Exception):  # no job runs, or the session has ended
            context.cancelJobGroup(group)
        raise
    finally:
        with contextlib.suppress(Exception):  # the session has ended
            for key, value in before.items():
                context.setLocalProperty(key, value)


@dataclass(frozen=True)
class _PlanOutput:
    """The output of one sink."""

    number: int  # the position of the sink in its plan
    sink: PlanOperator
    output: Output

    def __str__(self) -> str:
        return f"{self.sink.name!r}" + (f" ({self.sink.call_site})" if self.sink.call_site else "")


class PlanOutputs:
    """The outputs of a plan's sinks in one run.

    They are checked before the run, and made visible or removed at its end.

    Outputs become visible one after another, when all of them have been written. This is not one atomic step: outputs
    may be on different file systems, and a format of the program completes itself. Flink gives no such guarantee
    either.

    As a context manager it checks the outputs at the beginning, and removes what was written if the run fails.
    """

    def __init__(self, plan: Plan, job_id: str) -> None:
        self._outputs = [
            _PlanOutput(number, sink, sink.spec.output)
            for number, sink in enumerate(plan.sinks)
            if isinstance(sink.spec, OutputSpec)
        ]
        self._job_id = job_id
        self._begun: list[_PlanOutput] = []  # outputs that were begun and are not visible yet

    def __enter__(self) -> PlanOutputs:
        try:
            for each in self._outputs:
                each.output.begin(each.sink.parallelism)
                self._begun.append(each)
        except BaseException:
            self._abort()
            raise
        return self

    def commit(self, records: Sequence[list[Any]]) -> None:
        """Make all outputs visible.

        Args:
            records: What each sink of the plan sent to the driver.

        Raises:
            OutputsPartlyVisibleError: One of several outputs failed; the error names those that are visible.
        """
        for number, each in enumerate(self._outputs):
            try:
                each.output.commit(records[each.number], self._job_id, each.sink.parallelism)
            except Exception as error:
                if len(self._outputs) == 1:
                    raise
                visible, missing = self._outputs[:number], self._outputs[number + 1 :]
                raise OutputsPartlyVisibleError(
                    str(each), f"{type(error).__name__}: {error}", tuple(map(str, visible)), tuple(map(str, missing))
                ) from error
            self._begun.remove(each)

    def __exit__(self, kind: Any, error: BaseException | None, frames: Any) -> None:
        if error is not None:
            self._abort()

    def _abort(self) -> None:
        for each in self._begun:
            try:
                each.output.abort(self._job_id, each.sink.parallelism)
            except Exception as error:  # the earlier failure is the error to report
                _log.warning("what a failed job wrote could not be removed: %s", error)
