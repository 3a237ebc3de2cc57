"""The streams under the path where PyFlink has them."""

from __future__ import annotations

from tamias.datastream.broadcast_stream import BroadcastConnectedStream, BroadcastStream
from tamias.datastream.closeable_iterator import CloseableIterator
from tamias.datastream.connected_streams import ConnectedStreams
from tamias.datastream.data_stream_sink import DataStreamSink
from tamias.datastream.iterations import ConnectedIterativeStreams, IterativeStream
from tamias.datastream.keyed_stream import KeyedStream
from tamias.datastream.stream import DataStream
from tamias.datastream.windowed_stream import AllWindowedStream, WindowedStream

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
