"""`StreamCore`: what every stream consists of, and how operators are drawn behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, Self

from ekorn.errors import InvalidProgramError
from ekorn.graph.specs import Custom, KeySpec, MapSpec, OperatorSpec, Partitioning
from ekorn.graph.stream_graph import Chaining, Edge, Node
from ekorn.graph.stream_text import edges_text
from ekorn.program.checks.argument_checks import check_output_type
from ekorn.program.checks.attribute_suggestions import SuggestsMethods
from ekorn.program.streams.data_stream_sink import DataStreamSink
from ekorn.program.streams.operator_settings import OperatorSettings
from ekorn.program.streams.stream_display import DrawnInNotebooks
from ekorn.types.factory import Types
from ekorn.types.type_information import TypeInformation

if TYPE_CHECKING:
    from ekorn.config.execution_config import ExecutionConfig
    from ekorn.program.environment.stream_execution_environment import StreamExecutionEnvironment
    from ekorn.program.streams.data_stream import DataStream
    from ekorn.program.streams.stream_kinds import StreamKinds


class StreamCore(OperatorSettings, DrawnInNotebooks, SuggestsMethods):
    """An environment, and the edges of its graph along which the records of the stream arrive.

    The edges are open: nothing reads them yet. A union has an edge for each of its inputs; every other stream has one.
    """

    def __init__(self, environment: StreamExecutionEnvironment, edges: tuple[Edge, ...]) -> None:
        self._environment = environment
        self._edges = edges

    # ------------------------------------------------------------------------------ about this stream

    def get_name(self) -> str:
        """Return the name of the operator that this stream comes from."""
        return self._operator("get_name").name

    def get_type(self) -> TypeInformation:
        """Return the type of the records; `Types.PICKLED_BYTE_ARRAY()`, any Python object, if none was declared."""
        return self._type() or Types.PICKLED_BYTE_ARRAY()

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        """Return the environment that this stream belongs to."""
        return self._environment

    def get_execution_config(self) -> ExecutionConfig:
        """Return the execution settings of the environment."""
        return self._environment.get_config()

    # ------------------------------------------------------------------------------ settings of the operator before it

    def set_max_parallelism(self, max_parallelism: int) -> Self:
        """Set the operator's maximum parallelism, from 1 to 32768: the number of its key groups."""
        self._operator("set_max_parallelism").set_max_parallelism(max_parallelism)
        return self

    def force_non_parallel(self) -> Self:
        """Fix the parallelism and the maximum parallelism of the operator to 1."""
        self._operator("force_non_parallel").force_non_parallel()
        return self

    def set_buffer_timeout(self, timeout_millis: int) -> Self:
        """Set how long the operator's output may wait to be sent together with more. Only latency changes."""
        self._operator("set_buffer_timeout").set_buffer_timeout(timeout_millis)
        return self

    def start_new_chain(self) -> Self:
        """Let the operator share a vertex with the operators after it, and not with those before it."""
        self._operator("start_new_chain").chaining = Chaining.HEAD
        return self

    # ------------------------------------------------------------------------------ drawing the graph

    @property
    def _kinds(self) -> StreamKinds:
        return self._environment._stream_kinds

    def _type(self) -> TypeInformation | None:
        return self._edges[0].type_info

    def _type_text(self) -> str:
        return "undeclared" if self._type() is None else str(self._type())

    def _transform(
        self, name: str, spec: OperatorSpec, output_type: TypeInformation | None, key: KeySpec | None = None
    ) -> DataStream:
        """Draw an operator that reads this stream, and return its output."""
        check_output_type(name, output_type)
        node = self._environment._graph.operator(name, spec, self._edges, output_type, key=key)
        return self._kinds.data_stream(self._environment, (Edge(node),))

    def _partitioned(self, partitioning: Partitioning) -> DataStream:
        """Return this stream with another partitioning on its edges."""
        edges = tuple(edge.partitioned(partitioning) for edge in self._edges)
        return self._kinds.data_stream(self._environment, edges)

    def _sink(self, name: str, spec: OperatorSpec) -> DataStreamSink:
        """Draw a sink that reads this stream."""
        return DataStreamSink(self._environment, self._environment._graph.sink(name, spec, self._edges))

    def _operator(self, call: str) -> Node:
        """Return the operator that this stream comes from.

        Raises:
            InvalidProgramError: The stream is a union, a side output or a partitioning, which has no operator.
        """
        if len(self._edges) > 1:
            raise InvalidProgramError(
                f"{call}() needs an operator, and a union has none: call {call}() on one of the streams before "
                "union(), or on the operator after it"
            )
        edge = self._edges[0]
        if edge.tag is not None:
            raise InvalidProgramError(
                f"{call}() needs an operator, and a side output has none: call {call}() before get_side_output()"
            )
        if isinstance(edge.partitioning, Custom):
            # Flink: in PyFlink an operator stands behind a custom partitioning, and programs set its parallelism.
            node = self._environment._graph.operator("Partition Custom", MapSpec(_same), self._edges, self._type())
            self._edges = (Edge(node),)
            return node
        if edge.partitioning is not None:
            partitioning = type(edge.partitioning).__name__.lower()
            raise InvalidProgramError(
                f"{call}() needs an operator, and a {partitioning} partitioning has none: "
                f"call {call}() before the partitioning"
            )
        return edge.source

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"a {type(self).__name__} cannot be used inside a function: use union "
            "or side outputs to combine or split streams"
        )

    def _drawn_nodes(self) -> tuple[Node, ...]:
        return tuple(edge.source for edge in self._edges)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({edges_text(self._edges)})"


def _same(record: Any) -> Any:
    return record
