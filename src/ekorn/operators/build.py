"""The list of operators: one function builds a running operator from its spec."""

from __future__ import annotations

from dataclasses import replace

from ekorn.functions.sink_contract import TwoPhaseCommitSinkFunction
from ekorn.graph import specs
from ekorn.graph.job_graph import Operator
from ekorn.operators import broadcast_process as broadcast
from ekorn.operators import co_streams, feedback, stateless
from ekorn.operators import interval_join as joins
from ekorn.operators import process_operators as process
from ekorn.operators import rolling_operators as rolling
from ekorn.operators.asynchronous import async_wait
from ekorn.operators.bootstrap import BootstrapOperator
from ekorn.operators.environment import SubtaskEnvironment
from ekorn.operators.operator import RuntimeOperator
from ekorn.operators.sinks import global_commits, two_phase
from ekorn.operators.sinks import sink_operators as sinks
from ekorn.operators.sinks.driver_output import DriverOutput
from ekorn.operators.sources.source_function import SourceFunctionOperator
from ekorn.operators.sources.split_source import SplitSourceOperator, SteppedSourceOperator
from ekorn.operators.time import timestamps
from ekorn.operators.windows.layout_choice import build_window_operator


def build(operator: Operator, environment: SubtaskEnvironment, driver_output: DriverOutput) -> RuntimeOperator:
    """Build one operator of a subtask."""
    match operator.spec:
        case specs.SourceSpec() as spec:
            if spec.source.reads_in_steps:
                return SteppedSourceOperator(operator, spec, environment)
            return SplitSourceOperator(operator, spec, environment)
        case specs.SourceFunctionSpec() as spec:
            return SourceFunctionOperator(operator, spec, environment)
        case specs.MapSpec() as spec:
            return stateless.MapOperator(operator, spec, environment)
        case specs.FlatMapSpec() as spec:
            return stateless.FlatMapOperator(operator, spec, environment)
        case specs.FilterSpec() as spec:
            return stateless.FilterOperator(operator, spec, environment)
        case specs.ProjectSpec() as spec:
            return stateless.ProjectOperator(operator, spec, environment)
        case specs.ProcessSpec() as spec:
            if operator.key is not None:
                return process.KeyedProcessOperator(operator, spec, environment)
            return process.ProcessOperator(operator, spec, environment)
        case specs.ReduceSpec() as spec:
            return rolling.ReduceOperator(operator, spec, environment)
        case specs.FoldSpec() as spec:
            return rolling.FoldOperator(operator, spec, environment)
        case specs.WithStateSpec() as spec:
            return rolling.WithStateOperator(operator, spec, environment)
        case specs.WindowSpec() as spec:
            return build_window_operator(operator, spec, environment)
        case specs.IntervalJoinSpec() as spec:
            return joins.IntervalJoinOperator(operator, spec, environment)
        case specs.CoMapSpec() as spec:
            return co_streams.CoMapOperator(operator, spec, environment)
        case specs.CoFlatMapSpec() as spec:
            return co_streams.CoFlatMapOperator(operator, spec, environment)
        case specs.CoProcessSpec() as spec:
            if operator.key is not None:
                return co_streams.KeyedCoProcessOperator(operator, spec, environment)
            return co_streams.CoProcessOperator(operator, spec, environment)
        case specs.BroadcastProcessSpec() as spec:
            if operator.key is not None:
                return broadcast.KeyedBroadcastProcessOperator(operator, spec, environment)
            return broadcast.BroadcastProcessOperator(operator, spec, environment)
        case specs.FeedbackHeadSpec() as spec:
            return feedback.FeedbackHead(operator, spec, environment)
        case specs.FeedbackTailSpec() as spec:
            return feedback.FeedbackTail(operator, spec, environment)
        case specs.AsyncSpec() as spec:
            return async_wait.AsyncWaitOperator(operator, spec, environment)
        case specs.SplitSpec() as spec:
            return stateless.SplitOperator(operator, spec, environment)
        case specs.TimestampsSpec() as spec:
            return timestamps.TimestampsOperator(operator, spec.watermarks, environment)
        case specs.SinkFunctionSpec() as spec if isinstance(spec.function, TwoPhaseCommitSinkFunction):
            return two_phase.TwoPhaseOperator(operator, spec, environment)
        case specs.SinkFunctionSpec() as spec:
            return sinks.SinkFunctionOperator(operator, spec, environment)
        case specs.WriterSpec() as spec:
            return sinks.WriterOperator(operator, spec, environment)
        case specs.PreparingWriterSpec() as spec:
            return global_commits.PreparingWriterOperator(operator, spec, environment)
        case specs.GlobalCommitterSpec() as spec:
            return global_commits.GlobalCommitterOperator(operator, spec, environment)
        case specs.PrintSpec() as spec:
            return sinks.PrintOperator(operator, spec, environment, driver_output)
        case specs.CollectSpec() as spec:
            return sinks.CollectOperator(operator, spec, environment, driver_output)
        case specs.BootstrapSpec() as spec:
            filled = build(replace(operator, spec=spec.filled), environment, driver_output)
            return BootstrapOperator(operator, spec, environment, filled)
        case specs.TaskStepSpec():
            raise AssertionError("the steps of DataSet programs run in Spark's tasks, not in slots")
        case _:  # PyArrow is loaded where there are columns
            from ekorn.operators.columns.build import build_column_operator

            return build_column_operator(operator, operator.spec, environment)
