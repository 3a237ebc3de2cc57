"""Draws the sign of the manual: python docs/pictures/logo.py. A chipmunk's back: five stripes over a stream."""

from __future__ import annotations

from svg import BROWN, ORANGE, Drawing, write_all


def drawings() -> dict[str, Drawing]:
    """Return the picture by its name."""
    sign = Drawing(48, 48, "Ekorn")
    sign.box(4, 4, 40, 40, "#f3e3d3", fill=1, round_=10)
    for number, colour in enumerate([BROWN, "#3b2a20", ORANGE, "#3b2a20", BROWN]):
        y = 12 + 6 * number
        sign.path([(9, y), (18, y - 2.5), (30, y + 2.5), (39, y)], colour, 3)
    return {"ekorn": sign}


if __name__ == "__main__":
    write_all(drawings())
