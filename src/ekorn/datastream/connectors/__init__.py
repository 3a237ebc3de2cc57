"""Connectors: sources and sinks. Those of PyFlink's older programs are here as well as in their own modules."""

from __future__ import annotations

from ekorn.connectors.delivery import DeliveryGuarantee
from ekorn.connectors.files.bucket_assigners import BucketAssigner
from ekorn.connectors.files.file_sink import FileSink, OutputFileConfig
from ekorn.connectors.files.file_source import (
    FileEnumeratorProvider,
    FileSource,
    FileSourceBuilder,
    FileSplitAssignerProvider,
)
from ekorn.connectors.files.rolling_policies import RollingPolicy
from ekorn.connectors.files.stream_formats import StreamFormat
from ekorn.connectors.jdbc.options import JdbcConnectionOptions, JdbcExecutionOptions
from ekorn.connectors.jdbc.sink import JdbcSink
from ekorn.connectors.kafka.deserialization import KafkaRecordDeserializationSchema
from ekorn.connectors.kafka.source import KafkaSource
from ekorn.connectors.number_seq import NumberSequenceSource
from ekorn.functions.sink_contract import Sink
from ekorn.functions.source_contract import Source
from ekorn.legacy.kafka import FlinkKafkaConsumer, FlinkKafkaProducer, Semantic
from ekorn.legacy.streaming_file_sink import StreamingFileSink

__all__ = [
    "BucketAssigner",
    "DeliveryGuarantee",
    "FileEnumeratorProvider",
    "FileSink",
    "FileSource",
    "FileSourceBuilder",
    "FileSplitAssignerProvider",
    "FlinkKafkaConsumer",
    "FlinkKafkaProducer",
    "JdbcConnectionOptions",
    "JdbcExecutionOptions",
    "JdbcSink",
    "KafkaRecordDeserializationSchema",
    "KafkaSource",
    "NumberSequenceSource",
    "OutputFileConfig",
    "RollingPolicy",
    "Semantic",
    "Sink",
    "Source",
    "StreamFormat",
    "StreamingFileSink",
]
