"""`FileSource` reads files, `FileSink` writes files exactly once."""

from __future__ import annotations

from ekorn.connectors.files.bucket_assigners import BucketAssigner, BucketContext
from ekorn.connectors.files.file_compaction import (
    ConcatFileCompactor,
    FileCompactor,
    FileCompactStrategy,
    IdenticalFileCompactor,
    RecordWiseFileCompactor,
)
from ekorn.connectors.files.file_sink import FileSink, OutputFileConfig
from ekorn.connectors.files.file_source import (
    FileEnumeratorProvider,
    FileSource,
    FileSourceBuilder,
    FileSplitAssignerProvider,
)
from ekorn.connectors.files.rolling_policies import (
    CheckpointRollingPolicy,
    DefaultRollingPolicy,
    OnCheckpointRollingPolicy,
    PartFileInfo,
    RollingPolicy,
)
from ekorn.connectors.files.stream_formats import BulkFormat, StreamFormat
from ekorn.legacy.streaming_file_sink import StreamingFileSink

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
