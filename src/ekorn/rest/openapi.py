"""Describes the routes of a server in the form of OpenAPI, for tools that generate clients.

`answers.json` has the schema of every answer, and the tests compare real answers with it. The schemas are abbreviated:

- `"string"`, `"integer"`, `"number"`, `"boolean"`, `"object"`, `"array"` are types, and `"any"` is anything;
- `"A|B"` is one of these texts, and `"A|"` this one;
- a name in capitals is one of the `parts`, and a name with a question mark may also be null;
- `[x]` is a list of x, `{"*": x}` an object with any keys, `{"|": [x, y]}` either of both, `{"?": x}` x or null;
- any other object has fields. A key names one field, or several of the same type; a field with a question mark may be
  missing; and `"&"` names parts whose fields the object has, too.

A section of the file is a group of paths: what Flink's API reads (`reading`), what only Ekorn's reads (`own`), how far
an operation has come (`operations`), and what changes something (`changing`).
"""

from __future__ import annotations

import functools
import json
import re
from importlib.resources import files
from typing import Any

import ekorn
from ekorn.web.routes import Route, Routes

__all__ = ["add_description", "answer_schemas", "description"]

_PLAIN: dict[str, dict[str, Any]] = {
    "string": {"type": "string"},
    "integer": {"type": "integer", "format": "int64"},
    "number": {"type": "number"},
    "boolean": {"type": "boolean"},
    "object": {"type": "object"},
    "array": {"type": "array", "items": {}},
    "any": {},
}

_ERRORS = {
    "description": "The request is refused; the body gives the reason",
    "content": {
        "application/json": {
            "schema": {"type": "object", "properties": {"errors": {"type": "array", "items": {"type": "string"}}}}
        }
    },
}


def add_description(routes: Routes) -> None:
    """Add the route of the description. Routes that are added later are described too."""
    routes.add("GET", "/openapi.json", lambda request: description(routes), "This description")


def description(routes: Routes) -> dict[str, Any]:
    """Return the description of all routes."""
    paths: dict[str, Any] = {}
    schemas: dict[str, Any] = {}
    for route in routes:
        if not route.is_public:
            paths.setdefault(_path(route), {})[route.method.lower()] = _operation(route)
            schemas[_schema_name(route)] = _answer(route)
    return {
        "openapi": "3.0.3",
        "info": {
            "title": "Flink's REST API over the jobs of Ekorn",
            "version": ekorn.__version__,
            "license": {"name": "Apache-2.0"},
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}, "schemas": schemas},
    }


@functools.cache
def answer_schemas() -> dict[str, dict[str, dict[str, Any]]]:
    """Return the schemas of all answers: by section, then by method and path."""
    written = json.loads(files("ekorn.rest").joinpath("answers.json").read_bytes())
    parts = written.pop("parts")
    return {
        section: {name: _schema(each, parts) for name, each in answers.items()} for section, answers in written.items()
    }


def _schema(written: Any, parts: dict[str, Any]) -> dict[str, Any]:
    """Return an abbreviated schema as a schema of OpenAPI."""
    match written:
        case str() if "|" in written:
            return {"type": "string", "enum": sorted(each for each in written.split("|") if each)}
        case str() if written.endswith("?"):
            return {**_schema(written[:-1], parts), "nullable": True}
        case str() if written in _PLAIN:
            return dict(_PLAIN[written])
        case str():
            return _schema(parts[written], parts)
        case [of]:
            return {"type": "array", "items": _schema(of, parts)}
        case {"*": of}:
            return {"type": "object", "additionalProperties": _schema(of, parts)}
        case {"|": either}:
            return {"anyOf": [_schema(each, parts) for each in either]}
        case {"?": of}:
            return {**_schema(of, parts), "nullable": True}
    fields = _fields(written, parts)
    needed = sorted(name for name in fields if not name.endswith("?"))
    found = {"type": "object", "properties": {name.rstrip("?"): _schema(of, parts) for name, of in fields.items()}}
    return {**found, "required": needed} if needed else found


def _fields(written: dict[str, Any], parts: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of an abbreviated object, each by its own name."""
    found: dict[str, Any] = {}
    for part in written.get("&", "").split():
        found |= _fields(parts[part], parts)
    for names, of in written.items():
        if names != "&":
            found |= dict.fromkeys(names.split(), of)
    return found


def _answer(route: Route) -> dict[str, Any]:
    """Return the schema of a route's answers."""
    name = f"{route.method} {_path(route)}"
    return next((answers[name] for answers in answer_schemas().values() if name in answers), {})


def _path(route: Route) -> str:
    return "/" + "/".join(_part(part) for part in route.path.split("/") if part)


def _part(part: str) -> str:
    if part == "*":
        return "{rest}"
    return f"{{{part[1:]}}}" if part.startswith(":") else part


def _schema_name(route: Route) -> str:
    """Return the name of the schema of a route's answers, made of its method and path."""
    words = [part.strip("{}") for part in _path(route).split("/") if part]
    return "".join(word.capitalize() for part in (route.method, *words) for word in re.split(r"[^A-Za-z0-9]+", part))


def _operation(route: Route) -> dict[str, Any]:
    names = [part for part in _path(route).split("/") if part.startswith("{")]
    found: dict[str, Any] = {
        "summary": route.summary,
        "parameters": [
            {"name": name[1:-1], "in": "path", "required": True, "schema": {"type": "string"}} for name in names
        ],
        "responses": {
            "2XX": {
                "description": "The response, in Flink's form if Flink has the path",
                "content": {
                    "text/plain" if _answer(route) == _PLAIN["string"] else "application/json": {
                        "schema": {"$ref": f"#/components/schemas/{_schema_name(route)}"}
                    }
                },
            },
            "4XX": _ERRORS,
        },
    }
    if route.method in ("POST", "PUT", "PATCH"):
        kind = "application/octet-stream" if route.to_file else "application/json"
        found["requestBody"] = {"content": {kind: {"schema": {"type": "string" if route.to_file else "object"}}}}
    return found
