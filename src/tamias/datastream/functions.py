"""All function classes, under the path where PyFlink has them."""

from __future__ import annotations

from tamias.contracts.checkpointed import (
    CheckpointedFunction,
    CheckpointListener,
    FunctionInitializationContext,
    FunctionSnapshotContext,
    ListCheckpointed,
)
from tamias.contracts.functions import (
    AggregateFunction,
    BaseBroadcastProcessFunction,
    BroadcastProcessFunction,
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    FieldKeySelector,
    FilterFunction,
    FlatMapFunction,
    FoldFunction,
    Function,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    Partitioner,
    ProcessFunction,
    ReduceFunction,
)
from tamias.contracts.runtime_context import DistributedCache, RuntimeContext
from tamias.contracts.sinks import SinkContext, SinkFunction, TwoPhaseCommitSinkFunction
from tamias.contracts.sources import ParallelSourceFunction, SourceContext, SourceFunction
from tamias.contracts.state import KeyedStateStore
from tamias.contracts.timers import TimerService

__all__ = [
    "AggregateFunction",
    "BaseBroadcastProcessFunction",
    "BroadcastProcessFunction",
    "CheckpointListener",
    "CheckpointedFunction",
    "CoFlatMapFunction",
    "CoMapFunction",
    "CoProcessFunction",
    "DistributedCache",
    "FieldKeySelector",
    "FilterFunction",
    "FlatMapFunction",
    "FoldFunction",
    "Function",
    "FunctionInitializationContext",
    "FunctionSnapshotContext",
    "KeySelector",
    "KeyedBroadcastProcessFunction",
    "KeyedCoProcessFunction",
    "KeyedProcessFunction",
    "KeyedStateStore",
    "ListCheckpointed",
    "MapFunction",
    "ParallelSourceFunction",
    "Partitioner",
    "ProcessFunction",
    "ReduceFunction",
    "RuntimeContext",
    "SinkContext",
    "SinkFunction",
    "SourceContext",
    "SourceFunction",
    "TimerService",
    "TwoPhaseCommitSinkFunction",
]
