"""Reminds a program that ends without `execute()` that nothing ran."""

from __future__ import annotations

import atexit
import sys
import weakref

from tamias.graph.stream_graph import StreamGraph

_graphs: weakref.WeakSet[StreamGraph] = weakref.WeakSet()


def remind_of_execute(graph: StreamGraph) -> None:
    """Watch a graph until the program ends, or the graph is gone."""
    if not _graphs:
        atexit.register(_remind)
    _graphs.add(graph)


def execute_failed(graph: StreamGraph) -> None:
    """Stop watching a graph whose `execute()` raised an error: the program knows that nothing ran."""
    _graphs.discard(graph)


def _remind() -> None:
    if hasattr(sys, "ps1") or getattr(sys, "last_value", None) is not None:
        return  # an interactive session, or the program ended with an error of its own
    for graph in _graphs:
        if pending := graph.pending():
            declared = ", ".join(node.where for node in pending[:3]) + (" ..." if pending[3:] else "")
            print(f"tamias: the program ended without env.execute(), so {declared} never ran", file=sys.stderr)
            return
