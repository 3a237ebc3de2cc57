"""Files: `FileSource` reads them, `FileSink` writes them exactly once."""

from __future__ import annotations

from tamias.datastream.connectors.bucket_assigners import BucketAssigner, BucketContext
from tamias.datastream.connectors.file_sink import FileSink, OutputFileConfig
from tamias.datastream.connectors.file_source import (
    FileEnumeratorProvider,
    FileSource,
    FileSourceBuilder,
    FileSplitAssignerProvider,
    StreamFormat,
)
from tamias.datastream.connectors.rolling_policies import (
    DefaultRollingPolicy,
    OnCheckpointRollingPolicy,
    PartFileInfo,
    RollingPolicy,
)
from tamias.datastream.connectors.streaming_file_sink import StreamingFileSink

__all__ = [
    "BucketAssigner",
    "BucketContext",
    "DefaultRollingPolicy",
    "FileEnumeratorProvider",
    "FileSink",
    "FileSource",
    "FileSourceBuilder",
    "FileSplitAssignerProvider",
    "OnCheckpointRollingPolicy",
    "OutputFileConfig",
    "PartFileInfo",
    "RollingPolicy",
    "StreamFormat",
    "StreamingFileSink",
]
