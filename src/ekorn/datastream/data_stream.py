"""The stream classes."""

from __future__ import annotations

from ekorn.program.broadcast_stream import BroadcastConnectedStream, BroadcastStream
from ekorn.program.closeable_iterator import CloseableIterator
from ekorn.program.connected_streams import ConnectedStreams
from ekorn.program.data_stream import DataStream
from ekorn.program.data_stream_sink import DataStreamSink
from ekorn.program.iterative_stream import ConnectedIterativeStreams, IterativeStream
from ekorn.program.keyed_stream import KeyedStream
from ekorn.program.windowed_stream import AllWindowedStream, WindowedStream

__all__ = [
    "AllWindowedStream",
    "BroadcastConnectedStream",
    "BroadcastStream",
    "CloseableIterator",
    "ConnectedIterativeStreams",
    "ConnectedStreams",
    "DataStream",
    "DataStreamSink",
    "IterativeStream",
    "KeyedStream",
    "WindowedStream",
]
