"""Runs iterations: the loop over supersteps, and its repetition when a slot is lost.

An attempt writes the initial data to resident tables, then runs one Spark job for each superstep. The writes of a job's
tasks take effect when the job has ended, so all tasks of a superstep see the data of the previous one, and a task that
Spark repeats changes nothing. If a slot is lost, its partitions are lost too, and the next attempt begins with the
initial data.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from ekorn.batch.iterations.step_plan import IterationTables, StepPlan, TableSource
from ekorn.batch.plan.iteration_specs import BulkIterationSpec, DeltaIterationSpec, IterationLimits
from ekorn.batch.plan.operators import Plan, PlanOperator
from ekorn.batch.plan.partitioning import Partitioning
from ekorn.batch.plan.record_keys import Keys
from ekorn.batch.planner.plan_translation import Translation
from ekorn.batch.planner.rdds import NoRdds, Rdds, SparkRdds
from ekorn.batch.planner.stages import Flow, Stages
from ekorn.batch.tasks.blobs import OperatorReport, OperatorSubtask
from ekorn.batch.tasks.exits import ForwardExit
from ekorn.batch.tasks.record_operators import ReadSplits
from ekorn.batch.tasks.superstep import Superstep
from ekorn.batch.tasks.table_operators import Written
from ekorn.batch.tasks.task_context import TaskJobInfo
from ekorn.batch.tasks.task_errors import carried_error
from ekorn.config import options
from ekorn.config.configuration import Configuration
from ekorn.config.settings.deployment_settings import LinkSettings, PythonDependencies
from ekorn.config.settings.fields import read_settings
from ekorn.config.settings.job_settings import check_heartbeat
from ekorn.engine.slots.slot_handle import Heartbeat
from ekorn.engine.slots.slot_pool import SlotPool
from ekorn.engine.spark.driver_side.cluster import slots_beside
from ekorn.errors import SlotLostError
from ekorn.functions.data_sets.iteration_context import Aggregator
from ekorn.functions.results.accumulators import Accumulator

__all__ = [
    "IterationRunner",
    "SparkSuperstepEngine",
    "SuperstepEnd",
    "SuperstepEngine",
    "carry_partitioning",
    "is_last",
    "merged_aggregates",
]

_log = logging.getLogger(__name__)

Flows = Mapping[PlanOperator, Flow]
Reports = dict[OperatorSubtask, OperatorReport]


@dataclass
class _Progress:
    """What an attempt of an iteration hands on from one superstep to the next."""

    aggregates: dict[str, Any] = field(default_factory=dict)
    fields: dict[OperatorSubtask, bytes] = field(default_factory=dict)
    accumulators: list[Mapping[str, Accumulator[Any, Any]]] = field(default_factory=list)


class IterationRunner:
    """Runs the iterations of one job.

    Args:
        engine: Starts the slots and makes the RDDs of the supersteps.
        facts: The job.

    Attributes:
        reports: What operators outside of iterations reported in jobs of iterations.
        accumulators: The accumulators of functions inside iterations.
    """

    def __init__(self, engine: SuperstepEngine, facts: TaskJobInfo) -> None:
        self._engine = engine
        self._facts = facts
        self._configuration = Configuration.from_dict(facts.configuration)
        self._attempts_left = options.ITERATION_ATTEMPTS.read(self._configuration)
        self._running: list[IterationTables] = []
        self.reports: Reports = {}
        self.accumulators: list[Mapping[str, Accumulator[Any, Any]]] = []

    def run(self, operator: PlanOperator, stages: Stages, flows: Flows) -> Flow:
        """Run an iteration to its end; return the flow of its result, which can be read until `close`."""
        spec = operator.spec
        assert isinstance(spec, BulkIterationSpec | DeltaIterationSpec)
        tables = IterationTables()
        plan = StepPlan(operator, tables)
        tables.start(self._engine.slots(operator.parallelism), options.SLOT_MEMORY.read(self._configuration))
        self._running.append(tables)
        in_superstep = set(plan.superstep.operators())
        given = {each: stages.kept(flows[each]) if each in in_superstep else flows[each] for each in operator.inputs}
        progress = None
        while progress is None:
            try:
                with stages.iterating(operator):
                    progress = self._attempt(plan, tables, operator, stages, given)
            except Exception as error:
                if not self._may_restart(error, [tables]):
                    raise
                _log.warning("iteration %r starts again: %s", operator.name, tables.lost() or "a slot was lost")
        stages.watch.ended(operator)
        self.accumulators += progress.accumulators
        splits = TableSource(tables, plan.result_table).splits(operator.parallelism, {})
        result = stages.source(splits, operator.parallelism, ReadSplits(operator.name))
        known = Partitioning(spec.keys) if isinstance(spec, DeltaIterationSpec) else None
        return result.partitioned(known or tables.partitionings.get(plan.result_table))

    def lost_a_result(self, error: Exception) -> bool:
        """Return whether a failure after an iteration means that the whole plan has to run again.

        The result of an iteration is read from its slots. If one is lost, so is the result.
        """
        if not self._running or not self._may_restart(error, self._running):
            return False
        _log.warning("the job starts again: the result of an iteration was lost")
        return True

    def drop_reports(self) -> None:
        """Drop all reports: the plan starts again, and its operators report again."""
        self.reports.clear()
        self.accumulators.clear()

    def close(self) -> None:
        """End the slots of all iterations."""
        while self._running:
            self._running.pop().close()

    def _attempt(
        self, plan: StepPlan, tables: IterationTables, operator: PlanOperator, stages: Stages, given: Flows
    ) -> _Progress:
        spec = operator.spec
        assert isinstance(spec, BulkIterationSpec | DeltaIterationSpec)
        limits = spec.limits
        with self._engine.starting_slots():
            tables.begin()
        written, _ = self._run(plan.beginning(carry_partitioning(plan, tables, given)), stages, given)
        tables.commit(written)
        progress = _Progress()
        first_number = stages.next_number
        number = 0
        while True:
            number += 1
            superstep = Superstep(number, limits.aggregators, progress.aggregates, progress.fields)
            stages.watch.superstep(operator, number)
            rdds = self._engine.rdds(f"{operator.name}: superstep {number}")
            facts = replace(self._facts, superstep=superstep)
            step = Stages(rdds, facts, first_number, stages.watch).inside(stages, given.values())
            try:
                written, reports = self._run(plan.superstep, step, given)
            finally:
                with contextlib.suppress(Exception):  # the session has ended, and its data with it
                    step.release()
                    step.drop_shuffles()
            tables.commit(written)
            self._take(reports, first_number, progress)
            of_subtasks = (reports[source].aggregates for source in sorted(reports))
            progress.aggregates = merged_aggregates(limits.aggregators, of_subtasks)
            if is_last(SuperstepEnd(number, progress.aggregates, _goes_on_with(plan, spec, written)), limits):
                _log.info("iteration %r ended after superstep %d", operator.name, number)
                return progress

    def _may_restart(self, error: Exception, tables: Sequence[IterationTables]) -> bool:
        """Return whether a failure is the loss of a slot, and another attempt is allowed."""
        if not any(_is_loss(error, each) for each in tables):
            return False
        self._attempts_left -= 1
        return self._attempts_left > 0

    def _run(self, plan: Plan, stages: Stages, flows: Flows) -> tuple[list[Written], Reports]:
        """Run a plan as one Spark job; return what its tasks wrote and reported."""
        (sink,) = plan.sinks
        flow = Translation(stages, plan, flows).flows[sink]
        written: list[Written] = stages.collected(flow, ForwardExit(sink.name))
        return written, stages.reports

    def _take(self, reports: Reports, first_number: int, progress: _Progress) -> None:
        """Keep what the functions of a superstep reported."""
        for source, report in reports.items():
            if source.operator_number < first_number:  # an operator outside of the iteration, whose result Spark kept
                self.reports[source] = report
                continue
            if report.fields is not None:
                progress.fields[source] = report.fields
            if report.accumulators:
                progress.accumulators.append(report.accumulators)


def _goes_on_with(plan: StepPlan, spec: BulkIterationSpec | DeltaIterationSpec, written: list[Written]) -> int | None:
    """Return how many records there are for the next superstep, if their number can end the iteration."""
    if isinstance(spec, BulkIterationSpec):
        if spec.criterion is None:
            return None
        return sum(each.record_count for each in written if not each.writes)
    return sum(
        each.record_count for each in written if any(write.target.table == plan.work_table for write in each.writes)
    )


def _is_loss(error: Exception, tables: IterationTables) -> bool:
    """Return whether an attempt failed because a slot is gone, and not because of the program."""
    if isinstance(error, SlotLostError):
        return True
    carried = carried_error(str(error))
    if carried is not None:
        return carried.original_type == SlotLostError.__qualname__
    return tables.lost() is not None


def carry_partitioning(plan: StepPlan, tables: IterationTables, given: Mapping[PlanOperator, Flow]) -> Keys | None:
    """Let the supersteps read their data as partitioned by key if it is; return the keys, or None."""
    tables.partitionings.clear()
    found = _of_next_data(plan, given)
    if found is None or found.partitioner is not None:
        return None
    tables.partitionings[plan.data_table] = found
    if _of_next_data(plan, given) == found:
        return found.keys
    tables.partitionings.clear()
    return None


def _of_next_data(plan: StepPlan, given: Mapping[PlanOperator, Flow]) -> Partitioning | None:
    """Return how a superstep leaves its data, by translating its plan without Spark."""
    if plan.delta_keys is not None:
        return Partitioning(plan.delta_keys)
    flows = {operator: replace(flow, rdd=None) for operator, flow in given.items()}
    translated = Translation(Stages(NoRdds(), TaskJobInfo("", "")), plan.superstep, flows).flows[plan.next_data]
    return translated.partitioning if translated.partitions == plan.parallelism else None


@dataclass(frozen=True)
class SuperstepEnd:
    """The outcome of a superstep.

    Attributes:
        number: The number of the superstep, from 1.
        aggregates: The merged values of the aggregators, by name.
        goes_on_with: The number of records that let the iteration go on: those of the termination criterion, or of
            the next work set. None if neither is there.
    """

    number: int
    aggregates: Mapping[str, Any]
    goes_on_with: int | None


def is_last(end: SuperstepEnd, limits: IterationLimits) -> bool:
    """Return whether an iteration ends after a superstep."""
    if end.number >= limits.max_iterations or end.goes_on_with == 0:
        return True
    wanted = limits.convergence
    return wanted is not None and wanted.criterion.is_converged(end.number, end.aggregates[wanted.aggregator])


def merged_aggregates(
    aggregators: Mapping[str, Aggregator[Any]], of_subtasks: Iterable[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the value of each aggregator over all subtasks, given their values in a fixed order."""
    merged = {name: deepcopy(each) for name, each in aggregators.items()}
    for each in merged.values():
        each.reset()
    for values in of_subtasks:
        for name, value in values.items():
            merged[name].aggregate(value)
    return {name: each.get_aggregate() for name, each in merged.items()}


class SuperstepEngine(Protocol):
    """The parts of the engine that the loop over supersteps needs."""

    def slots(self, most: int) -> SlotPool:
        """Return a pool of slots for the tables of an iteration: one for each core, and not more than `most`."""
        ...

    def starting_slots(self) -> contextlib.AbstractContextManager[None]:
        """Return a context in which slots are started."""
        ...

    def rdds(self, description: str) -> Rdds:
        """Return a factory for the RDDs of one superstep."""
        ...


class SparkSuperstepEngine:
    """Runs iterations on Spark, with slots beside its tasks."""

    def __init__(self, context: Any, configuration: dict[str, str]) -> None:
        self._context = context
        self._configuration = Configuration.from_dict(configuration)
        self._rdds: SparkRdds | None = None

    def slots(self, most: int) -> SlotPool:
        configuration = self._configuration
        interval_ms = options.HEARTBEAT_INTERVAL.read(configuration)
        timeout_ms = options.HEARTBEAT_TIMEOUT.read(configuration)
        check_heartbeat(interval_ms, timeout_ms)
        heartbeat = Heartbeat(interval_s=interval_ms / 1000, timeout_s=timeout_ms / 1000)
        pool = slots_beside(
            self._context,
            min(most, self._context.defaultParallelism),
            read_settings(PythonDependencies, configuration),
            heartbeat,
            read_settings(LinkSettings, configuration),
        )
        group = self._context.getLocalProperty(_GROUP)

        def cancel(number: int) -> None:
            with contextlib.suppress(Exception):  # no job runs, or the session has ended
                self._context.cancelJobGroup(group)  # its tasks wait for an answer that will not come

        pool.on_lost = cancel
        return pool

    @contextlib.contextmanager
    def starting_slots(self) -> Iterator[None]:
        """Restore the job group of this thread, which the start of slots on a cluster replaces."""
        before = {key: self._context.getLocalProperty(key) for key in (_GROUP, _DESCRIPTION, _INTERRUPT)}
        try:
            yield
        finally:
            for key, value in before.items():
                self._context.setLocalProperty(key, value)

    def rdds(self, description: str) -> Rdds:
        self._context.setLocalProperty(_DESCRIPTION, description)
        if self._rdds is None:
            self._rdds = SparkRdds(self._context)
        return self._rdds.again()


_GROUP = "spark.jobGroup.id"
_DESCRIPTION = "spark.job.description"
_INTERRUPT = "spark.job.interruptOnCancel"
