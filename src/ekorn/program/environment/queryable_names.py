"""Checks the queryable states of a job before it is started, as far as the program shows them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from ekorn.errors import QueryableNameTwice
from ekorn.functions.state.state_descriptors import StateDescriptor
from ekorn.graph.job_graph import JobGraph, Operator

__all__ = ["check_queryable_names"]


def check_queryable_names(graph: JobGraph) -> None:
    """Refuse two operators whose functions have descriptors with one queryable name.

    A function may also make its descriptors in `open`. The slots find those when they open it, and the job is refused
    then, before it reads a record.

    Raises:
        QueryableNameTwice: There are two.
    """
    known: dict[str, str] = {}
    for vertex in graph.vertices:
        for operator in vertex.operators:
            for name in dict.fromkeys(_queryable_names(operator)):
                if name in known:
                    raise QueryableNameTwice(name, f"one of operator {known[name]!r}, one of {operator.name!r}")
                known[name] = operator.name


def _queryable_names(operator: Operator) -> Iterator[str]:
    for field in fields(operator.spec):
        function = getattr(operator.spec, field.name)
        for held in vars(function).values() if hasattr(function, "__dict__") else ():
            if isinstance(held, StateDescriptor) and held.queryable_name is not None:
                yield held.queryable_name
