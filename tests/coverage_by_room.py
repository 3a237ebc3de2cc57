"""Print the coverage of each room: `python -m tests.coverage_by_room htmlcov/coverage.json`."""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path, PurePath


def by_room(report: Path) -> dict[str, tuple[int, int]]:
    """Return covered and total statements of each folder or module directly below `ekorn`."""
    counts: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    for name, file in json.loads(report.read_text())["files"].items():
        parts = PurePath(name).parts
        if "ekorn" not in parts:
            continue  # a module that a test wrote and imported below the package
        room = parts[parts.index("ekorn") + 1].removesuffix(".py")
        counts[room][0] += file["summary"]["covered_lines"]
        counts[room][1] += file["summary"]["num_statements"]
    return {room: (covered, total) for room, (covered, total) in counts.items() if total}


if __name__ == "__main__":
    print(f"{'room':<16} {'statements':>10} {'covered':>8}")
    for room, (covered, total) in sorted(by_room(Path(sys.argv[1])).items()):
        print(f"{room:<16} {total:>10} {covered / total:>8.0%}")
