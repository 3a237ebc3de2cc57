"""The DataSet API: batch programs as in Flink 1.x."""

from tamias.batch.inputs.input_formats import InputFormat, NumberSequenceIterator, SplittableIterator
from tamias.batch.outputs.file_output import WriteMode
from tamias.batch.outputs.output_formats import OutputFormat
from tamias.batch.plan.data_set_specs import JoinHint, Order
from tamias.batch.program.co_groups import CoGroup, CoGroupKeys, CoGroupOtherKeys
from tamias.batch.program.crosses import CrossOperator
from tamias.batch.program.csv_reader import CsvReader
from tamias.batch.program.data_set import DataSet
from tamias.batch.program.data_set_iterations import DeltaIteration, IterativeDataSet
from tamias.batch.program.data_set_job_client import DataSetJobClient
from tamias.batch.program.data_sink import DataSink
from tamias.batch.program.execution_environment import ExecutionEnvironment
from tamias.batch.program.grouping import Grouping, SortedGrouping
from tamias.batch.program.joins import (
    JoinKeys,
    JoinOperator,
    JoinOtherKeys,
    OuterJoin,
    OuterJoinKeys,
    OuterJoinOtherKeys,
    ProjectedPairs,
)
from tamias.batch.program.refined_operators import AggregateOperator, RangePartitionOperator, SortPartitionOperator
from tamias.functions.data_set_aggregates import Aggregations
from tamias.functions.data_set_functions import (
    BroadcastVariableInitializer,
    CrossFunction,
    GroupCombineFunction,
    GroupReduceFunction,
    MapPartitionFunction,
)
from tamias.functions.field_annotations import (
    forwarded_fields,
    forwarded_fields_first,
    forwarded_fields_second,
    non_forwarded_fields,
    non_forwarded_fields_first,
    non_forwarded_fields_second,
    read_fields,
    read_fields_first,
    read_fields_second,
)
from tamias.functions.iteration_context import (
    Aggregator,
    ConvergenceCriterion,
    DoubleSumAggregator,
    DoubleZeroConvergence,
    IterationRuntimeContext,
    LongSumAggregator,
    LongZeroConvergence,
)
from tamias.functions.record_functions import (
    FilterFunction,
    FlatMapFunction,
    KeySelector,
    MapFunction,
    Partitioner,
    ReduceFunction,
)
from tamias.functions.window_functions import CoGroupFunction, FlatJoinFunction, JoinFunction

__all__ = [
    "AggregateOperator",
    "Aggregations",
    "Aggregator",
    "BroadcastVariableInitializer",
    "CoGroup",
    "CoGroupFunction",
    "CoGroupKeys",
    "CoGroupOtherKeys",
    "ConvergenceCriterion",
    "CrossFunction",
    "CrossOperator",
    "CsvReader",
    "DataSet",
    "DataSetJobClient",
    "DataSink",
    "DeltaIteration",
    "DoubleSumAggregator",
    "DoubleZeroConvergence",
    "ExecutionEnvironment",
    "FilterFunction",
    "FlatJoinFunction",
    "FlatMapFunction",
    "GroupCombineFunction",
    "GroupReduceFunction",
    "Grouping",
    "InputFormat",
    "IterationRuntimeContext",
    "IterativeDataSet",
    "JoinFunction",
    "JoinHint",
    "JoinKeys",
    "JoinOperator",
    "JoinOtherKeys",
    "KeySelector",
    "LongSumAggregator",
    "LongZeroConvergence",
    "MapFunction",
    "MapPartitionFunction",
    "NumberSequenceIterator",
    "Order",
    "OuterJoin",
    "OuterJoinKeys",
    "OuterJoinOtherKeys",
    "OutputFormat",
    "Partitioner",
    "ProjectedPairs",
    "RangePartitionOperator",
    "ReduceFunction",
    "SortPartitionOperator",
    "SortedGrouping",
    "SplittableIterator",
    "WriteMode",
    "forwarded_fields",
    "forwarded_fields_first",
    "forwarded_fields_second",
    "non_forwarded_fields",
    "non_forwarded_fields_first",
    "non_forwarded_fields_second",
    "read_fields",
    "read_fields_first",
    "read_fields_second",
]
