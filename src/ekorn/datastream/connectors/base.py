"""The base classes of connectors: sources, sinks, and sinks that transform their stream first."""

from ekorn.connectors.delivery import DeliveryGuarantee, StreamTransformer, SupportsPreprocessing
from ekorn.functions.sink_contract import (
    CommitId,
    Committer,
    GlobalCommitter,
    GloballyCommittedSink,
    Sink,
    SinkWriter,
    WriterContext,
    WrittenBatch,
)
from ekorn.functions.source_contract import Batch, Boundedness, Malformed, Source, Split, SplitReader

__all__ = [
    "Batch",
    "Boundedness",
    "CommitId",
    "Committer",
    "DeliveryGuarantee",
    "GlobalCommitter",
    "GloballyCommittedSink",
    "Malformed",
    "Sink",
    "SinkWriter",
    "Source",
    "Split",
    "SplitReader",
    "StreamTransformer",
    "SupportsPreprocessing",
    "WriterContext",
    "WrittenBatch",
]
