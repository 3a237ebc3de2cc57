"""Describes the routes of a server in the form of OpenAPI, for tools that make clients of it."""

from __future__ import annotations

from typing import Any

import tamias
from tamias.web.routes import Route, Routes

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
    for route in routes:
        if not route.is_public:
            paths.setdefault(_path(route), {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.0.3",
        "info": {
            "title": "Flink's REST API over the jobs of Tamias",
            "version": tamias.__version__,
            "license": {"name": "Apache-2.0"},
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }


def _path(route: Route) -> str:
    return "/" + "/".join(_part(part) for part in route.path.split("/") if part)


def _part(part: str) -> str:
    if part == "*":
        return "{rest}"
    return f"{{{part[1:]}}}" if part.startswith(":") else part


def _operation(route: Route) -> dict[str, Any]:
    names = [part for part in _path(route).split("/") if part.startswith("{")]
    found: dict[str, Any] = {
        "summary": route.summary,
        "parameters": [
            {"name": name[1:-1], "in": "path", "required": True, "schema": {"type": "string"}} for name in names
        ],
        "responses": {
            "default": {"description": "The answer in Flink's form", "content": {"application/json": {"schema": {}}}},
            "4XX": _ERRORS,
        },
    }
    if route.method in ("POST", "PUT", "PATCH"):
        kind = "application/octet-stream" if route.to_file else "application/json"
        found["requestBody"] = {"content": {kind: {"schema": {"type": "string" if route.to_file else "object"}}}}
    return found
