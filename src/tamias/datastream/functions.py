"""The function classes."""

from __future__ import annotations

from tamias.functions.async_functions import AsyncBatchFunction, AsyncFunction, AsyncRetryPredicate, AsyncRetryStrategy
from tamias.functions.async_functions import AsyncFunction as RichAsyncFunction
from tamias.functions.checkpointed import (
    CheckpointedFunction,
    CheckpointListener,
    FunctionInitializationContext,
    FunctionSnapshotContext,
    ListCheckpointed,
)
from tamias.functions.process_functions import (
    BaseBroadcastProcessFunction,
    BroadcastProcessFunction,
    CoProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ProcessFunction,
)
from tamias.functions.record_functions import (
    AggregateFunction,
    CoFlatMapFunction,
    CoMapFunction,
    FieldKeySelector,
    FilterFunction,
    FlatMapFunction,
    FoldFunction,
    Function,
    KeySelector,
    MapFunction,
    Partitioner,
    ReduceFunction,
)
from tamias.functions.record_functions import AggregateFunction as RichAggregateFunction
from tamias.functions.record_functions import CoFlatMapFunction as RichCoFlatMapFunction
from tamias.functions.record_functions import CoMapFunction as RichCoMapFunction
from tamias.functions.record_functions import FilterFunction as RichFilterFunction
from tamias.functions.record_functions import FlatMapFunction as RichFlatMapFunction
from tamias.functions.record_functions import MapFunction as RichMapFunction
from tamias.functions.record_functions import ReduceFunction as RichReduceFunction
from tamias.functions.runtime_context import DistributedCache, RuntimeContext
from tamias.functions.selection import OutputSelector
from tamias.functions.sink_contract import SinkContext, SinkFunction, TwoPhaseCommitSinkFunction
from tamias.functions.sink_contract import SinkFunction as RichSinkFunction
from tamias.functions.source_contract import ParallelSourceFunction, SourceContext, SourceFunction
from tamias.functions.source_contract import ParallelSourceFunction as RichParallelSourceFunction
from tamias.functions.source_contract import SourceFunction as RichSourceFunction
from tamias.functions.state_stores import KeyedStateStore
from tamias.functions.timer_service import TimerService
from tamias.functions.window_functions import (
    AllWindowFunction,
    CoGroupFunction,
    FlatJoinFunction,
    JoinFunction,
    ProcessAllWindowFunction,
    ProcessJoinFunction,
    ProcessWindowFunction,
    WindowFunction,
)
from tamias.functions.window_functions import AllWindowFunction as RichAllWindowFunction
from tamias.functions.window_functions import WindowFunction as RichWindowFunction

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
    "RichAggregateFunction",
    "RichAllWindowFunction",
    "RichAsyncFunction",
    "RichCoFlatMapFunction",
    "RichCoMapFunction",
    "RichFilterFunction",
    "RichFlatMapFunction",
    "RichMapFunction",
    "RichParallelSourceFunction",
    "RichReduceFunction",
    "RichSinkFunction",
    "RichSourceFunction",
    "RichWindowFunction",
    "RuntimeContext",
    "SinkContext",
    "SinkFunction",
    "SourceContext",
    "SourceFunction",
    "TimerService",
    "TwoPhaseCommitSinkFunction",
    "WindowFunction",
]
