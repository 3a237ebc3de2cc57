"""`StreamKinds`: the class of every kind of stream, so that one stream class can make another without importing it.

The stream classes are mutually recursive: `DataStream.key_by` returns a `KeyedStream`, `KeyedStream.map` returns a
`DataStream`. Modules below this one import only `DataStream` and its subclasses. `DataStream` itself imports none of
them: it reaches the other classes through its environment, which holds a `StreamKinds`.
"""

from __future__ import annotations

from ekorn.program.streams.broadcast_stream import BroadcastConnectedStream, BroadcastStream
from ekorn.program.streams.connected_streams import ConnectedStreams
from ekorn.program.streams.data_stream import DataStream
from ekorn.program.streams.iterative_stream import IterativeStream
from ekorn.program.streams.keyed_stream import KeyedStream
from ekorn.program.streams.split_stream import SplitStream
from ekorn.program.streams.window_joins import CoGroupedStreams, IntervalJoin, JoinedStreams
from ekorn.program.streams.windowed_stream import AllWindowedStream, WindowedStream


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
