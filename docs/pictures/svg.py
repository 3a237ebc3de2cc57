"""The few shapes that the pictures of the manual are drawn with, as text of SVG.

Colours are in the middle of the scale, so that a picture reads on a light and on a dark page.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
INK, FAINT, BROWN, ORANGE, BLUE, GREEN, RED, VIOLET = (
    "#7a7370",
    "#b5aca8",
    "#9c6b45",
    "#e0762f",
    "#3f87c5",
    "#4d9a5b",
    "#cc4b4b",
    "#8a63b8",
)
SERIES = [BLUE, ORANGE, GREEN, VIOLET, BROWN, RED]


class Drawing:
    """A picture of a given size; the methods add shapes in their order.

    Args:
        width: Of the picture.
        height: Of the picture.
        title: What the picture shows, for readers who do not see it.
    """

    def __init__(self, width: int, height: int, title: str) -> None:
        self.width, self.height, self.title = width, height, title
        self._shapes: list[str] = []

    def line(
        self, x1: float, y1: float, x2: float, y2: float, colour: str = INK, *, width: float = 1.5, dash: str = ""
    ) -> None:
        """Add a straight line."""
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        at = f'x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}"'
        self._shapes.append(f'<line {at} stroke="{colour}" stroke-width="{width:g}"{dashes}/>')

    def arrow(self, x1: float, y1: float, x2: float, y2: float, colour: str = INK, *, width: float = 1.5) -> None:
        """Add a line with a head at its second end."""
        at = f'x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}"'
        self._shapes.append(f'<line {at} stroke="{colour}" stroke-width="{width:g}" marker-end="url(#head)"/>')

    def path(self, points: list[tuple[float, float]], colour: str, width: float = 2) -> None:
        """Add a line through points."""
        text = " ".join(f"{x:g},{y:g}" for x, y in points)
        self._shapes.append(f'<polyline points="{text}" fill="none" stroke="{colour}" stroke-width="{width:g}"/>')

    def box(
        self, x: float, y: float, width: float, height: float, colour: str, *, fill: float = 0.12, round_: float = 5
    ) -> None:
        """Add a box that is filled with its own colour, faintly."""
        at = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{round_:g}"'
        self._shapes.append(
            f'<rect {at} fill="{colour}" fill-opacity="{fill:g}" stroke="{colour}" stroke-width="1.2"/>'
        )

    def dot(self, x: float, y: float, colour: str, radius: float = 6, *, hollow: bool = False) -> None:
        """Add a circle."""
        fill = "none" if hollow else colour
        self._shapes.append(
            f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" fill="{fill}" stroke="{colour}" stroke-width="1.8"/>'
        )

    def text(
        self,
        x: float,
        y: float,
        words: str,
        colour: str = INK,
        *,
        size: float = 13,
        anchor: str = "middle",
        bold: bool = False,
    ) -> None:
        """Add a line of text; `anchor` is start, middle or end."""
        weight = ' font-weight="600"' if bold else ""
        at = f'x="{x:g}" y="{y:g}" font-size="{size:g}" text-anchor="{anchor}"'
        self._shapes.append(f'<text {at} fill="{colour}"{weight}>{escape(words)}</text>')

    def render(self) -> str:
        """Return the picture as a file of SVG."""
        head = (
            '<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
            f'<path d="M0,0 L8,4 L0,8 z" fill="{INK}"/></marker>'
        )
        size = f'width="{self.width}" height="{self.height}" viewBox="0 0 {self.width} {self.height}"'
        opening = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="system-ui, sans-serif" role="img">'
        parts = [opening, f"<title>{escape(self.title)}</title>", f"<defs>{head}</defs>", *self._shapes, "</svg>"]
        return "\n".join(parts) + "\n"


def bars(title: str, rows: list[tuple[str, float, str]], unit: str = "", width: int = 640) -> Drawing:
    """Draw one horizontal bar per row: a label, a length and a colour."""
    drawing = Drawing(width, 26 * len(rows) + 46, title)
    drawing.text(12, 22, title, size=14, anchor="start", bold=True)
    longest = max((length for _, length, _ in rows), default=1) or 1
    for number, (label, length, colour) in enumerate(rows):
        y = 38 + 26 * number
        drawing.text(170, y + 15, label, anchor="end", size=12.5)
        drawing.box(180, y + 3, max(2.0, round((width - 270) * length / longest, 1)), 16, colour, fill=0.55, round_=2)
        end = 180 + round((width - 270) * length / longest, 1)
        drawing.text(end + 8, y + 16, f"{length:g}{unit}", anchor="start", size=12)
    return drawing


def write_all(drawings: dict[str, Drawing]) -> None:
    """Write pictures beside this file, by name."""
    for name, drawing in drawings.items():
        (FOLDER / f"{name}.svg").write_text(drawing.render(), encoding="utf-8")
