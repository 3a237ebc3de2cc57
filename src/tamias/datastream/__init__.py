"""The DataStream API: environments, streams, functions and state, the names of `pyflink.datastream`."""

from __future__ import annotations

from tamias.config.checkpoint_config import CheckpointConfig
from tamias.config.checkpoint_storage import (
    CheckpointStorage,
    FileSystemCheckpointStorage,
    JobManagerCheckpointStorage,
)
from tamias.config.checkpointing import CheckpointingMode, ExternalizedCheckpointRetention
from tamias.config.execution_mode import RuntimeExecutionMode
from tamias.config.state_backend import (
    EmbeddedRocksDBStateBackend,
    FsStateBackend,
    HashMapStateBackend,
    MemoryStateBackend,
    PredefinedOptions,
    RocksDBStateBackend,
    StateBackend,
)
from tamias.config.time_characteristic import TimeCharacteristic
from tamias.functions.assigner_contract import MergingWindowAssigner, WindowAssigner
from tamias.functions.async_functions import AsyncBatchFunction, AsyncFunction, AsyncRetryPredicate, AsyncRetryStrategy
from tamias.functions.async_functions import AsyncFunction as RichAsyncFunction
from tamias.functions.checkpointed import CheckpointedFunction, CheckpointListener, ListCheckpointed
from tamias.functions.dead_letters import DeadLetter, OnRecordError
from tamias.functions.output_tag import OutputTag
from tamias.functions.process_functions import (
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
from tamias.functions.runtime_context import RuntimeContext
from tamias.functions.selection import OutputSelector
from tamias.functions.sink_contract import SinkFunction, TwoPhaseCommitSinkFunction
from tamias.functions.sink_contract import SinkFunction as RichSinkFunction
from tamias.functions.source_contract import ParallelSourceFunction, SourceFunction
from tamias.functions.source_contract import ParallelSourceFunction as RichParallelSourceFunction
from tamias.functions.source_contract import SourceFunction as RichSourceFunction
from tamias.functions.timer_service import TimeDomain, TimerService
from tamias.functions.timestamp_extractors import (
    AscendingTimestampExtractor,
    AssignerWithPeriodicWatermarks,
    AssignerWithPunctuatedWatermarks,
    BoundedOutOfOrdernessTimestampExtractor,
    IngestionTimeExtractor,
)
from tamias.functions.trigger_contract import Trigger, TriggerResult
from tamias.functions.window_functions import AllWindowFunction as RichAllWindowFunction
from tamias.functions.window_functions import ProcessWindowFunction, WindowFunction
from tamias.functions.window_functions import WindowFunction as RichWindowFunction
from tamias.functions.windows import CountWindow, GlobalWindow, TimeWindow, Window
from tamias.program.async_data_stream import AsyncDataStream
from tamias.program.broadcast_stream import BroadcastConnectedStream, BroadcastStream
from tamias.program.closeable_iterator import CloseableIterator
from tamias.program.connected_streams import ConnectedStreams
from tamias.program.data_stream import DataStream
from tamias.program.data_stream_sink import DataStreamSink
from tamias.program.keyed_stream import KeyedStream
from tamias.program.slot_sharing_group import MemorySize, SlotSharingGroup
from tamias.program.split_stream import SplitStream
from tamias.program.stream_execution_environment import StreamExecutionEnvironment
from tamias.program.windowed_stream import WindowedStream

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
    "Trigger",
    "TriggerResult",
    "TwoPhaseCommitSinkFunction",
    "Window",
    "WindowAssigner",
    "WindowFunction",
    "WindowedStream",
]
