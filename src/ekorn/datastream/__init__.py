"""The DataStream API: environments, streams, functions and state, the names of `pyflink.datastream`."""

from __future__ import annotations

from ekorn.config.checkpoint_config import CheckpointConfig
from ekorn.config.checkpoint_storage import (
    CheckpointStorage,
    FileSystemCheckpointStorage,
    JobManagerCheckpointStorage,
)
from ekorn.config.choices import (
    CheckpointingMode,
    ExternalizedCheckpointRetention,
    RuntimeExecutionMode,
)
from ekorn.config.choices import ExternalizedCheckpointRetention as ExternalizedCheckpointCleanup
from ekorn.config.state_backend import (
    EmbeddedRocksDBStateBackend,
    HashMapStateBackend,
    PredefinedOptions,
    StateBackend,
)
from ekorn.functions.async_functions import AsyncBatchFunction, AsyncFunction, AsyncRetryPredicate, AsyncRetryStrategy
from ekorn.functions.async_functions import AsyncFunction as RichAsyncFunction
from ekorn.functions.dead_letters import DeadLetter, OnRecordError
from ekorn.functions.output_tag import OutputTag
from ekorn.functions.process_functions import (
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
from ekorn.functions.runtime_context import RuntimeContext
from ekorn.functions.sink_contract import SinkFunction, TwoPhaseCommitSinkFunction
from ekorn.functions.sink_contract import SinkFunction as RichSinkFunction
from ekorn.functions.source_contract import ParallelSourceFunction, SourceFunction
from ekorn.functions.source_contract import ParallelSourceFunction as RichParallelSourceFunction
from ekorn.functions.source_contract import SourceFunction as RichSourceFunction
from ekorn.functions.state.checkpointed import CheckpointedFunction, CheckpointListener, ListCheckpointed
from ekorn.functions.timer_service import TimeDomain, TimerService
from ekorn.functions.windows.assigner_contract import MergingWindowAssigner, WindowAssigner
from ekorn.functions.windows.trigger_contract import Trigger, TriggerResult
from ekorn.functions.windows.window_functions import AllWindowFunction as RichAllWindowFunction
from ekorn.functions.windows.window_functions import ProcessWindowFunction, WindowFunction
from ekorn.functions.windows.window_functions import WindowFunction as RichWindowFunction
from ekorn.functions.windows.window_values import CountWindow, GlobalWindow, TimeWindow, Window
from ekorn.legacy.selection import OutputSelector
from ekorn.legacy.state_backends import FsStateBackend, MemoryStateBackend, RocksDBStateBackend
from ekorn.legacy.time_characteristic import TimeCharacteristic
from ekorn.legacy.timestamp_extractors import (
    AscendingTimestampExtractor,
    AssignerWithPeriodicWatermarks,
    AssignerWithPunctuatedWatermarks,
    BoundedOutOfOrdernessTimestampExtractor,
    IngestionTimeExtractor,
    TimestampExtractor,
)
from ekorn.program.environment.stream_execution_environment import StreamExecutionEnvironment
from ekorn.program.running.closeable_iterator import CloseableIterator
from ekorn.program.streams.async_data_stream import AsyncDataStream
from ekorn.program.streams.broadcast_stream import BroadcastConnectedStream, BroadcastStream
from ekorn.program.streams.connected_streams import ConnectedStreams
from ekorn.program.streams.data_stream import DataStream
from ekorn.program.streams.data_stream_sink import DataStreamSink
from ekorn.program.streams.keyed_stream import KeyedStream
from ekorn.program.streams.slot_sharing_group import MemorySize, SlotSharingGroup
from ekorn.program.streams.stream_kinds import SplitStream
from ekorn.program.streams.windowed_stream import WindowedStream

__all__ = [
    "AggregateFunction",
    "AscendingTimestampExtractor",
    "AssignerWithPeriodicWatermarks",
    "AssignerWithPunctuatedWatermarks",
    "AsyncBatchFunction",
    "AsyncDataStream",
    "AsyncFunction",
    "AsyncRetryPredicate",
    "AsyncRetryStrategy",
    "BoundedOutOfOrdernessTimestampExtractor",
    "BroadcastConnectedStream",
    "BroadcastProcessFunction",
    "BroadcastStream",
    "CheckpointConfig",
    "CheckpointListener",
    "CheckpointStorage",
    "CheckpointedFunction",
    "CheckpointingMode",
    "CloseableIterator",
    "CoFlatMapFunction",
    "CoMapFunction",
    "CoProcessFunction",
    "ConnectedStreams",
    "CountWindow",
    "DataStream",
    "DataStreamSink",
    "DeadLetter",
    "EmbeddedRocksDBStateBackend",
    "ExternalizedCheckpointCleanup",
    "ExternalizedCheckpointRetention",
    "FileSystemCheckpointStorage",
    "FilterFunction",
    "FlatMapFunction",
    "FoldFunction",
    "FsStateBackend",
    "Function",
    "GlobalWindow",
    "HashMapStateBackend",
    "IngestionTimeExtractor",
    "JobManagerCheckpointStorage",
    "KeySelector",
    "KeyedBroadcastProcessFunction",
    "KeyedCoProcessFunction",
    "KeyedProcessFunction",
    "KeyedStateFunction",
    "KeyedStream",
    "ListCheckpointed",
    "MapFunction",
    "MemorySize",
    "MemoryStateBackend",
    "MergingWindowAssigner",
    "OnRecordError",
    "OutputSelector",
    "OutputTag",
    "ParallelSourceFunction",
    "Partitioner",
    "PredefinedOptions",
    "ProcessFunction",
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
    "RocksDBStateBackend",
    "RuntimeContext",
    "RuntimeExecutionMode",
    "SinkFunction",
    "SlotSharingGroup",
    "SourceFunction",
    "SplitStream",
    "StateBackend",
    "StreamExecutionEnvironment",
    "TimeCharacteristic",
    "TimeDomain",
    "TimeWindow",
    "TimerService",
    "TimestampExtractor",
    "Trigger",
    "TriggerResult",
    "TwoPhaseCommitSinkFunction",
    "Window",
    "WindowAssigner",
    "WindowFunction",
    "WindowedStream",
]
