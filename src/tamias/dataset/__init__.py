"""The DataSet API: batch programs as in Flink 1.x."""

from tamias.batch.plan.specs import JoinHint, Order
from tamias.batch.program.data_set import DataSet
from tamias.batch.program.execution_environment import ExecutionEnvironment
from tamias.batch.program.grouping import Grouping
from tamias.functions.data_set_functions import (
    CrossFunction,
    GroupCombineFunction,
    GroupReduceFunction,
    MapPartitionFunction,
)

__all__ = [
    "CrossFunction",
    "DataSet",
    "ExecutionEnvironment",
    "GroupCombineFunction",
    "GroupReduceFunction",
    "Grouping",
    "JoinHint",
    "MapPartitionFunction",
    "Order",
]
