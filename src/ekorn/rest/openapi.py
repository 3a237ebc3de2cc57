"""Describes the routes of a server in the form of OpenAPI, for tools that make clients of it."""

from __future__ import annotations

import re
from typing import Any

import ekorn
from ekorn.rest.answer_shapes import ANSWERS, TEXT
from ekorn.rest.shapes import schema_of
from ekorn.web.routes import Route, Routes

__all__ = ["add_description", "description"]

_ERRORS = {
    "description": "The request is refused, with the reason",
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
            schemas[_schema_name(route)] = schema_of(_shape(route))
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


def _path(route: Route) -> str:
    return "/" + "/".join(_part(part) for part in route.path.split("/") if part)


def _part(part: str) -> str:
    if part == "*":
        return "{rest}"
    return f"{{{part[1:]}}}" if part.startswith(":") else part


def _shape(route: Route) -> Any:
    return ANSWERS.get(f"{route.method} {_path(route)}", Any)


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
                "description": "The answer, in Flink's form where Flink has the path",
                "content": {
                    "text/plain" if _shape(route) is TEXT else "application/json": {
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
