"""The rooms whose code is changed: their modules, the folder of their tests, and which other tests reach them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).resolve().parents[2] / "src" / "ekorn"
_JOBS = (
    "driver",
    "golden",
    "program/test_reprs.py",
    "test_docstrings.py",
)  # whole jobs, and what a driver shows of them
_CONTINUOUS = ("conformance/test_continuous.py", "subtask/test_continuous.py")  # what slots do for others
_POOLS = ("engine/test_resident_tables.py", "engine/test_registering_pool.py")


class Room(NamedTuple):
    """Modules below src/ekorn; the folder of their tests below tests; other tests of them, folders or files."""

    modules: tuple[str, ...]
    tests: str
    others: tuple[str, ...] = ()


ROOMS = {
    "checkpoint": Room(
        ("checkpoint",), "checkpoint", ("slot", *_JOBS, "cli/test_signing_commands.py", "service/test_leadership.py")
    ),
    "state": Room(("state",), "state", ("checkpoint", "slot", *_JOBS, *_CONTINUOUS)),
    "slot": Room(
        ("slot",),
        "slot",
        ("checkpoint", *_JOBS, *_CONTINUOUS, *_POOLS, "queryable/test_attempts.py", "rest/test_inspection.py"),
    ),
    "links": Room(("links",), "links", ("slot", "driver", *_POOLS, "engine/test_link_certificate.py")),
    "driver": Room(("driver",), "driver", ("checkpoint", "slot", *_JOBS, *_CONTINUOUS)),
    "file sink": Room(
        (
            *(f"connectors/files/{name}.py" for name in ("file_sink", "file_writer", "part_files")),
            "legacy/streaming_file_sink.py",
        ),
        "connectors",
        (
            "driver",
            "connectors/test_file_sink*.py",
            "connectors/test_file_contracts.py",
            "connectors/test_bulk_sinks.py",
        ),
    ),
    "queryable": Room(
        ("queryable", "driver/queries"),
        "queryable",
        ("driver/test_query_answers.py", "slot/test_query_connection.py", "rest/test_state.py"),
    ),
    "web": Room(("web",), "web", ("program/test_web.py", "rest")),
    "rest": Room(("rest",), "rest", ("program/test_web.py", "service")),
    "service": Room(("service",), "service", ("cli/test_remote_service.py",)),
}


def modules(room: str, source: Path = SOURCE) -> list[str]:
    """Return the modules of a room, below src/ekorn."""
    places = [source / name for name in ROOMS[room].modules]
    files = [path for place in places for path in ([place] if place.is_file() else sorted(place.rglob("*.py")))]
    return [str(path.relative_to(source)) for path in files]


def tests_of(rooms: list[str]) -> list[str]:
    """Return the tests of these rooms, folders and files below tests."""
    return sorted({place for room in rooms for place in _places(ROOMS[room])})


def _places(room: Room) -> tuple[str, ...]:
    # The folder of connectors holds tests of servers and of other connectors: its files are named one by one.
    return room.others if room.tests == "connectors" else (room.tests, *room.others)


def words(name: str) -> set[str]:
    """Return the words of a name in one form, whether they are written in CamelCase or not, one or many."""
    return {word.lower().rstrip("s") for word in re.findall(r"[A-Z]?[a-z]{3,}", name)}
