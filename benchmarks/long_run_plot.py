"""Draws the samples of `benchmarks/long_run.py` as an SVG: one curve for each column, over the minutes.

python -m benchmarks.long_run_plot long_run.csv long_run.svg
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

WIDTH, HEIGHT, MARGIN = 300, 90, 46
COLUMNS = 3
SKIPPED = ("seconds", "records", "checkpoints")


def main() -> None:
    samples, target = Path(sys.argv[1]), Path(sys.argv[2])
    with samples.open(newline="") as file:
        rows = [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]
    target.write_text(drawn(rows))


def drawn(rows: list[dict[str, float]]) -> str:
    """Return the picture of all columns.

    >>> drawn([{"seconds": 60.0 * n, "p50_ms": 2.0} for n in range(3)]).count("<polyline")
    1
    """
    minutes = [row["seconds"] / 60 for row in rows]
    names = [name for name in rows[0] if name not in SKIPPED]
    charts = [chart(name, minutes, [row[name] for row in rows], number) for number, name in enumerate(names)]
    lines = -(-len(names) // COLUMNS)
    size = (WIDTH + MARGIN) * min(COLUMNS, len(names)) + 10, (HEIGHT + MARGIN) * lines + 10
    style = "font-family='sans-serif' font-size='11' fill='#444'"
    head = f"<svg xmlns='http://www.w3.org/2000/svg' width='{size[0]}' height='{size[1]}' {style}>"
    return "\n".join([head, "<rect width='100%' height='100%' fill='white'/>", *charts, "</svg>\n"])


def chart(name: str, minutes: list[float], values: list[float], number: int) -> str:
    """Return one curve with its name and its highest value; the vertical axis begins at zero."""
    left = (number % COLUMNS) * (WIDTH + MARGIN) + MARGIN
    top = (number // COLUMNS) * (HEIGHT + MARGIN) + 24
    most, last = max(values) or 1.0, max(minutes) or 1.0
    points = " ".join(
        f"{left + WIDTH * 0.95 * minute / last:.1f},{top + HEIGHT - HEIGHT * 0.9 * value / most:.1f}"
        for minute, value in zip(minutes, values, strict=True)
    )
    axes = f"M{left},{top} v{HEIGHT} h{WIDTH * 0.95:.0f}"
    return "\n".join(
        [
            f"<path d='{axes}' fill='none' stroke='#bbb'/>",
            f"<polyline points='{points}' fill='none' stroke='#1f6fb2' stroke-width='1.2'/>",
            f"<text x='{left}' y='{top - 8}'>{name}</text>",
            f"<text x='{left - 4}' y='{top + HEIGHT * 0.12:.0f}' text-anchor='end'>{most:g}</text>",
            f"<text x='{left + WIDTH * 0.95:.0f}' y='{top + HEIGHT + 13}' text-anchor='end'>{last:.0f} min</text>",
        ]
    )


if __name__ == "__main__":
    main()
