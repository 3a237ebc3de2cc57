"""The DataSet API: batch programs as in Flink 1.x. Its rich functions are the functions, all of which have `open`."""

from ekorn.batch.inputs.input_formats import InputFormat, NumberSequenceIterator, SplittableIterator
from ekorn.batch.outputs.file_output import WriteMode
from ekorn.batch.outputs.output import OutputFormat
from ekorn.batch.plan.data_set_specs import JoinHint, Order
from ekorn.batch.program.csv_reader import CsvReader
from ekorn.batch.program.data_set import DataSet
from ekorn.batch.program.data_set_iterations import DeltaIteration, IterativeDataSet
from ekorn.batch.program.data_set_outputs import DataSink
from ekorn.batch.program.execution_environment import ExecutionEnvironment
from ekorn.batch.program.grouping import Grouping, SortedGrouping
from ekorn.batch.program.joins import (
    CoGroup,
    CoGroupKeys,
    CoGroupOtherKeys,
    CrossOperator,
    JoinKeys,
    JoinOperator,
    JoinOtherKeys,
    OuterJoin,
    OuterJoinKeys,
    OuterJoinOtherKeys,
    ProjectedPairs,
)
from ekorn.batch.program.refined_operators import AggregateOperator, RangePartitionOperator, SortPartitionOperator
from ekorn.functions.data_sets.data_set_aggregates import Aggregations
from ekorn.functions.data_sets.data_set_functions import (
    BroadcastVariableInitializer,
    CrossFunction,
    GroupCombineFunction,
    GroupReduceFunction,
    MapPartitionFunction,
)
from ekorn.functions.data_sets.data_set_functions import CrossFunction as RichCrossFunction
from ekorn.functions.data_sets.data_set_functions import GroupCombineFunction as RichGroupCombineFunction
from ekorn.functions.data_sets.data_set_functions import GroupReduceFunction as RichGroupReduceFunction
from ekorn.functions.data_sets.data_set_functions import MapPartitionFunction as RichMapPartitionFunction
from ekorn.functions.data_sets.field_annotations import (
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
from ekorn.functions.data_sets.iteration_context import (
    Aggregator,
    ConvergenceCriterion,
    DoubleSumAggregator,
    DoubleZeroConvergence,
    IterationRuntimeContext,
    LongSumAggregator,
    LongZeroConvergence,
)
from ekorn.functions.record_functions import (
    FilterFunction,
    FlatMapFunction,
    KeySelector,
    MapFunction,
    Partitioner,
    ReduceFunction,
)
from ekorn.functions.record_functions import FilterFunction as RichFilterFunction
from ekorn.functions.record_functions import FlatMapFunction as RichFlatMapFunction
from ekorn.functions.record_functions import MapFunction as RichMapFunction
from ekorn.functions.record_functions import ReduceFunction as RichReduceFunction
from ekorn.functions.windows.window_functions import CoGroupFunction, FlatJoinFunction, JoinFunction
from ekorn.functions.windows.window_functions import CoGroupFunction as RichCoGroupFunction
from ekorn.functions.windows.window_functions import FlatJoinFunction as RichFlatJoinFunction
from ekorn.functions.windows.window_functions import JoinFunction as RichJoinFunction

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
    "RichCoGroupFunction",
    "RichCrossFunction",
    "RichFilterFunction",
    "RichFlatJoinFunction",
    "RichFlatMapFunction",
    "RichGroupCombineFunction",
    "RichGroupReduceFunction",
    "RichJoinFunction",
    "RichMapFunction",
    "RichMapPartitionFunction",
    "RichReduceFunction",
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
