"""`IterativeStream`: the loops that `iterate` begins and `close_with` closes."""

from __future__ import annotations

from collections.abc import Callable

from ekorn.errors import InvalidProgramError, UnsupportedOperationError
from ekorn.graph.specs import FeedbackHeadSpec, FeedbackTailSpec
from ekorn.graph.stream_graph import Edge, Node
from ekorn.program.checks.argument_checks import check_output_type
from ekorn.program.streams.connected_streams import ConnectedStreams
from ekorn.program.streams.data_stream import DataStream
from ekorn.program.streams.key_selection import KeySelection
from ekorn.types.type_information import TypeInformation

Step = Callable[[DataStream], tuple[DataStream, DataStream]]
_FEEDBACK = "_feedback"  # the side output of records that are fed back with a type of their own


class _Loop:
    """A loop while it is drawn: first its head, then its tail."""

    def __init__(self, source: DataStream, max_wait_ms: int, tag: str | None, feedback: TypeInformation | None) -> None:
        self.source = source
        self.environment = source.get_execution_environment()
        self._feedback_type = feedback
        self._closed = False
        spec = FeedbackHeadSpec(0, max_wait_ms, tag)
        graph = self.environment._graph
        self.head = graph.operator("IterationHead", spec, source._edges, source._type())
        self.head.spec = FeedbackHeadSpec(self.head.id, max_wait_ms, tag)

    def discard(self) -> None:
        """Remove the loop from the graph; another one is drawn in its place."""
        if self._closed:
            raise InvalidProgramError("the loop is already closed; call with_feedback_type() before close_with()")
        self.environment._graph.discard(self.head)

    def close(self, feedback: DataStream) -> None:
        """Feed a stream back to the head of the loop."""
        self._check(feedback)
        edges = tuple(self._like_the_input(edge) for edge in feedback._edges)
        tail = self.environment._graph.sink("IterationTail", FeedbackTailSpec(self.head.id), edges)
        tail.beside = self.head
        self._closed = True

    def _check(self, feedback: DataStream) -> None:
        if not isinstance(feedback, DataStream):
            raise TypeError(f"close_with() needs a stream, got {feedback!r}")
        if self._closed:
            raise InvalidProgramError("the loop is already closed; to feed back several streams, close it with a union")
        if feedback._type() != self._feedback_type:
            raise InvalidProgramError(
                f"close_with() needs a stream of the loop's type, {self._feedback_type or 'undeclared'}, and got "
                f"one of type {feedback._type() or 'undeclared'}; map it with that type, or use with_feedback_type()"
            )
        mine = self._parallelism_of(self.source._edges[0].source)
        for edge in feedback._edges:
            if not _comes_from(self.head, edge.source):
                raise UnsupportedOperationError(
                    f"close_with() was given the stream of {edge.source.where}, which does not originate from this loop"
                )
            theirs = self._parallelism_of(edge.source)
            if mine != theirs:
                raise UnsupportedOperationError(
                    f"a feedback stream needs the parallelism of the loop's input, {mine}, "
                    f"but {edge.source.where} has {theirs}; call set_parallelism({mine}) there"
                )

    def _parallelism_of(self, node: Node) -> int:
        if node.non_parallel:
            return 1
        follows = isinstance(node.spec, FeedbackHeadSpec) or (node.like_input and len(node.inputs) == 1)
        if node.parallelism is None and follows:
            return self._parallelism_of(node.inputs[0].source)
        return node.parallelism or self.environment.get_parallelism()

    def _like_the_input(self, edge: Edge) -> Edge:
        """Return the edge partitioned like the loop's input, unless the program set a partitioning."""
        wanted = self.source._edges[0].partitioning
        return edge if edge.partitioning is not None or wanted is None else edge.partitioned(wanted)


def _comes_from(head: Node, node: Node) -> bool:
    seen: set[int] = set()
    open_nodes = [node]
    while open_nodes:
        each = open_nodes.pop()
        if each is head:
            return True
        if each.id not in seen:
            seen.add(each.id)
            open_nodes.extend(edge.source for edge in each.inputs)
    return False


class IterativeStream(DataStream):
    """The input of a loop's body: the stream that `iterate` was called on, and the records that are fed back.

    Example:
        >>> from ekorn.datastream import StreamExecutionEnvironment
        >>> from ekorn.testing.local_run import collect_locally
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> env = env.set_parallelism(1)
        >>> loop = env.from_collection([3, 1]).iterate(max_wait_time_millis=1)
        >>> less = loop.map(lambda x: x - 1)
        >>> feedback = loop.close_with(less.filter(lambda x: x > 0))
        >>> collect_locally(less.filter(lambda x: x <= 0))
        [0, 0]
    """

    def __init__(self, stream: DataStream, max_wait_ms: int) -> None:
        if isinstance(max_wait_ms, bool) or not isinstance(max_wait_ms, int) or max_wait_ms < 0:
            raise ValueError(
                "iterate() takes the number of milliseconds to wait, or 0 to wait as long as the job runs; got "
                f"{max_wait_ms!r}"
            )
        self._max_wait_ms = max_wait_ms
        self._loop = _Loop(stream, max_wait_ms, None, stream._type())
        super().__init__(stream.get_execution_environment(), (Edge(self._loop.head),))

    def close_with(self, feedback_stream: DataStream) -> DataStream:
        """Feed a stream back to the head of the loop. It must come from this loop and have the same parallelism."""
        self._loop.close(feedback_stream)
        return feedback_stream

    def with_feedback_type(self, feedback_type: TypeInformation | None = None) -> ConnectedIterativeStreams:
        """Feed back records of another type, as the second input of connected streams."""
        check_output_type("with_feedback_type", feedback_type, "feedback_type")
        self._loop.discard()
        loop = _Loop(self._loop.source, self._max_wait_ms, _FEEDBACK, feedback_type)
        return ConnectedIterativeStreams(loop, feedback_type)


class ConnectedIterativeStreams(ConnectedStreams):
    """The input of a loop and, as the second of two connected streams, the records that are fed back."""

    def __init__(self, loop: _Loop, feedback_type: TypeInformation | None) -> None:
        self._loop = loop
        feedback = Edge(loop.head, tag=_FEEDBACK, tag_type=feedback_type)
        super().__init__(DataStream(loop.environment, (Edge(loop.head),)), DataStream(loop.environment, (feedback,)))

    def key_by(
        self,
        key_selector1: KeySelection,
        key_selector2: KeySelection,
        key_type: TypeInformation | None = None,
    ) -> ConnectedStreams:
        """Raise: partition the stream before `iterate`, and the feedback stream before `close_with`."""
        raise UnsupportedOperationError(
            "the inputs of a loop cannot be keyed together: partition the stream before iterate(), "
            "and the feedback stream before close_with()"
        )

    def close_with(self, feedback_stream: DataStream) -> DataStream:
        """Feed a stream back as the second input. It must come from this loop and have the same parallelism."""
        self._loop.close(feedback_stream)
        return feedback_stream
