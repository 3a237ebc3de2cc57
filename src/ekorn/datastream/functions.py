"""The function classes."""

from __future__ import annotations

from ekorn.functions.async_functions import AsyncBatchFunction, AsyncFunction, AsyncRetryPredicate, AsyncRetryStrategy
from ekorn.functions.async_functions import AsyncFunction as RichAsyncFunction
from ekorn.functions.process_functions import (
    BaseBroadcastProcessFunction,
    BroadcastProcessFunction,
    CoProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    KeyedStateFunction,
    ProcessFunction,
)
from ekorn.functions.record_functions import (
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
from ekorn.functions.record_functions import AggregateFunction as RichAggregateFunction
from ekorn.functions.record_functions import CoFlatMapFunction as RichCoFlatMapFunction
from ekorn.functions.record_functions import CoMapFunction as RichCoMapFunction
from ekorn.functions.record_functions import FilterFunction as RichFilterFunction
from ekorn.functions.record_functions import FlatMapFunction as RichFlatMapFunction
from ekorn.functions.record_functions import MapFunction as RichMapFunction
from ekorn.functions.record_functions import ReduceFunction as RichReduceFunction
from ekorn.functions.runtime_context import DistributedCache, RuntimeContext
from ekorn.functions.sink_contract import SinkContext, SinkFunction, TwoPhaseCommitSinkFunction
from ekorn.functions.sink_contract import SinkFunction as RichSinkFunction
from ekorn.functions.source_contract import ParallelSourceFunction, SourceContext, SourceFunction
from ekorn.functions.source_contract import ParallelSourceFunction as RichParallelSourceFunction
from ekorn.functions.source_contract import SourceFunction as RichSourceFunction
from ekorn.functions.state.checkpointed import (
    CheckpointedFunction,
    CheckpointListener,
    FunctionInitializationContext,
    FunctionSnapshotContext,
    ListCheckpointed,
)
from ekorn.functions.state.state_stores import KeyedStateStore
from ekorn.functions.timer_service import TimerService
from ekorn.functions.windows.window_functions import (
    AllWindowFunction,
    CoGroupFunction,
    FlatJoinFunction,
    JoinFunction,
    ProcessAllWindowFunction,
    ProcessJoinFunction,
    ProcessWindowFunction,
    WindowFunction,
)
from ekorn.functions.windows.window_functions import AllWindowFunction as RichAllWindowFunction
from ekorn.functions.windows.window_functions import WindowFunction as RichWindowFunction
from ekorn.legacy.selection import OutputSelector

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
    "KeyedStateFunction",
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
