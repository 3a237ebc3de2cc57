"""`FileSource` reads files, `FileSink` writes files exactly once."""

from __future__ import annotations

from tamias.connectors.bucket_assigners import BucketAssigner, BucketContext
from tamias.connectors.file_compaction import (
    ConcatFileCompactor,
    FileCompactor,
    FileCompactStrategy,
    IdenticalFileCompactor,
    RecordWiseFileCompactor,
)
from tamias.connectors.file_sink import FileSink, OutputFileConfig
from tamias.connectors.file_source import (
    FileEnumeratorProvider,
    FileSource,
    FileSourceBuilder,
    FileSplitAssignerProvider,
)
from tamias.connectors.rolling_policies import (
    CheckpointRollingPolicy,
    DefaultRollingPolicy,
    OnCheckpointRollingPolicy,
    PartFileInfo,
    RollingPolicy,
)
from tamias.connectors.stream_formats import BulkFormat, StreamFormat
from tamias.connectors.streaming_file_sink import StreamingFileSink

__all__ = [
    "BucketAssigner",
    "BucketContext",
    "BulkFormat",
    "CheckpointRollingPolicy",
    "ConcatFileCompactor",
    "DefaultRollingPolicy",
    "FileCompactStrategy",
    "FileCompactor",
    "FileEnumeratorProvider",
    "FileSink",
    "FileSource",
    "FileSourceBuilder",
    "FileSplitAssignerProvider",
    "IdenticalFileCompactor",
    "OnCheckpointRollingPolicy",
    "OutputFileConfig",
    "PartFileInfo",
    "RecordWiseFileCompactor",
    "RollingPolicy",
    "StreamFormat",
    "StreamingFileSink",
]
