"""`BroadcastStream`: a stream that every subtask receives and keeps as state; and the stream it is connected with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ekorn.errors import InvalidProgramError
from ekorn.functions.process_functions import BroadcastProcessFunction, KeyedBroadcastProcessFunction
from ekorn.functions.state.state_descriptors import MapStateDescriptor
from ekorn.graph.specs import BroadcastProcessSpec
from ekorn.graph.stream_graph import Edge, Node
from ekorn.graph.stream_text import edges_text
from ekorn.program.checks.argument_checks import check_function, check_output_type
from ekorn.program.checks.attribute_suggestions import SuggestsMethods
from ekorn.program.checks.pickling_check import check_sendable
from ekorn.program.streams.connected_streams import both_inputs
from ekorn.program.streams.data_stream import DataStream
from ekorn.program.streams.keyed_stream import KeyedStream
from ekorn.program.streams.stream_display import DrawnInNotebooks
from ekorn.types.type_information import TypeInformation


class BroadcastStream(DrawnInNotebooks, SuggestsMethods):
    """The result of `broadcast(descriptor, ...)`. Connect it with another stream, whose function sees the state.

    Example:
        >>> from ekorn.common import Types
        >>> from ekorn.datastream import StreamExecutionEnvironment
        >>> from ekorn.datastream.state import MapStateDescriptor
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> rules = env.from_collection([("limit", 5)])
        >>> rules.broadcast(MapStateDescriptor("rules", Types.STRING(), Types.INT()))
        BroadcastStream(Source: Collection Source -> BROADCAST, states 'rules')
    """

    def __init__(self, input_stream: DataStream, broadcast_state_descriptors: Sequence[MapStateDescriptor]) -> None:
        self.input_stream = input_stream
        self.broadcast_state_descriptors = list(broadcast_state_descriptors)
        names = [_checked(descriptor).name for descriptor in self.broadcast_state_descriptors]
        for name in names:
            if names.count(name) > 1:
                raise InvalidProgramError(
                    f"broadcast() was given two states called {name!r}; give them different names"
                )

    def _drawn_nodes(self) -> tuple[Node, ...]:
        return self.input_stream._drawn_nodes()

    def __repr__(self) -> str:
        origin = edges_text(self.input_stream._edges)
        return f"BroadcastStream({origin}, states {', '.join(repr(d.name) for d in self.broadcast_state_descriptors)})"


class BroadcastConnectedStream(DrawnInNotebooks, SuggestsMethods):
    """A stream, keyed or not, that is connected with a broadcast stream."""

    def __init__(
        self,
        non_broadcast_stream: DataStream,
        broadcast_stream: BroadcastStream,
        broadcast_state_descriptors: Sequence[MapStateDescriptor],
    ) -> None:
        environment = non_broadcast_stream.get_execution_environment()
        if broadcast_stream.input_stream.get_execution_environment() is not environment:
            raise InvalidProgramError("connect() needs streams of the same environment")
        self.non_broadcast_stream = non_broadcast_stream
        self.broadcast_stream = broadcast_stream
        self.broadcast_state_descriptors = list(broadcast_state_descriptors)

    def process(
        self,
        func: BroadcastProcessFunction[Any, Any, Any] | KeyedBroadcastProcessFunction[Any, Any, Any, Any],
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Call `process_element` with records of the stream, and `process_broadcast_element` with broadcast ones.

        Args:
            func: A `KeyedBroadcastProcessFunction` if the stream is keyed, else a `BroadcastProcessFunction`.
            output_type: The type of the results; without it they are Python objects of any kind.
        """
        stream = self.non_broadcast_stream
        keyed = isinstance(stream, KeyedStream)
        check_function("process", func, KeyedBroadcastProcessFunction if keyed else BroadcastProcessFunction, None)
        check_output_type("process", output_type)
        check_sendable("process", self.broadcast_state_descriptors)
        spec = BroadcastProcessSpec(func, tuple(self.broadcast_state_descriptors))
        key = stream._key if isinstance(stream, KeyedStream) else None
        environment = stream.get_execution_environment()
        node = environment._graph.operator(
            "Keyed-Co-Process-Broadcast" if keyed else "Co-Process-Broadcast",
            spec,
            both_inputs(stream, self.broadcast_stream.input_stream),
            output_type,
            key=key,
            keys=(key, None) if keyed else (),
        )
        return DataStream(environment, (Edge(node),))

    def _drawn_nodes(self) -> tuple[Node, ...]:
        return (*self.non_broadcast_stream._drawn_nodes(), *self.broadcast_stream._drawn_nodes())

    def __repr__(self) -> str:
        return f"BroadcastConnectedStream({self.non_broadcast_stream!r}, {self.broadcast_stream!r})"


def _checked(descriptor: MapStateDescriptor) -> MapStateDescriptor:
    if not isinstance(descriptor, MapStateDescriptor):
        raise TypeError(f"broadcast() takes MapStateDescriptors, got {descriptor!r}")
    if descriptor.ttl_config is not None:
        raise InvalidProgramError(
            f"broadcast(): state {descriptor.name!r} has a time to live, which only keyed state can have; "
            "remove old entries in process_broadcast_element"
        )
    return descriptor
