"""`DataStreamSink`: the sink at the end of a stream, which can be named and tuned."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamias.graph.stream_graph import Node
from tamias.program.attribute_suggestions import SuggestsMethods
from tamias.program.operator_settings import OperatorSettings
from tamias.program.stream_display import DrawnInNotebooks

if TYPE_CHECKING:
    from tamias.program.stream_execution_environment import StreamExecutionEnvironment


class DataStreamSink(OperatorSettings, DrawnInNotebooks, SuggestsMethods):
    """The result of `print`, `add_sink` and `sink_to`."""

    def __init__(self, environment: StreamExecutionEnvironment, node: Node) -> None:
        self._environment = environment
        self._node = node

    def set_max_parallelism(self, max_parallelism: int) -> DataStreamSink:
        """Set the sink's maximum parallelism, from 1 to 32768."""
        self._node.set_max_parallelism(max_parallelism)
        return self

    def _operator(self, call: str) -> Node:
        return self._node

    def _drawn_nodes(self) -> tuple[Node, ...]:
        return (self._node,)

    def __repr__(self) -> str:
        return f"DataStreamSink({self._node.full_name})"
