"""The job graph of a DataSet program: a vertex for each stage of Spark, and the exchanges between them.

The plan is translated as for a run, but to stages that are only noted. A run makes the same stages, and finds their
vertices by the place of each in the plan (`StageKey`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from ekorn.batch.iterations.step_plan import IterationTables, StepPlan
from ekorn.batch.plan.data_set_specs import FrameInputSpec, InputSpec
from ekorn.batch.plan.iteration_specs import BulkIterationSpec, DeltaIterationSpec
from ekorn.batch.plan.operators import Plan, PlanOperator
from ekorn.batch.plan.partitioning import Partitioning
from ekorn.batch.planner.explained_plan import way_of_exit
from ekorn.batch.planner.plan_runner import exit_of
from ekorn.batch.planner.plan_translation import Translation
from ekorn.batch.planner.rdds import NoRdds
from ekorn.batch.planner.run_watch import NoWatch, StageKey
from ekorn.batch.planner.stages import Flow, Stages
from ekorn.batch.tasks.exits import CountExit, ForwardExit, ShuffleExit, StageExit
from ekorn.batch.tasks.record_operators import ReadSplits
from ekorn.batch.tasks.task_context import TaskJobInfo
from ekorn.batch.tasks.task_operator import TaskOperator
from ekorn.graph.job_graph import (
    ChainLink,
    Exchange,
    ExecutionSettings,
    JobGraph,
    Operator,
    OperatorId,
    Vertex,
    VertexId,
)
from ekorn.graph.specs import Forward, Shipped, TaskStepSpec
from ekorn.types.data_types import RowType

__all__ = ["DrawnGraph", "IterationVertex", "drawn_graph"]

_FORWARD = "Forward"
_BROADCAST = "Broadcast"


class IterationVertex(NamedTuple):
    """The vertex of an iteration, and the most supersteps that it runs."""

    vertex: VertexId
    most: int


@dataclass(frozen=True)
class DrawnGraph:
    """A job graph, and where the stages of a run are in it.

    Attributes:
        graph: The graph.
        vertices: The vertex of each stage, by its place in the plan.
        iterations: The iterations, by their number in the plan.
    """

    graph: JobGraph
    vertices: Mapping[StageKey, VertexId]
    iterations: Mapping[int, IterationVertex]


def drawn_graph(plan: Plan, name: str, settings: ExecutionSettings) -> DrawnGraph:
    """Return the job graph of a plan. Nothing runs."""
    stages = _DrawnStages(plan)
    flows = _DrawnTranslation(stages, plan, iterations=_DrawnIterations(stages)).flows
    for sink in plan.sinks:
        stages.translate(sink)
        stages.written(flows[sink], exit_of(sink))
    vertices = tuple(_vertex(VertexId(number), drawn) for number, drawn in enumerate(stages.drawn))
    exchanges = [
        (source, VertexId(number), way)
        for number, drawn in enumerate(stages.drawn)
        for source, way in dict.fromkeys(drawn.inputs)
    ]
    graph = JobGraph(
        name,
        _with_levels(vertices, exchanges),
        tuple(
            Exchange(
                number,
                VertexId(source),
                len(vertices[source].operators) - 1,
                target,
                Forward() if way == _FORWARD else Shipped(way),
            )
            for number, (source, target, way) in enumerate(exchanges)
        ),
        replace(settings, batch=True, in_slots=False),
    )
    found = {key: VertexId(number) for number, drawn in enumerate(stages.drawn) for key in drawn.keys}
    return DrawnGraph(graph, found, stages.iterations)


def _vertex(number: VertexId, drawn: _DrawnStage) -> Vertex:
    operators = tuple(
        Operator(_id(number, place), None, name, TaskStepSpec(is_source=drawn.is_source and place == 0))
        for place, name in enumerate(drawn.names)
    )
    links = tuple(ChainLink(place, place + 1) for place in range(len(operators) - 1))
    return Vertex(number, " -> ".join(drawn.names), operators, links, drawn.partitions, drawn.partitions)


def _id(vertex: int, place: int) -> OperatorId:
    return OperatorId(hashlib.sha256(f"stage {vertex}, operator {place}".encode()).hexdigest()[:32])


def _with_levels(vertices: Sequence[Vertex], exchanges: Sequence[tuple[int, int, str]]) -> tuple[Vertex, ...]:
    levels: dict[int, int] = {}
    for vertex in vertices:  # inputs are drawn first
        levels[vertex.id] = max(
            (levels[source] + 1 for source, target, _ in exchanges if target == vertex.id), default=0
        )
    return tuple(replace(vertex, level=levels[vertex.id]) for vertex in vertices)


@dataclass
class _DrawnStage:
    keys: list[StageKey]
    names: list[str]
    partitions: int
    inputs: list[tuple[int, str]]  # the stages that it reads, and how their records get here
    is_source: bool = False
    leaving: StageExit | None = None


_Drawn = tuple[tuple[int, str], ...]
"""What stands for an RDD: the stages that compute it, and how their records get to the next one."""


@dataclass
class _Broadcast:
    """What stands for a broadcast."""

    drawn: _Drawn


class _DrawnRdds(NoRdds):
    """RDDs that know the stages that they come from."""

    def __init__(self, drawn: Sequence[_DrawnStage]) -> None:
        self._drawn = drawn

    def of_elements(self, partitions: Sequence[list[Any]]) -> Any:
        return ()

    def of_frame(self, frame: Any, row_type: RowType) -> Any:
        raise AssertionError("a frame is not asked for its partitions before the job runs")

    def in_order(self, rdd: Any) -> Any:
        return rdd

    def shuffled(self, rdd: Any, partitions: int) -> Any:
        return tuple((stage, self._way(stage)) for stage, _ in rdd)

    def _way(self, stage: int) -> str:
        leaving = self._drawn[stage].leaving
        assert isinstance(leaving, ShuffleExit)
        return way_of_exit(leaving)

    def union(self, rdds: Sequence[Any]) -> Any:
        return tuple(each for rdd in rdds for each in rdd)

    def fewer(self, rdd: Any, partitions: int) -> Any:
        return rdd

    def kept(self, rdd: Any) -> Any:
        return rdd


class _Numbers(NoWatch):
    """Numbers the operators of a plan."""

    def __init__(self, plan: Plan) -> None:
        self.numbers = {operator: number for number, operator in enumerate(plan.operators())}

    def number_of(self, operator: PlanOperator) -> int | None:  # type: ignore[override]
        return self.numbers.get(operator)


class _DrawnStages(Stages):
    """Stages that are noted, and not made."""

    def __init__(self, plan: Plan) -> None:
        self.drawn: list[_DrawnStage] = []
        self.iterations: dict[int, IterationVertex] = {}
        self.numbers = _Numbers(plan)
        super().__init__(_DrawnRdds(self.drawn), TaskJobInfo("", ""), watch=self.numbers)

    def frame_input(self, partitions: int) -> Flow:
        """Return the flow of a DataFrame's rows, which no stage of ours computes."""
        return Flow((), "blobs", partitions)

    def collected(self, flow: Flow, leaving: StageExit) -> list[Any]:
        self.written(flow, leaving)
        return [0] * flow.partitions if isinstance(leaving, CountExit) else []

    def broadcast(self, flow: Flow, name: str) -> Any:
        return _Broadcast(self.written(flow, ForwardExit(name)))

    def iterated(self, operator: PlanOperator, flows: Sequence[Flow], most: int) -> Flow:
        """Note an iteration as a stage, with the steps before it that it runs itself."""
        number = self.numbers.numbers[operator]
        steps = [each for flow in flows for each in flow.chain]
        inputs = [each for flow in flows for each in flow.rdd] + _shared_inputs(steps)
        self.iterations[number] = IterationVertex(VertexId(len(self.drawn)), most)
        names = _without_repetitions([*[each.name for each in steps], operator.name])
        is_source = any(flow.reads == "splits" for flow in flows)
        keys = [StageKey(number, -1)]
        self.drawn.append(_DrawnStage(keys, names, operator.parallelism, inputs, is_source))
        return Flow(((len(self.drawn) - 1, _FORWARD),), "blobs", operator.parallelism)

    def _staged(self, flow: Flow, leaving: StageExit, *, keeps_partitions: bool) -> Any:
        key = self._key(flow, leaving)
        assert key is not None, "every stage has its place in the plan"
        if not flow.chain and not isinstance(leaving, ShuffleExit | CountExit):
            return flow.rdd  # the blobs pass as they are
        steps = list(flow.chain)
        names = [each.name for each in steps]
        if not steps or (type(leaving) is not ForwardExit and isinstance(leaving, ForwardExit)):
            names.append(getattr(leaving, "name", "exit"))
        known = next((each for each in self.drawn if key in each.keys), None)
        if known is None:
            inputs = [*flow.rdd, *_shared_inputs(steps)]
            is_source = flow.reads == "splits" or not inputs
            known = _DrawnStage([key], _without_repetitions(names), flow.partitions, inputs, is_source)
            self.drawn.append(known)
        known.leaving = leaving
        return ((self.drawn.index(known), _FORWARD),)


def _shared_inputs(steps: Sequence[TaskOperator]) -> list[tuple[int, str]]:
    """Return the stages whose records the steps get whole."""
    found = [each for step in steps for each in step.shared.values() if isinstance(each, _Broadcast)]
    return [(stage, _BROADCAST) for each in found for stage, _ in each.drawn]


def _without_repetitions(names: Sequence[str]) -> list[str]:
    """Return names without those that repeat the one before: a step and the check of its results have one name."""
    return [name for place, name in enumerate(names) if place == 0 or names[place - 1] != name]


class _DrawnTranslation(Translation):
    stages: _DrawnStages

    def _translated(self, operator: PlanOperator) -> Flow:
        match operator.spec:
            case InputSpec() as spec:  # its splits are found when the job runs
                splits = self.stages.source([], operator.parallelism, ReadSplits(operator.name))
                return splits.partitioned(spec.partitioning())
            case FrameInputSpec():
                return self.stages.frame_input(operator.parallelism)
        return super()._translated(operator)


@dataclass
class _DrawnIterations:
    stages: _DrawnStages
    _plans: dict[PlanOperator, StepPlan] = field(default_factory=dict)

    def run(self, operator: PlanOperator, stages: Stages, flows: Mapping[PlanOperator, Flow]) -> Flow:
        """Note an iteration, as `IterationRunner.run` runs it."""
        spec = operator.spec
        assert isinstance(spec, BulkIterationSpec | DeltaIterationSpec)
        plan = StepPlan(operator, IterationTables())
        in_superstep = set(plan.superstep.operators())
        given = [stages.kept(flows[each]) if each in in_superstep else flows[each] for each in operator.inputs]
        iterated = self.stages.iterated(operator, given, spec.limits.max_iterations)
        result = stages.then(iterated, ReadSplits(operator.name))
        keys = spec.keys if isinstance(spec, DeltaIterationSpec) else None
        return result.partitioned(None if keys is None else Partitioning(keys))
