"""Draws the samples of `make soak-hour`: those of the manual in long-run.csv, or those of another run.

python docs/pictures/long_run.py [samples.csv picture.svg]
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

from svg import FAINT, FOLDER, INK, SERIES, Drawing, write_all

WIDTH, HEIGHT = 300, 110
CHARTS = {
    "resident memory, MB": {
        "driver_mb": "driver",
        "jvm_mb": "Spark's JVM",
        "workers_mb": "Spark's workers",
        "slots_mb": "slots",
    },
    "counts, all processes": {"threads": "threads", "descriptors": "descriptors", "sockets": "sockets"},
    "files on disk, MB": {"disk_mb": ""},
    "median age at the sink, ms": {"p50_ms": ""},
    "99th percentile of the ages, ms": {"p99_ms": ""},
}


def long_run(path: Path = FOLDER / "long-run.csv") -> Drawing:
    with path.open(newline="") as file:
        samples = [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]
    samples = [sample for sample in samples if sample["seconds"] >= 60]  # the job has started
    drawing = Drawing(720, 505, "A continuous job over time: memory, threads, descriptors, sockets, files and latency")
    for number, (title, columns) in enumerate(CHARTS.items()):
        chart(drawing, 50 + 360 * (number % 2), 30 + 165 * (number // 2), title, columns, samples=samples)
    return drawing


def chart(
    drawing: Drawing, left: float, top: float, title: str, columns: dict[str, str], *, samples: list[dict[str, float]]
) -> None:
    """Add one chart; its vertical axis begins at zero."""
    most = max(sample[name] for sample in samples for name in columns) or 1.0
    last = samples[-1]["seconds"]
    bottom = top + HEIGHT
    drawing.text(left, top - 8, title, anchor="start", bold=True, size=12)
    drawing.line(left, bottom, left + WIDTH, bottom, FAINT, width=1)
    drawing.line(left, top, left, bottom, FAINT, width=1)
    drawing.text(left - 5, top + 5, f"{most:.0f}", anchor="end", size=11)
    drawing.text(left - 5, bottom, "0", anchor="end", size=11)
    drawing.text(left + WIDTH, bottom + 15, f"{last / 60:.0f} minutes", anchor="end", size=11)
    for colour, (name, label) in zip(SERIES, columns.items(), strict=False):
        points = [(left + WIDTH * s["seconds"] / last, bottom - HEIGHT * s[name] / most) for s in samples]
        drawing.path([(round(x, 1), round(y, 1)) for x, y in points], colour, width=1.2)
        drawing.text(left + WIDTH - 4, points[-1][1] - 4, label, INK, anchor="end", size=11)


def drawings() -> dict[str, Drawing]:
    """Return the pictures by their names."""
    return {"long-run": long_run()}


if __name__ == "__main__":
    if len(sys.argv) == 3:
        Path(sys.argv[2]).write_text(long_run(Path(sys.argv[1])).render(), encoding="utf-8")
    else:
        write_all(drawings())
