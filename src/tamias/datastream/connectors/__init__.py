"""Connectors: sources and sinks. Those of PyFlink's older programs are here as well as in their own modules."""

from __future__ import annotations

from tamias.connectors.bucket_assigners import BucketAssigner
from tamias.connectors.delivery import DeliveryGuarantee
from tamias.connectors.file_sink import FileSink, OutputFileConfig
from tamias.connectors.file_source import (
    FileEnumeratorProvider,
    FileSource,
    FileSourceBuilder,
    FileSplitAssignerProvider,
)
from tamias.connectors.jdbc.options import JdbcConnectionOptions, JdbcExecutionOptions
from tamias.connectors.jdbc.sink import JdbcSink
from tamias.connectors.kafka.deserialization import KafkaRecordDeserializationSchema
from tamias.connectors.kafka.older_names import FlinkKafkaConsumer, FlinkKafkaProducer, Semantic
from tamias.connectors.kafka.source import KafkaSource
from tamias.connectors.number_seq import NumberSequenceSource
from tamias.connectors.rolling_policies import RollingPolicy
from tamias.connectors.stream_formats import StreamFormat
from tamias.connectors.streaming_file_sink import StreamingFileSink
from tamias.functions.sink_contract import Sink
from tamias.functions.source_contract import Source

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
