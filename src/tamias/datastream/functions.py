"""All function classes, under the path where PyFlink has them."""

from __future__ import annotations

from tamias.contracts.async_functions import (
    AsyncBatchFunction,
    AsyncFunction,
    AsyncRetryPredicate,
    AsyncRetryStrategy,
)
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
from tamias.contracts.selection import OutputSelector
from tamias.contracts.sinks import SinkContext, SinkFunction, TwoPhaseCommitSinkFunction
from tamias.contracts.sources import ParallelSourceFunction, SourceContext, SourceFunction
from tamias.contracts.state import KeyedStateStore
from tamias.contracts.timers import TimerService
from tamias.contracts.window_functions import (
    AllWindowFunction,
    CoGroupFunction,
    FlatJoinFunction,
    JoinFunction,
    ProcessAllWindowFunction,
    ProcessJoinFunction,
    ProcessWindowFunction,
    WindowFunction,
)

__all__ = [
    "AggregateFunction",
    "AllWindowFunction",
    "AsyncBatchFunction",
    "AsyncFunction",
    "AsyncRetryPredicate",
    "AsyncRetryStrategy",
    "BaseBroadcastProcessFunction",
    "BroadcastProcessFunction",
    "CheckpointListener",
    "CheckpointedFunction",
    "CoFlatMapFunction",
    "CoGroupFunction",
    "CoMapFunction",
    "CoProcessFunction",
    "DistributedCache",
    "FieldKeySelector",
    "FilterFunction",
    "FlatJoinFunction",
    "FlatMapFunction",
    "FoldFunction",
    "Function",
    "FunctionInitializationContext",
    "FunctionSnapshotContext",
    "JoinFunction",
    "KeySelector",
    "KeyedBroadcastProcessFunction",
    "KeyedCoProcessFunction",
    "KeyedProcessFunction",
    "KeyedStateStore",
    "ListCheckpointed",
    "MapFunction",
    "OutputSelector",
    "ParallelSourceFunction",
    "Partitioner",
    "ProcessAllWindowFunction",
    "ProcessFunction",
    "ProcessJoinFunction",
    "ProcessWindowFunction",
    "ReduceFunction",
    "RuntimeContext",
    "SinkContext",
    "SinkFunction",
    "SourceContext",
    "SourceFunction",
    "TimerService",
    "TwoPhaseCommitSinkFunction",
    "WindowFunction",
]
