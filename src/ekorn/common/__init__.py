"""Types, time, configuration, watermark strategies and job clients: the names of `pyflink.common`."""

from ekorn.clock import Clock, ManualClock, SystemClock
from ekorn.config.choices import InputDependencyConstraint, RuntimeExecutionMode
from ekorn.config.configuration import Configuration
from ekorn.config.execution_config import ExecutionConfig
from ekorn.config.job_id import JobID
from ekorn.config.option import ConfigOption, ConfigOptions
from ekorn.config.parameter_tool import ParameterTool
from ekorn.config.restart_strategy import RestartStrategies, RestartStrategyConfiguration
from ekorn.config.starting_configuration import load_configuration
from ekorn.connectors.formats.avro_rows import AvroRowDeserializationSchema, AvroRowSerializationSchema
from ekorn.connectors.formats.csv_rows import CsvRowDeserializationSchema, CsvRowSerializationSchema
from ekorn.connectors.formats.json_rows import JsonRowDeserializationSchema, JsonRowSerializationSchema
from ekorn.connectors.formats.schemas import (
    ByteArraySchema,
    DeserializationSchema,
    Encoder,
    SerializationSchema,
    SimpleStringSchema,
)
from ekorn.functions.results.accumulators import (
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
from ekorn.functions.results.job_execution_result import JobExecutionResult
from ekorn.functions.results.job_status import JobStatus
from ekorn.functions.watermark_strategy import (
    TimestampAssigner,
    Watermark,
    WatermarkGenerator,
    WatermarkOutput,
    WatermarkStrategy,
)
from ekorn.legacy.timestamp_extractors import AssignerWithPeriodicWatermarksWrapper
from ekorn.program.running.completable_future import CompletableFuture
from ekorn.program.running.job_client import JobClient
from ekorn.types.factory import Types
from ekorn.types.row import Row, RowKind
from ekorn.types.serializer import (
    SimpleTypeSerializerSnapshot,
    TypeSerializer,
    TypeSerializerSchemaCompatibility,
    TypeSerializerSnapshot,
)
from ekorn.types.time import Duration, Instant, Time, TimeUnit
from ekorn.types.time_bounds import MAX_TIMESTAMP, MIN_TIMESTAMP
from ekorn.types.type_information import TypeInformation

__all__ = [
    "MAX_TIMESTAMP",
    "MIN_TIMESTAMP",
    "Accumulator",
    "AssignerWithPeriodicWatermarksWrapper",
    "AverageAccumulator",
    "AvroRowDeserializationSchema",
    "AvroRowSerializationSchema",
    "ByteArraySchema",
    "Clock",
    "CompletableFuture",
    "ConfigOption",
    "ConfigOptions",
    "Configuration",
    "CsvRowDeserializationSchema",
    "CsvRowSerializationSchema",
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
    "JsonRowDeserializationSchema",
    "JsonRowSerializationSchema",
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
    "TimeUnit",
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
