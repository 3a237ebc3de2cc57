"""The rooms whose code is changed, with their modules and the folder of their tests."""

from __future__ import annotations

import re
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src" / "ekorn"
ROOMS = {  # room -> its modules, and the folder of its tests
    "checkpoint": (["checkpoint"], "checkpoint"),
    "state": (["state"], "state"),
    "slot": (["slot"], "slot"),
    "links": (["links"], "links"),
    "driver": (["driver"], "driver"),
    "file sink": (
        [
            *(f"connectors/files/{name}.py" for name in ("file_sink", "file_writer", "part_files")),
            "legacy/streaming_file_sink.py",
        ],
        "connectors",
    ),
}


def modules(room: str, source: Path = SOURCE) -> list[str]:
    """Return the modules of a room, below src/ekorn."""
    places = [source / name for name in ROOMS[room][0]]
    files = [path for place in places for path in ([place] if place.is_file() else sorted(place.rglob("*.py")))]
    return [str(path.relative_to(source)) for path in files]


def words(name: str) -> set[str]:
    """Return the words of a name in one form, whether they are written in CamelCase or not, one or many."""
    return {word.lower().rstrip("s") for word in re.findall(r"[A-Z]?[a-z]{3,}", name)}
