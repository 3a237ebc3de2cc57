"""The stream classes."""

from __future__ import annotations

from ekorn.program.running.closeable_iterator import CloseableIterator
from ekorn.program.streams.broadcast_stream import BroadcastConnectedStream, BroadcastStream
from ekorn.program.streams.connected_streams import ConnectedStreams
from ekorn.program.streams.data_stream import DataStream
from ekorn.program.streams.data_stream_sink import DataStreamSink
from ekorn.program.streams.iterative_stream import ConnectedIterativeStreams, IterativeStream
from ekorn.program.streams.keyed_stream import KeyedStream
from ekorn.program.streams.windowed_stream import AllWindowedStream, WindowedStream

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
