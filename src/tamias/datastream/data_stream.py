"""The stream classes."""

from __future__ import annotations

from tamias.program.broadcast_stream import BroadcastConnectedStream, BroadcastStream
from tamias.program.closeable_iterator import CloseableIterator
from tamias.program.connected_streams import ConnectedStreams
from tamias.program.data_stream import DataStream
from tamias.program.data_stream_sink import DataStreamSink
from tamias.program.iterative_stream import ConnectedIterativeStreams, IterativeStream
from tamias.program.keyed_stream import KeyedStream
from tamias.program.windowed_stream import AllWindowedStream, WindowedStream

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
