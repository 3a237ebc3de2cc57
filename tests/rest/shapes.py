"""Compares answers with their shapes (`ekorn/rest/shapes.py`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ekorn.rest.flink_answers import READING
from ekorn.rest.shapes import Either, Map, Maybe

__all__ = ["READING", "misfits", "names_of", "with_names"]


def with_names(path: str, get: Callable[[str], Any], names: dict[str, Any]) -> str:
    """Return a path with names in its variable parts. Of checkpoints the latest is named: the oldest are forgotten."""
    if "{checkpointid}" in path:
        latest = get(f"/jobs/{names['jobid']}/checkpoints")["latest"]["completed"]["id"]
        names = {**names, "checkpointid": latest}
    return path.format(**names)


def names_of(get: Callable[[str], Any], job_id: str) -> dict[str, Any]:
    """Return what the variable parts of paths are filled with: a job that runs, and parts of it."""
    vertex = get(f"/jobs/{job_id}")["vertices"][0]["id"]
    slots = [each["id"] for each in get("/taskmanagers")["taskmanagers"]]
    return {
        "jobid": job_id,
        "vertexid": vertex,
        "subtaskindex": 0,
        "attempt": get(f"/jobs/{job_id}/vertices/{vertex}/subtasks/0")["attempt"],
        "taskmanagerid": next(each for each in slots if each.startswith(job_id)),
        "rescaleuuid": get(f"/jobs/{job_id}/rescales/history")[0]["rescaleUuid"],
    }


def misfits(shape: Any, value: Any, at: str = "") -> list[str]:
    """Return where a value differs from a shape."""
    match shape:
        case Maybe():
            return [] if value is None else misfits(shape.of, value, at)
        case Either():
            return [] if not misfits(shape.first, value, at) else misfits(shape.second, value, at)
        case Map():
            if not isinstance(value, dict):
                return [f"{at}: {value!r} is no object"]
            return [each for key, part in value.items() for each in misfits(shape.of, part, f"{at}.{key}")]
        case dict():
            return _misfits_of_object(shape, value, at)
        case list():
            if not isinstance(value, list):
                return [f"{at}: {value!r} is no list"]
            return [each for n, part in enumerate(value) for each in misfits(shape[0], part, f"{at}[{n}]")]
        case frozenset():
            return [] if value in shape else [f"{at}: {value!r} is not one of {sorted(shape)}"]
    if shape is Any:
        return []
    if shape is float:
        return [] if type(value) in (int, float) else [f"{at}: {value!r} is no number"]
    return [] if type(value) is shape else [f"{at}: {value!r} is no {shape.__name__}"]


def _misfits_of_object(shape: dict[str, Any], value: Any, at: str) -> list[str]:
    if not isinstance(value, dict):
        return [f"{at}: {value!r} is no object"]
    known = {name.rstrip("?"): part for name, part in shape.items()}
    found = [f"{at}.{name} is missing" for name in shape if not name.endswith("?") and name not in value]
    found += [f"{at}.{name} is not one of Flink's fields" for name in value if name not in known]
    for name, part in value.items():
        if name in known:
            found += misfits(known[name], part, f"{at}.{name}")
    return found
