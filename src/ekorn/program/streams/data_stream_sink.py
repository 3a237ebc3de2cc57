"""`DataStreamSink`: the sink at the end of a stream, which can be named and tuned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from ekorn.graph.stream_graph import Node
from ekorn.program.checks.attribute_suggestions import SuggestsMethods
from ekorn.program.streams.operator_settings import OperatorSettings
from ekorn.program.streams.stream_display import DrawnInNotebooks

if TYPE_CHECKING:
    from ekorn.program.environment.stream_execution_environment import StreamExecutionEnvironment


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


class GloballyCommittedStreamSink(DataStreamSink):
    """A sink with one committer behind its writers. Settings apply to the writers, a uid to both."""

    def __init__(self, environment: StreamExecutionEnvironment, writer: Node, committer: Node) -> None:
        super().__init__(environment, writer)
        self._committer = committer

    def uid(self, uid: str) -> Self:
        """Set the id of the writers; the committer gets the id with "-committer" behind it."""
        super().uid(uid)
        self._committer.set_uid(f"{uid}-committer")
        return self

    def name(self, name: str) -> Self:
        """Name the writers and the committer."""
        super().name(name)
        self._committer.set_name(f"{name}: Committer")
        return self

    def _drawn_nodes(self) -> tuple[Node, ...]:
        return (self._committer,)
