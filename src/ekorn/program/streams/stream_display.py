"""Streams in a notebook: their text, and a drawing of the operators that they come from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from html import escape

from ekorn.graph.drawing import draw
from ekorn.graph.stream_graph import Node, with_inputs

__all__ = ["DrawnInNotebooks", "html_of"]


class DrawnInNotebooks(ABC):
    """Something in a program that stands for operators of the graph."""

    @abstractmethod
    def _drawn_nodes(self) -> tuple[Node, ...]:
        """Return the operators that this comes from directly."""

    def _repr_html_(self) -> str:
        """Return the text of this object, above a drawing of its operators and of all that they read."""
        return html_of(repr(self), with_inputs(self._drawn_nodes()))


def html_of(text: str, nodes: Iterable[Node]) -> str:
    """Return a text, and below it a drawing of operators, if there are any."""
    drawn = list(nodes)
    drawing = f'<div style="overflow-x: auto">{draw(drawn)}</div>' if drawn else ""
    return f"<div><code>{escape(text)}</code>{drawing}</div>"
