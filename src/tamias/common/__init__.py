"""Types, time, configuration and watermark strategies: what every other room speaks in."""

from tamias.common.accumulators import (
    Accumulator,
    AverageAccumulator,
    DoubleCounter,
    DoubleMaximum,
    DoubleMinimum,
    Histogram,
    IntCounter,
    IntMaximum,
    IntMinimum,
    ListAccumulator,
    LongCounter,
    LongMaximum,
    LongMinimum,
    SimpleAccumulator,
)
from tamias.common.clock import Clock, ManualClock, SystemClock
from tamias.common.completable_future import CompletableFuture
from tamias.common.config_file import load_configuration
from tamias.common.config_options import ConfigOption, ConfigOptions
from tamias.common.configuration import Configuration
from tamias.common.constants import MAX_TIMESTAMP, MIN_TIMESTAMP
from tamias.common.execution_config import ExecutionConfig
from tamias.common.execution_mode import RuntimeExecutionMode
from tamias.common.input_dependency_constraint import InputDependencyConstraint
from tamias.common.job_client import JobClient
from tamias.common.job_execution_result import JobExecutionResult
from tamias.common.job_id import JobID
from tamias.common.job_status import JobStatus
from tamias.common.parameter_tool import ParameterTool
from tamias.common.restart_strategy import RestartStrategies, RestartStrategyConfiguration
from tamias.common.serialization import (
    ByteArraySchema,
    DeserializationSchema,
    Encoder,
    SerializationSchema,
    SimpleStringSchema,
)
from tamias.common.serializer import (
    SimpleTypeSerializerSnapshot,
    TypeSerializer,
    TypeSerializerSchemaCompatibility,
    TypeSerializerSnapshot,
)
from tamias.common.time import Duration, Instant, Time
from tamias.common.typeinfo import TypeInformation, Types
from tamias.common.types import Row, RowKind
from tamias.common.watermark_strategy import (
    AssignerWithPeriodicWatermarksWrapper,
    TimestampAssigner,
    Watermark,
    WatermarkGenerator,
    WatermarkOutput,
    WatermarkStrategy,
)

__all__ = [
    "MAX_TIMESTAMP",
    "MIN_TIMESTAMP",
    "Accumulator",
    "AssignerWithPeriodicWatermarksWrapper",
    "AverageAccumulator",
    "ByteArraySchema",
    "Clock",
    "CompletableFuture",
    "ConfigOption",
    "ConfigOptions",
    "Configuration",
    "DeserializationSchema",
    "DoubleCounter",
    "DoubleMaximum",
    "DoubleMinimum",
    "Duration",
    "Encoder",
    "ExecutionConfig",
    "Histogram",
    "InputDependencyConstraint",
    "Instant",
    "IntCounter",
    "IntMaximum",
    "IntMinimum",
    "JobClient",
    "JobExecutionResult",
    "JobID",
    "JobStatus",
    "ListAccumulator",
    "LongCounter",
    "LongMaximum",
    "LongMinimum",
    "ManualClock",
    "ParameterTool",
    "RestartStrategies",
    "RestartStrategyConfiguration",
    "Row",
    "RowKind",
    "RuntimeExecutionMode",
    "SerializationSchema",
    "SimpleAccumulator",
    "SimpleStringSchema",
    "SimpleTypeSerializerSnapshot",
    "SystemClock",
    "Time",
    "TimestampAssigner",
    "TypeInformation",
    "TypeSerializer",
    "TypeSerializerSchemaCompatibility",
    "TypeSerializerSnapshot",
    "Types",
    "Watermark",
    "WatermarkGenerator",
    "WatermarkOutput",
    "WatermarkStrategy",
    "load_configuration",
]
