"""Compares the shapes of our answers with Flink's published description: `python -m tests.rest.against_flink FILE`.

The file is `docs/static/generated/rest_v1_dispatcher.yml` of Flink's repository, which is not part of ours. Every path,
method and field of it must be in `ekorn/rest/answer_shapes.py`, or among the differences below, each with its reason.
Compared last with the file of 22 August 2026 (commit c9be954).
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import yaml

from ekorn.rest.answer_shapes import ANSWERS
from ekorn.rest.shapes import Either, Map, Maybe

NOT_OFFERED = {
    "DELETE /cluster": "`ekorn service stop` ends a service",
    "GET /datasets": "there are no cluster data sets",
    "GET /datasets/delete/{triggerid}": "there are no cluster data sets",
    "DELETE /datasets/{datasetid}": "there are no cluster data sets",
    "PATCH /jobs/{jobid}/clientHeartbeat": "no job depends on the life of its client",
    "GET /jobs/{jobid}/jobmanager/log-url": "logs are below `.../jobmanager/logs`",
    "GET /jobs/{jobid}/taskmanagers/{taskmanagerid}/log-url": "logs are below `/taskmanagers/:taskmanagerid/logs`",
}
# The description is made of Flink's classes. Where a class has a serializer of its own, the answers are what it writes.
WRITTEN_OTHERWISE = (
    r"\.(id|application-?[iI]d|slotSharingGroupId): is an object in Flink",  # ids are texts
    r"/(metrics|watermarks|jm-operator-metrics) : is an object in Flink",  # lists of metrics
    r"/jobs/\{jobid\}/config \.(jobId|jobName|executionConfigInfo): is missing",  # jid, name, execution-config
    r"/execution-result \.job-execution-result\.\w+: is missing",  # id, name, application-status, net-runtime
    r"/rescales/.*\.requiredParallelisms: is missing",  # not written
    r"/checkpoints/config \.mode: has other values",  # in small letters
)


def main(file: str) -> int:
    """Print the differences that are not among the known ones; return 1 if there are any."""
    published = yaml.safe_load(Path(file).read_text(encoding="utf-8"))
    schemas = published["components"]["schemas"]
    found = []
    for path, methods in published["paths"].items():
        for method, operation in methods.items():
            name = f"{method.upper()} {path}"
            if name in NOT_OFFERED:
                continue
            if name not in ANSWERS:
                found.append(f"{name} is missing")
                continue
            for answer in operation["responses"].values():
                schema = answer.get("content", {}).get("application/json", {}).get("schema")
                if schema is not None:
                    found += [f"{name} {each}" for each in _differences(schema, ANSWERS[name], "", schemas)]
    new = [each for each in found if not any(re.search(known, each) for known in WRITTEN_OTHERWISE)]
    print("\n".join(new) or f"{sum(map(len, published['paths'].values()))} methods of Flink's paths: no difference")
    return bool(new)


_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}


def _differences(schema: dict[str, Any], shape: Any, at: str, schemas: dict[str, Any]) -> list[str]:
    """Return what a published schema has and our shape has not, or has otherwise. Further fields are allowed."""
    while "$ref" in schema:
        schema = schemas[schema["$ref"].rpartition("/")[2]]
    match shape:
        case Maybe():
            return _differences(schema, shape.of, at, schemas)
        case Either() | type() if shape in (list, dict) or isinstance(shape, Either):
            return []
    kind = schema.get("type")
    if kind == "object":
        if isinstance(shape, Map):
            more = schema.get("additionalProperties")
            return _differences(more, shape.of, f"{at}.*", schemas) if isinstance(more, dict) else []
        if not isinstance(shape, dict):
            return [f"{at}: is an object in Flink"]
        ours = {name.rstrip("?"): part for name, part in shape.items()}
        found = []
        for name, part in schema.get("properties", {}).items():
            if name in ours:
                found += _differences(part, ours[name], f"{at}.{name}", schemas)
            else:
                found.append(f"{at}.{name}: is missing")
        return found
    if kind == "array":
        inner = f"{at}[]"
        return _differences(schema["items"], shape[0], inner, schemas) if isinstance(shape, list) else [f"{at}: list"]
    if isinstance(shape, frozenset):
        return [] if shape <= set(schema.get("enum", shape)) else [f"{at}: has other values: {sorted(shape)}"]
    allowed = {"string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,)}.get(
        kind or "", (shape,)
    )
    return [] if shape in allowed else [f"{at}: is of the type {kind} in Flink, and {shape} here"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
