"""`SplitStream`: a stream whose records have names, and `select` for the records of some names, as in Flink 1.x."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NoReturn

from ekorn.errors import InvalidProgramError, UnsupportedOperationError
from ekorn.functions.output_tag import OutputTag
from ekorn.functions.selection import OutputSelector, tag_of
from ekorn.graph.specs import SplitSpec
from ekorn.graph.stream_graph import Edge
from ekorn.program.streams.data_stream import DataStream

__all__ = ["OutputSelector", "SplitStream"]


class SplitStream(DataStream):
    """All records of a stream, with names to select them by. A transformation of the split stream sees every record.

    Example:
        >>> from ekorn.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> numbers = env.from_collection([1, 2, 3]).split(lambda x: ["odd"] if x % 2 else ["even"])
        >>> odd, both = numbers.select("odd"), numbers.select("even", "odd")
    """

    def __init__(self, stream: DataStream, selector: Callable[[Any], Iterable[str]] | OutputSelector) -> None:
        _check_splittable(stream)
        environment = stream.get_execution_environment()
        edges = []
        for edge in stream._edges:  # one split per input of a union, so that the split adds no exchange
            here = replace(edge, partitioning=None)
            spec = SplitSpec(selector)
            node = environment._graph.operator("Split", spec, (here,), edge.type_info, like_input=True)
            edges.append(Edge(node, partitioning=edge.partitioning))
        super().__init__(environment, tuple(edges))

    def select(self, *output_names: str) -> DataStream:
        """Return the records that have at least one of these names, each record once."""
        if not output_names:
            raise ValueError("select() needs at least one name")
        for name in output_names:
            if not isinstance(name, str):
                raise TypeError(f"select() takes names, which are strings, got {name!r}")
        tag = tag_of(output_names)
        edges = tuple(replace(edge, tag=tag, tag_type=edge.source.output_type) for edge in self._edges)
        return DataStream(self._environment, edges)

    def get_side_output(self, output_tag: OutputTag) -> NoReturn:
        """Raise: a split stream has no side outputs."""
        raise UnsupportedOperationError(
            "get_side_output() of a split stream: split and side outputs do not go together; "
            "yield to several side outputs instead of split()"
        )


def _check_splittable(stream: DataStream) -> None:
    for edge in stream._edges:
        if isinstance(edge.source.spec, SplitSpec):
            what = "a split stream" if edge.tag is None else "a selected stream"
            raise InvalidProgramError(
                f"split() of {what}: it is split already; let the selector return all names, or map the stream first"
            )
        if edge.tag is not None:
            raise InvalidProgramError(
                "split() of a side output: the two do not go together; yield to several side outputs instead"
            )
