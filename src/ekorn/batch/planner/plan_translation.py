"""Translates the operators of a plan to flows of records, one after another: the list of all specs is this page.

An operator that several others read is computed once. Iterations translate the operators of their body again for each
superstep: `flows` then holds the data that the body reads from outside.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, assert_never

from ekorn.batch.plan.data_set_specs import (
    CoGroupSpec,
    CollectAllSpec,
    CombineGroupSpec,
    CountSpec,
    CrossSpec,
    FirstSpec,
    FrameInputSpec,
    FrameSpec,
    GroupReduceSpec,
    InputSpec,
    JoinSpec,
    MapPartitionSpec,
    OutputSpec,
    PairwiseReduceSpec,
    PartitionCustomSpec,
    PartitionHashSpec,
    PartitionRangeSpec,
    RebalanceSpec,
    SampleSpec,
    SampleWithSizeSpec,
    SortPartitionSpec,
    UnionSpec,
    ZipWithIndexSpec,
    ZipWithUniqueIdSpec,
)
from ekorn.batch.plan.iteration_specs import (
    BulkIterationSpec,
    DeltaIterationSpec,
    IterationInputSpec,
    TableCoGroupSpec,
    TableJoinSpec,
    WriteTablesSpec,
)
from ekorn.batch.plan.operators import Plan, PlanOperator
from ekorn.batch.plan.partitioning import ForwardedFields, Partitioning, after
from ekorn.batch.plan.record_keys import FieldPath
from ekorn.batch.planner import groups, partition_flows, table_flows, two_inputs
from ekorn.batch.planner.stages import Flow, Stages
from ekorn.batch.tasks.exits import CustomExit, DealingExit, KeyedExit
from ekorn.batch.tasks.partition_operators import SortPartition, UniqueNumbering
from ekorn.batch.tasks.record_operators import (
    FilterRecords,
    FlatMapRecords,
    MapPartition,
    MapRecords,
    ProjectFields,
    ReadSplits,
    TypeCheck,
    WriteRecords,
)
from ekorn.batch.tasks.task_context import shared_name
from ekorn.batch.tasks.task_operator import TaskOperator
from ekorn.graph.specs import FilterSpec, FlatMapSpec, MapSpec, ProjectSpec

__all__ = ["Translation"]

_UNCHANGED = ForwardedFields(everything=True)
_UNKNOWN = ForwardedFields()


class Iterations(Protocol):
    """Runs the iterations of a plan while it is translated."""

    def run(self, operator: PlanOperator, stages: Stages, flows: Mapping[PlanOperator, Flow]) -> Flow:
        """Run an iteration to its end; return the flow of its result."""
        ...


class Translation:
    """Translates a plan for one run.

    Args:
        stages: Builds the RDDs.
        plan: The plan.
        flows: The flows of operators that are translated already.
        iterations: Runs iterations; None for the plan of a superstep, which has none.
    """

    def __init__(
        self,
        stages: Stages,
        plan: Plan,
        flows: Mapping[PlanOperator, Flow] | None = None,
        iterations: Iterations | None = None,
    ) -> None:
        self.stages = stages
        self._iterations = iterations
        self.flows: dict[PlanOperator, Flow] = dict(flows or {})
        consumers = plan.consumers()
        for operator in plan.operators():
            if operator not in self.flows:
                stages.translate(operator)
                with stages.sharing(self._variables(operator)):
                    flow = self._checked(operator, self._translated(operator))
                self.flows[operator] = self.stages.kept(flow) if consumers[operator] > 1 else flow

    def _variables(self, operator: PlanOperator) -> dict[str, Any]:
        """Run the data sets that an operator reads whole; return the broadcasts."""
        return {
            shared_name(name): self.stages.broadcast(self.flows[each], each.name)
            for name, each in operator.broadcasts.items()
        }

    def _checked(self, operator: PlanOperator, flow: Flow) -> Flow:
        if not operator.declares_type or operator.type_info is None:
            return flow
        return self.stages.then(flow, TypeCheck(operator.name, operator.type_info))

    def _translated(self, operator: PlanOperator) -> Flow:
        inputs = [self.flows[each] for each in operator.inputs]
        name, parameters = operator.name, operator.parameters
        match operator.spec:
            case InputSpec() as spec:
                splits = spec.input.splits(operator.parallelism, parameters)
                flow = self.stages.source(splits, operator.parallelism, ReadSplits(name))
                return flow.partitioned(spec.partitioning())
            case MapSpec() as spec:
                return self._narrow(operator, MapRecords(name, spec.function, parameters))
            case FlatMapSpec() as spec:
                return self._narrow(operator, FlatMapRecords(name, spec.function, parameters))
            case FilterSpec() as spec:
                return self._narrow(operator, FilterRecords(name, spec.function, parameters), _UNCHANGED)
            case MapPartitionSpec() as spec:
                return self._narrow(operator, MapPartition(name, spec.function, parameters))
            case ProjectSpec() as spec:
                moved: dict[FieldPath, tuple[FieldPath, ...]] = {}
                for new, old in enumerate(spec.fields):
                    moved.setdefault((old,), ((new,),))
                return self._narrow(operator, ProjectFields(name, spec.fields), ForwardedFields(moved))
            case OutputSpec() as spec:
                return self._narrow(operator, WriteRecords(name, spec.output))
            case FrameInputSpec() as spec:
                return self.stages.of_frame(spec.frame, spec.row_type)
            case CollectAllSpec() | CountSpec() | FrameSpec():
                return inputs[0]
            case RebalanceSpec():
                return self.stages.exchanged(inputs[0], DealingExit(name, operator.parallelism), None)
            case PartitionHashSpec() as spec:
                return self.stages.exchanged(
                    inputs[0], KeyedExit(name, spec.keys, operator.parallelism), Partitioning(spec.keys)
                )
            case PairwiseReduceSpec() as spec:
                return groups.reduced(self.stages, operator, spec, inputs[0])
            case GroupReduceSpec() as spec:
                return groups.group_reduced(self.stages, operator, spec, inputs[0])
            case CombineGroupSpec() as spec:
                return self._narrow(operator, groups.combining(operator, spec))
            case FirstSpec() as spec:
                return partition_flows.first(self.stages, operator, spec, inputs[0])
            case PartitionRangeSpec() as spec:
                return partition_flows.partitioned_by_range(self.stages, operator, spec, inputs[0])
            case PartitionCustomSpec() as spec:
                return self.stages.exchanged(
                    inputs[0],
                    CustomExit(name, spec.keys, operator.parallelism, spec.partitioner),
                    Partitioning(spec.keys, spec.partitioner),
                )
            case SortPartitionSpec() as spec:
                return self._narrow(operator, SortPartition(name, spec.sort, self.stages.memory_mb), _UNCHANGED)
            case ZipWithIndexSpec():
                return partition_flows.numbered(
                    self.stages, operator, groups.in_partitions(self.stages, operator, inputs[0])
                )
            case ZipWithUniqueIdSpec():
                return self._narrow(operator, UniqueNumbering(name), ForwardedFields({(): ((1,),)}))
            case SampleSpec() as spec:
                return partition_flows.sampled(self.stages, operator, spec, inputs[0])
            case SampleWithSizeSpec() as spec:
                return partition_flows.sampled_with_size(self.stages, operator, spec, inputs[0])
            case UnionSpec():
                return self.stages.union(inputs)
            case BulkIterationSpec() | DeltaIterationSpec():
                assert self._iterations is not None, "iterations are not nested"
                return self._iterations.run(operator, self.stages, self.flows)
            case IterationInputSpec():
                raise AssertionError("the program refuses to use an iteration's data outside of it")
            case TableJoinSpec() as spec:
                return table_flows.joined(self.stages, operator, spec, inputs[0])
            case TableCoGroupSpec() as spec:
                return table_flows.co_grouped(self.stages, operator, spec, inputs[0])
            case WriteTablesSpec() as spec:
                return table_flows.written(self.stages, operator, spec, inputs[0])
            case JoinSpec() as spec:
                return two_inputs.joined(self.stages, operator, spec, *inputs)
            case CoGroupSpec() as spec:
                return two_inputs.co_grouped(self.stages, operator, spec, *inputs)
            case CrossSpec() as spec:
                return two_inputs.crossed(self.stages, operator, spec, *inputs)
            case _:
                assert_never(operator.spec)

    def _narrow(self, operator: PlanOperator, task: TaskOperator, forwarded: ForwardedFields | None = None) -> Flow:
        """Return a flow with an operator that works on each partition by itself."""
        if forwarded is None:
            forwarded = operator.forwarded[0] if operator.forwarded else _UNKNOWN
        flow = groups.in_partitions(self.stages, operator, self.flows[operator.inputs[0]])
        return self.stages.then(flow, task).partitioned(after(flow.partitioning, forwarded))
