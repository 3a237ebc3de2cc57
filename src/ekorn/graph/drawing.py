"""Draws operators and the edges between them as SVG for notebooks: no script, nothing loaded, all text escaped.

Operators stand in columns by their depth, left to right. An edge that skips columns passes through a free row of each
of them, so that it crosses no operator.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from itertools import pairwise
from typing import NamedTuple

from ekorn.graph.plan import partitioning_text
from ekorn.graph.stream_graph import Edge, Kind, Node
from ekorn.graph.stream_text import output_text

__all__ = ["draw"]

_WIDTH, _HEIGHT = 200, 48  # the box of an operator
_GAP_X, _GAP_Y = 130, 22
_MARGIN = 8
_NAME_CHARS, _DETAIL_CHARS, _LABEL_CHARS = 26, 32, 22
_COLOURS = {Kind.SOURCE: "#d9ead3", Kind.OPERATOR: "#dbe7f6", Kind.SINK: "#fce5cd"}


class _Place(NamedTuple):
    column: int
    row: float


class _Point(NamedTuple):
    x: float
    y: float


class _Skip(NamedTuple):
    """The position in one column that an edge from an earlier column to a later one passes through."""

    source: int
    target: int
    number: int  # the number of the target's input
    column: int


def draw(nodes: Iterable[Node]) -> str:
    """Return the operators, and the edges between them, as an ``<svg>`` element.

    Args:
        nodes: The operators, inputs first, together with all operators that they read.
    """
    drawn = list(nodes)
    columns = _columns(drawn)
    places = _places(columns)
    rows = max(len(column) for column in columns)
    width = len(columns) * (_WIDTH + _GAP_X) - _GAP_X + 2 * _MARGIN
    height = rows * (_HEIGHT + _GAP_Y) - _GAP_Y + 2 * _MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">'
    ]
    for node in drawn:
        parts += [_edge(edge, node, number, places) for number, edge in enumerate(node.inputs)]
    parts += [_box(node, places[node.id]) for node in drawn]
    return "".join([*parts, "</svg>"])


# ----------------------------------------------------------------------------------------------------- the layout

_Entry = int | _Skip  # an operator's id, or an edge that passes through the column


def _columns(nodes: list[Node]) -> list[list[_Entry]]:
    """Return the operators by depth, and the edges that pass each column."""
    depth: dict[int, int] = {}
    for node in nodes:
        depth[node.id] = 1 + max((depth[edge.source.id] for edge in node.inputs), default=-1)
    columns: list[list[_Entry]] = [[] for _ in range(1 + max(depth.values()))]
    for node in nodes:
        columns[depth[node.id]].append(node.id)
        for number, edge in enumerate(node.inputs):
            for column in range(depth[edge.source.id] + 1, depth[node.id]):
                columns[column].append(_Skip(edge.source.id, node.id, number, column))
    _order(columns, {node.id: node for node in nodes})
    return columns


def _order(columns: list[list[_Entry]], nodes: Mapping[int, Node]) -> None:
    """Sort each column by the mean row of what its entries come from, so that few edges cross."""
    rows: dict[_Entry, float] = {}

    def row_before(skip: _Skip) -> float:
        return rows[skip if skip in rows else skip.source]

    def mean_row(entry: _Entry, column: int) -> float:
        if isinstance(entry, _Skip):
            return row_before(entry._replace(column=column - 1))
        sources = [
            row_before(_Skip(edge.source.id, entry, number, column - 1))
            for number, edge in enumerate(nodes[entry].inputs)
        ]
        return sum(sources) / len(sources) if sources else 0.0

    for number, column in enumerate(columns):
        column.sort(key=lambda entry, number=number: mean_row(entry, number))  # type: ignore[misc]
        for row, entry in enumerate(column):
            rows[entry] = row - (len(column) - 1) / 2


def _places(columns: list[list[_Entry]]) -> dict[_Entry, _Place]:
    """Return a place for each entry; shorter columns are centred beside the longest one."""
    most = max(len(column) for column in columns)
    return {
        entry: _Place(number, row + (most - len(column)) / 2)
        for number, column in enumerate(columns)
        for row, entry in enumerate(column)
    }


def _corner(place: _Place) -> _Point:
    return _Point(_MARGIN + place.column * (_WIDTH + _GAP_X), _MARGIN + place.row * (_HEIGHT + _GAP_Y))


# --------------------------------------------------------------------------------------------------- the elements


def _box(node: Node, place: _Place) -> str:
    x, y = _corner(place)
    details = [] if node.parallelism is None else [f"parallelism {node.parallelism}"]
    details += [] if node.uid is None else [f"uid {node.uid!r}"]
    details += [] if node.output_type is None else [f"gives {node.output_type}"]
    written = [f"written at {node.written_at}"] if node.written_at else []
    tooltip = "\n".join([node.full_name, *([node.description] if node.description else []), *details, *written])
    text = ", ".join(details)
    return (
        f"<g><title>{escape(tooltip)}</title>"
        f'<rect x="{x:g}" y="{y:g}" width="{_WIDTH}" height="{_HEIGHT}" rx="5" fill="{_COLOURS[node.kind]}" '
        'stroke="#6b7785"/>'
        + _text(x + 10, y + (20 if text else 29), node.full_name, _NAME_CHARS, 'fill="#1c2733"')
        + (_text(x + 10, y + 37, text, _DETAIL_CHARS, 'font-size="10" fill="#4a5866"') if text else "")
        + "</g>"
    )


def _edge(edge: Edge, target: Node, number: int, places: Mapping[_Entry, _Place]) -> str:
    source = edge.source.id
    between = range(places[source].column + 1, places[target.id].column)
    way: list[_Entry] = [source, *(_Skip(source, target.id, number, column) for column in between), target.id]
    points = [_corner(places[entry]) for entry in way]
    middles = [point._replace(y=point.y + _HEIGHT / 2) for point in points]
    path = f"M{middles[0].x + _WIDTH:g},{middles[0].y:g}"
    for before, after in pairwise(middles):
        left, right = before.x + _WIDTH, after.x
        path += f" C{left + _GAP_X / 2:g},{before.y:g} {right - _GAP_X / 2:g},{after.y:g} {right:g},{after.y:g}"
        path += "" if after is middles[-1] else f" h{_WIDTH}"
    end = middles[-1]
    arrow = f"M{end.x - 7:g},{end.y - 4:g} L{end.x:g},{end.y:g} L{end.x - 7:g},{end.y + 4:g}"
    label = _label(edge, len(target.inputs) > 1 and any(each.input_index for each in target.inputs))
    first = middles[1]
    at = _Point(first.x - _GAP_X / 2, (middles[0].y + first.y) / 2 - 5)
    return (
        f'<g><title>{escape(label)}</title><path d="{path} {arrow}" fill="none" stroke="#6b7785"/>'
        + _text(at.x, at.y, label, _LABEL_CHARS, 'font-size="10" fill="#6b7785" text-anchor="middle"')
        + "</g>"
    )


def _label(edge: Edge, several_inputs: bool) -> str:
    parts = [f"input {edge.input_index + 1}"] if several_inputs else []
    output = output_text(edge)
    parts += [] if output is None else [output]
    parts += [] if edge.partitioning is None else [partitioning_text(edge.partitioning)]
    return ", ".join(parts)


def _text(x: float, y: float, text: str, chars: int, style: str) -> str:
    """Return a text element. Longer text is cut, and the tooltip of the group shows the whole text."""
    cut = text if len(text) <= chars else f"{text[: chars - 1]}…"
    return f'<text x="{x:g}" y="{y:g}" {style}>{escape(cut)}</text>'
