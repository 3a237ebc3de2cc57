"""Compares answers with their schemas (`ekorn/rest/answers.json`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ekorn.rest.openapi import answer_schemas

__all__ = ["ANSWERS", "READING", "TEXT", "misfits", "names_of", "with_names"]

ANSWERS: dict[str, dict[str, Any]] = {name: each for part in answer_schemas().values() for name, each in part.items()}
TEXT = {"type": "string"}  # a log file, which is no JSON
_VERTEX = "/jobs/{jobid}/vertices/{vertexid}"
_QUERIES = (
    "/jobs/metrics?get=numRestarts,uptime&agg=min,max",
    "/jobs/{jobid}/metrics?get=uptime,lastCheckpointExternalPath",
    f"{_VERTEX}/metrics?get=0.numRecordsIn",
    f"{_VERTEX}/subtasks/metrics?get=numRecordsIn",
    "/taskmanagers/metrics?get=Status.JVM.Threads.Count&agg=sum",
)
READING: dict[str, dict[str, Any]] = {
    **{name.removeprefix("GET "): each for name, each in answer_schemas()["reading"].items()},
    **{path: ANSWERS[f"GET {path.partition('?')[0]}"] for path in _QUERIES},
}
"""The schemas of what Flink's API reads, by path, also of paths with a query."""

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
}


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
        "applicationid": job_id,
        "vertexid": vertex,
        "subtaskindex": 0,
        "attempt": get(f"/jobs/{job_id}/vertices/{vertex}/subtasks/0")["attempt"],
        "taskmanagerid": next(each for each in slots if each.startswith(job_id)),
        "rescaleuuid": get(f"/jobs/{job_id}/rescales/history")[0]["rescaleUuid"],
    }


def misfits(schema: dict[str, Any], value: Any, at: str = "") -> list[str]:
    """Return where a value differs from a schema. An object has the fields of its schema alone."""
    if value is None and schema.get("nullable"):
        return []
    if "anyOf" in schema:
        found = [misfits(each, value, at) for each in schema["anyOf"]]
        return [] if [] in found else found[-1]
    if not schema:
        return []
    if type(value) not in _TYPES[schema["type"]]:
        return [f"{at}: {value!r} is no {schema['type']}"]
    if value not in schema.get("enum", [value]):
        return [f"{at}: {value!r} is not one of {schema['enum']}"]
    if isinstance(value, list):
        return [each for n, part in enumerate(value) for each in misfits(schema["items"], part, f"{at}[{n}]")]
    if "additionalProperties" in schema:
        return [
            each for key, part in value.items() for each in misfits(schema["additionalProperties"], part, f"{at}.{key}")
        ]
    if "properties" in schema:
        return _misfits_of_fields(schema, value, at)
    return []


def _misfits_of_fields(schema: dict[str, Any], value: dict[str, Any], at: str) -> list[str]:
    known = schema["properties"]
    found = [f"{at}.{name} is missing" for name in schema.get("required", ()) if name not in value]
    found += [f"{at}.{name} is not one of Flink's fields" for name in value if name not in known]
    for name, part in value.items():
        if name in known:
            found += misfits(known[name], part, f"{at}.{name}")
    return found
