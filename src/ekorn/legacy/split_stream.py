"""`split` and `select` of Flink 1.x: every record has names, and `select` returns the records of some names.

A split is one operator. Each set of selected names is a side output of it. `program` mixes `SelectMethods` into its
stream class, because this module cannot import the streams.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Generic, NoReturn, TypeVar

from ekorn.errors import InvalidProgramError, UnsupportedOperationError
from ekorn.functions.output_tag import OutputTag
from ekorn.graph.specs import SplitSpec
from ekorn.graph.stream_graph import Edge, StreamGraph
from ekorn.legacy.selection import OutputSelector, tag_of

__all__ = ["SelectMethods", "split_edges"]

Stream = TypeVar("Stream")


def split_edges(
    graph: StreamGraph, edges: tuple[Edge, ...], selector: Callable[[Any], Iterable[str]] | OutputSelector
) -> tuple[Edge, ...]:
    """Draw the split of a stream, and return the edges of the split stream.

    Raises:
        InvalidProgramError: The stream is split already, or is a side output.
    """
    _check_splittable(edges)
    split = []
    for edge in edges:  # one split per input of a union, so that the split adds no exchange
        here = replace(edge, partitioning=None)
        node = graph.operator("Split", SplitSpec(selector), (here,), edge.type_info, like_input=True)
        split.append(Edge(node, partitioning=edge.partitioning))
    return tuple(split)


class SelectMethods(ABC, Generic[Stream]):
    """The methods that a split stream has beside those of every stream."""

    _edges: tuple[Edge, ...]

    @abstractmethod
    def _stream_of(self, edges: tuple[Edge, ...]) -> Stream:
        """Return the stream of these edges, in the same environment."""

    def select(self, *output_names: str) -> Stream:
        """Return the records that have at least one of these names, each record once."""
        if not output_names:
            raise ValueError("select() needs at least one name")
        for name in output_names:
            if not isinstance(name, str):
                raise TypeError(f"select() takes names, which are strings, got {name!r}")
        tag = tag_of(output_names)
        return self._stream_of(tuple(replace(edge, tag=tag, tag_type=edge.source.output_type) for edge in self._edges))

    def get_side_output(self, output_tag: OutputTag) -> NoReturn:
        """Raise: a split stream has no side outputs."""
        raise UnsupportedOperationError(
            "get_side_output() of a split stream: split and side outputs cannot be combined; "
            "yield to several side outputs instead of split()"
        )


def _check_splittable(edges: tuple[Edge, ...]) -> None:
    for edge in edges:
        if isinstance(edge.source.spec, SplitSpec):
            what = "a split stream" if edge.tag is None else "a selected stream"
            raise InvalidProgramError(
                f"split() of {what}: it is already split; let the selector return all names, or map the stream first"
            )
        if edge.tag is not None:
            raise InvalidProgramError(
                "split() of a side output: the two cannot be combined; yield to several side outputs instead"
            )
