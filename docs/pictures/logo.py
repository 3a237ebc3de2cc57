"""Draws the sign of the manual: python docs/pictures/logo.py. A squirrel's tail, curled over a stream."""

from __future__ import annotations

import math

from svg import BROWN, ORANGE, Drawing, write_all


def drawings() -> dict[str, Drawing]:
    """Return the picture by its name."""
    sign = Drawing(48, 48, "Ekorn")
    sign.box(4, 4, 40, 40, "#f3e3d3", fill=1, round_=10)
    turns = [0.05 * step for step in range(37)]  # the curl: a spiral that opens towards the stream
    curl = [
        (
            24 + (2 + 6.2 * t) * math.cos(math.pi * (1.45 * t + 0.2)),
            19 + (2 + 5.4 * t) * math.sin(math.pi * (1.45 * t + 0.2)),
        )
        for t in turns
    ]
    sign.path(curl, ORANGE, 5)
    for number, colour in enumerate([BROWN, "#3b2a20"]):
        y = 35 + 4.5 * number
        sign.path([(9, y), (16, y - 1.8), (24, y + 1.2), (32, y - 1.2), (39, y + 0.6)], colour, 2.4)
    return {"ekorn": sign}


if __name__ == "__main__":
    write_all(drawings())
