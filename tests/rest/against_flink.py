"""Compares the schemas of our answers with Flink's published description: `python -m tests.rest.against_flink FILE`.

The file is `docs/static/generated/rest_v1_dispatcher.yml` of Flink's repository, which is not part of ours. Every path,
method and field of it must be in `ekorn/rest/answers.json`, or among the differences below, each with its reason.
Compared last with the file of 22 August 2026 (commit c9be954).
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import yaml

from tests.rest.shapes import ANSWERS

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


def _differences(schema: dict[str, Any], ours: dict[str, Any], at: str, schemas: dict[str, Any]) -> list[str]:
    """Return what a published schema has and ours has not, or has otherwise. Further fields are allowed."""
    while "$ref" in schema:
        schema = schemas[schema["$ref"].rpartition("/")[2]]
    our_kind, kind = ours.get("type"), schema.get("type")
    says_nothing = our_kind == "object" and not {"properties", "additionalProperties"} & ours.keys()
    if "anyOf" in ours or says_nothing or (our_kind == "array" and not ours["items"]):
        return []
    if kind == "object":
        return _differences_of_object(schema, ours, at, schemas)
    if kind == "array":
        inner = f"{at}[]"
        return _differences(schema["items"], ours["items"], inner, schemas) if our_kind == kind else [f"{at}: list"]
    if "enum" in ours:
        values = set(ours["enum"])
        return [] if values <= set(schema.get("enum", values)) else [f"{at}: has other values: {sorted(values)}"]
    allowed = {"string": ("string",), "integer": ("integer",), "number": ("integer", "number"), "boolean": ("boolean",)}
    if our_kind in allowed.get(kind or "", (our_kind,)):
        return []
    return [f"{at}: is of the type {kind} in Flink, and {our_kind} here"]


def _differences_of_object(schema: dict[str, Any], ours: dict[str, Any], at: str, schemas: dict[str, Any]) -> list[str]:
    if "additionalProperties" in ours:
        more = schema.get("additionalProperties")
        return _differences(more, ours["additionalProperties"], f"{at}.*", schemas) if isinstance(more, dict) else []
    if "properties" not in ours:
        return [f"{at}: is an object in Flink"]
    found = []
    for name, part in schema.get("properties", {}).items():
        if name in ours["properties"]:
            found += _differences(part, ours["properties"][name], f"{at}.{name}", schemas)
        else:
            found.append(f"{at}.{name}: is missing")
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
