"""The DataSet API: batch programs as in Flink 1.x."""

from tamias.batch.inputs.input_formats import InputFormat, NumberSequenceIterator, SplittableIterator
from tamias.batch.outputs.files import WriteMode
from tamias.batch.outputs.output_formats import OutputFormat
from tamias.batch.plan.specs import JoinHint, Order
from tamias.batch.program.csv_reader import CsvReader
from tamias.batch.program.data_set import DataSet
from tamias.batch.program.data_sink import DataSink
from tamias.batch.program.execution_environment import ExecutionEnvironment
from tamias.batch.program.grouping import Grouping
from tamias.batch.program.iterations import DeltaIteration, IterativeDataSet
from tamias.functions.data_set_functions import (
    CrossFunction,
    GroupCombineFunction,
    GroupReduceFunction,
    MapPartitionFunction,
)
from tamias.functions.iterations import (
    Aggregator,
    ConvergenceCriterion,
    DoubleSumAggregator,
    DoubleZeroConvergence,
    IterationRuntimeContext,
    LongSumAggregator,
    LongZeroConvergence,
)

__all__ = [
    "Aggregator",
    "ConvergenceCriterion",
    "CrossFunction",
    "CsvReader",
    "DataSet",
    "DataSink",
    "DeltaIteration",
    "DoubleSumAggregator",
    "DoubleZeroConvergence",
    "ExecutionEnvironment",
    "GroupCombineFunction",
    "GroupReduceFunction",
    "Grouping",
    "InputFormat",
    "IterationRuntimeContext",
    "IterativeDataSet",
    "JoinHint",
    "LongSumAggregator",
    "LongZeroConvergence",
    "MapPartitionFunction",
    "NumberSequenceIterator",
    "Order",
    "OutputFormat",
    "SplittableIterator",
    "WriteMode",
]
