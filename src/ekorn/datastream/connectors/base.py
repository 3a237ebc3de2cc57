"""The base classes of connectors: sources, sinks, and sinks that transform their stream first."""

from ekorn.connectors.delivery import DeliveryGuarantee, StreamTransformer, SupportsPreprocessing
from ekorn.functions.sink_contract import (
    CommitId,
    GlobalCommitter,
    GloballyCommittedSink,
    Sink,
    SinkWriter,
    WriterContext,
)
from ekorn.functions.source_contract import Batch, Boundedness, Source, Split, SplitReader

__all__ = [
    "Batch",
    "Boundedness",
    "CommitId",
    "DeliveryGuarantee",
    "GlobalCommitter",
    "GloballyCommittedSink",
    "Sink",
    "SinkWriter",
    "Source",
    "Split",
    "SplitReader",
    "StreamTransformer",
    "SupportsPreprocessing",
    "WriterContext",
]
