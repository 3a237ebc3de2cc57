"""`StreamKinds`: the class of every kind of stream, so that one stream class can make another without importing it.

The stream classes are mutually recursive: `DataStream.key_by` returns a `KeyedStream`, `KeyedStream.map` returns a
`DataStream`. Modules below this one import only `DataStream` and its subclasses. `DataStream` itself imports none of
them: it reaches the other classes through its environment, which holds a `StreamKinds`.
"""

from __future__ import annotations

from tamias.program.broadcast_stream import BroadcastConnectedStream, BroadcastStream
from tamias.program.connected_streams import ConnectedStreams
from tamias.program.data_stream import DataStream
from tamias.program.iterative_stream import IterativeStream
from tamias.program.keyed_stream import KeyedStream
from tamias.program.split_stream import SplitStream
from tamias.program.window_joins import CoGroupedStreams, IntervalJoin, JoinedStreams
from tamias.program.windowed_stream import AllWindowedStream, WindowedStream


class StreamKinds:
    """The class of every kind of stream."""

    data_stream = DataStream
    keyed_stream = KeyedStream
    split_stream = SplitStream
    iterative_stream = IterativeStream
    windowed_stream = WindowedStream
    all_windowed_stream = AllWindowedStream
    connected_streams = ConnectedStreams
    broadcast_stream = BroadcastStream
    broadcast_connected_stream = BroadcastConnectedStream
    joined_streams = JoinedStreams
    co_grouped_streams = CoGroupedStreams
    interval_join = IntervalJoin
