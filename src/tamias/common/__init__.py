"""Types, time, configuration, watermark strategies and job clients: the names of `pyflink.common`."""

from tamias.clock import Clock, ManualClock, SystemClock
from tamias.config.config_file import load_configuration
from tamias.config.configuration import Configuration
from tamias.config.execution_config import ExecutionConfig
from tamias.config.execution_mode import RuntimeExecutionMode
from tamias.config.input_dependency_constraint import InputDependencyConstraint
from tamias.config.job_id import JobID
from tamias.config.option import ConfigOption, ConfigOptions
from tamias.config.parameter_tool import ParameterTool
from tamias.config.restart_strategy import RestartStrategies, RestartStrategyConfiguration
from tamias.connectors.formats.avro_rows import AvroRowDeserializationSchema, AvroRowSerializationSchema
from tamias.connectors.formats.csv_rows import CsvRowDeserializationSchema, CsvRowSerializationSchema
from tamias.connectors.formats.json_rows import JsonRowDeserializationSchema, JsonRowSerializationSchema
from tamias.connectors.formats.schemas import (
    ByteArraySchema,
    DeserializationSchema,
    Encoder,
    SerializationSchema,
    SimpleStringSchema,
)
from tamias.functions.accumulators import (
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
from tamias.functions.job_execution_result import JobExecutionResult
from tamias.functions.job_status import JobStatus
from tamias.functions.watermark_strategy import (
    AssignerWithPeriodicWatermarksWrapper,
    TimestampAssigner,
    Watermark,
    WatermarkGenerator,
    WatermarkOutput,
    WatermarkStrategy,
)
from tamias.program.completable_future import CompletableFuture
from tamias.program.job_client import JobClient
from tamias.types.factory import Types
from tamias.types.row import Row, RowKind
from tamias.types.serializer import (
    SimpleTypeSerializerSnapshot,
    TypeSerializer,
    TypeSerializerSchemaCompatibility,
    TypeSerializerSnapshot,
)
from tamias.types.time import Duration, Instant, Time, TimeUnit
from tamias.types.time_bounds import MAX_TIMESTAMP, MIN_TIMESTAMP
from tamias.types.type_information import TypeInformation

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
