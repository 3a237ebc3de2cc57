"""`StreamKinds`: the class of every kind of stream, so that one stream class can make another without importing it.

The stream classes are mutually recursive: `DataStream.key_by` returns a `KeyedStream`, `KeyedStream.map` returns a
`DataStream`. Modules below this one import only `DataStream` and its subclasses. `DataStream` itself imports none of
them: it reaches the other classes through its environment, which holds a `StreamKinds`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ekorn.graph.stream_graph import Edge
from ekorn.legacy.selection import OutputSelector
from ekorn.legacy.split_stream import SelectMethods, split_edges
from ekorn.program.streams.broadcast_stream import BroadcastConnectedStream, BroadcastStream
from ekorn.program.streams.column_stream import ColumnStream, as_column_stream
from ekorn.program.streams.connected_streams import ConnectedStreams
from ekorn.program.streams.data_stream import DataStream
from ekorn.program.streams.iterative_stream import IterativeStream
from ekorn.program.streams.keyed_column_stream import KeyedColumnStream, aggregate_spec
from ekorn.program.streams.keyed_stream import KeyedStream
from ekorn.program.streams.window_joins import CoGroupedStreams, IntervalJoin, JoinedStreams
from ekorn.program.streams.windowed_column_stream import AllWindowedColumnStream, WindowedColumnStream
from ekorn.program.streams.windowed_stream import AllWindowedStream, WindowedStream


class SplitStream(SelectMethods[DataStream], DataStream):
    """All records of a stream, with names to select them by. A transformation of the split stream sees every record.

    Example:
        >>> from ekorn.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> numbers = env.from_collection([1, 2, 3]).split(lambda x: ["odd"] if x % 2 else ["even"])
        >>> odd, both = numbers.select("odd"), numbers.select("even", "odd")
    """

    def __init__(self, stream: DataStream, selector: Callable[[Any], Iterable[str]] | OutputSelector) -> None:
        environment = stream.get_execution_environment()
        super().__init__(environment, split_edges(environment._graph, stream._edges, selector))

    def _stream_of(self, edges: tuple[Edge, ...]) -> DataStream:
        return DataStream(self._environment, edges)


class StreamKinds:
    """The class of every kind of stream."""

    data_stream = DataStream
    keyed_stream = KeyedStream
    column_stream = ColumnStream
    keyed_column_stream = KeyedColumnStream
    as_column_stream = staticmethod(as_column_stream)
    aggregate_spec = staticmethod(aggregate_spec)
    split_stream = SplitStream
    iterative_stream = IterativeStream
    windowed_stream = WindowedStream
    windowed_column_stream = WindowedColumnStream
    all_windowed_stream = AllWindowedStream
    all_windowed_column_stream = AllWindowedColumnStream
    connected_streams = ConnectedStreams
    broadcast_stream = BroadcastStream
    broadcast_connected_stream = BroadcastConnectedStream
    joined_streams = JoinedStreams
    co_grouped_streams = CoGroupedStreams
    interval_join = IntervalJoin
