"""Finds operators whose results go nowhere: no operator and no sink reads them.

Flink runs them, and so does Ekorn: their functions may be there for what they do. A function that counts in
accumulators or metrics, or whose state can be queried, is not told of, since its results are found there.
"""

from __future__ import annotations

from collections.abc import Iterable

from ekorn.functions.state.state_descriptors import StateDescriptor
from ekorn.graph.stream_graph import Kind, Node, StreamGraph
from ekorn.program.checks.user_code import all_code, attributes_of, user_code

__all__ = ["unread_results_text"]

_SHOWN = 4  # operators that a hint names
_GIVES_ELSEWHERE = frozenset(
    {"add_accumulator", "get_int_counter", "get_long_counter", "get_double_counter", "get_histogram"}
    | {"get_metrics_group", "get_metric_group", "set_queryable"}
)


def unread_results_text(graph: StreamGraph) -> str | None:
    """Return the hint about operators whose results go nowhere; None if there are none."""
    nodes = graph.nodes()
    read = {edge.source.id for node in nodes for edge in node.inputs}
    unread = [n for n in nodes if n.kind is Kind.OPERATOR and n.id not in read and not _gives_elsewhere(n)]
    if not unread:
        return None
    return (
        f"the results of {_listed(unread)} go nowhere: add a sink, such as print() or sink_to(...), or call "
        "execute_and_collect() on the stream"
    )


def _listed(nodes: Iterable[Node]) -> str:
    names = [node.where for node in nodes]
    if len(names) > _SHOWN:
        names[_SHOWN - 1 :] = [f"{len(names) - _SHOWN + 1} other operators"]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _gives_elsewhere(node: Node) -> bool:
    if getattr(node.spec, "queryable_name", None) is not None:
        return True
    function = getattr(node.spec, "function", None)
    held = attributes_of(function).values()
    if any(issubclass(type(each), StateDescriptor) and each.queryable_name is not None for each in held):
        return True
    return any(
        name in _GIVES_ELSEWHERE for each in user_code(node) for code in all_code(each.code) for name in code.co_names
    )
