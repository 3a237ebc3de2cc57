"""How a plan would run: the operators, and how records get from one to the next. Nothing runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ekorn.batch.plan.data_set_specs import (
    CollectAllSpec,
    CountSpec,
    CrossSpec,
    FrameInputSpec,
    FrameSpec,
    InputSpec,
    JoinHint,
    JoinSpec,
    OutputSpec,
)
from ekorn.batch.plan.iteration_specs import BulkIterationSpec, DeltaIterationSpec
from ekorn.batch.plan.operators import Plan, PlanOperator
from ekorn.batch.plan.partitioning import Partitioning
from ekorn.batch.planner.plan_translation import Translation
from ekorn.batch.planner.rdds import NoRdds
from ekorn.batch.planner.stages import Flow, Stages
from ekorn.batch.tasks.exits import CountExit, CustomExit, DealingExit, KeyedExit, RangeExit, ShuffleExit, StageExit
from ekorn.batch.tasks.task_context import TaskJobInfo

__all__ = ["plan_as_json", "plan_as_text", "way_of_exit"]

_FORWARD = "Forward"


def plan_as_json(plan: Plan) -> str:
    """Return the operators of a plan as JSON, with the names of Flink's dumps of batch plans."""
    ways = _ways(plan)
    numbers = {operator: number for number, operator in enumerate(plan.operators(), 1)}
    nodes = []
    for operator, number in numbers.items():
        read = [(each, f"input {side}") for side, each in enumerate(operator.inputs)]
        read += [(each, f"broadcast {name}") for name, each in operator.broadcasts.items()]
        nodes.append(
            {
                "id": number,
                "type": _kind(operator),
                "pact": type(operator.spec).__name__.removesuffix("Spec"),
                "contents": operator.name,
                "parallelism": str(operator.parallelism),
                "predecessors": [
                    {"id": numbers[each], "side": side, "ship_strategy": ways[operator, place]}
                    for place, (each, side) in enumerate(read)
                ],
            }
        )
    return json.dumps({"nodes": nodes}, indent=2)


def plan_as_text(plan: Plan) -> str:
    """Return the operators of a plan as lines, each below what it reads, with the way of its records."""
    ways = _ways(plan)
    numbers = {operator: number for number, operator in enumerate(plan.operators(), 1)}
    lines = []
    for operator, number in numbers.items():
        read = ", ".join(f"{numbers[each]} ({ways[operator, place]})" for place, each in enumerate(operator.upstream()))
        lines.append(f"{number}: {operator.name}, parallelism {operator.parallelism}" + (f" <- {read}" if read else ""))
    return "\n".join(lines)


def _kind(operator: PlanOperator) -> str:
    match operator.spec:
        case InputSpec() | FrameInputSpec():
            return "source"
        case OutputSpec() | CollectAllSpec() | CountSpec() | FrameSpec():
            return "sink"
        case BulkIterationSpec():
            return "bulk_iteration"
        case DeltaIterationSpec():
            return "workset_iteration"
    return "pact"


def _ways(plan: Plan) -> dict[tuple[PlanOperator, int], str]:
    """Return how the records of each input get to each operator, by the operator and the number of the input."""
    stages = _PlanStages()
    _PlanTranslation(stages, plan, iterations=_NoIterations())
    ways = {}
    for operator in plan.operators():
        moved = stages.moves.get(operator, [])
        whole = _whole_side(operator)
        for side, each in enumerate(operator.upstream()):
            if side >= len(operator.inputs) or side == whole:
                ways[operator, side] = "Broadcast"
            elif len(operator.inputs) == 1:  # the flow that is shuffled may be that of a combiner
                ways[operator, side] = moved[0][1] if moved else _FORWARD
            else:
                found = [way for flow, way in moved if flow is stages.flow_of[each]]
                ways[operator, side] = found[0] if found else _FORWARD
    return ways


def _whole_side(operator: PlanOperator) -> int | None:
    """Return which input every subtask gets whole, if one is."""
    match operator.spec:
        case JoinSpec(hint=JoinHint.BROADCAST_HASH_FIRST):
            return 0
        case JoinSpec(hint=JoinHint.BROADCAST_HASH_SECOND):
            return 1
        case CrossSpec() as spec:
            return 0 if spec.broadcast_first else 1
    return None


class _PlanStages(Stages):
    """Stages that note what is shuffled, by the operator that asks for it."""

    def __init__(self) -> None:
        super().__init__(NoRdds(), TaskJobInfo("", ""))
        self.current: PlanOperator | None = None
        self.moves: dict[PlanOperator, list[tuple[Flow, str]]] = {}
        self.flow_of: dict[PlanOperator, Flow] = {}

    def exchanged(self, flow: Flow, leaving: ShuffleExit, partitioning: Partitioning | None) -> Flow:
        assert self.current is not None
        self.moves.setdefault(self.current, []).append((flow, way_of_exit(leaving)))
        return super().exchanged(flow, leaving, partitioning)

    def collected(self, flow: Flow, leaving: StageExit) -> list[Any]:
        return [0] * flow.partitions if isinstance(leaving, CountExit) else []


class _PlanTranslation(Translation):
    stages: _PlanStages

    def _translated(self, operator: PlanOperator) -> Flow:
        self.stages.current = operator
        self.stages.flow_of |= self.flows
        return super()._translated(operator)


def way_of_exit(leaving: ShuffleExit) -> str:
    """Return how a shuffle gets records to their partitions, in the words of Flink's plans."""
    match leaving:
        case KeyedExit():
            return f"Hash Partition on [{leaving.keys}]"
        case CustomExit():
            return f"Custom Partition on [{leaving.keys}]"
        case RangeExit():
            return f"Range Partition on [{leaving.keys}]"
        case DealingExit() if leaving.partitions > 1:
            return "Rebalance"
    return "Gather"


class _NoIterations:
    def run(self, operator: PlanOperator, stages: Stages, flows: Mapping[PlanOperator, Flow]) -> Flow:
        spec = operator.spec
        keys = spec.keys if isinstance(spec, DeltaIterationSpec) else None
        return Flow(None, "blobs", operator.parallelism, partitioning=None if keys is None else Partitioning(keys))
