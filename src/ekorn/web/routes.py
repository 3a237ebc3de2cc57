"""Finds the handler of a request by method and path."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import quote

from ekorn.web.http_messages import HttpError, Request, Response

__all__ = ["Found", "Handler", "Route", "Routes"]

Handler = Callable[[Request], Response | dict[str, Any] | list[Any]]

MOST_BODY_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Route:
    """One method of one path.

    Attributes:
        method: The method, in capitals.
        path: The path. A part that begins with a colon is variable (`/jobs/:jobid`), and a last part `*` stands for any
            number of parts.
        handler: Answers the requests.
        summary: What it does, for the description of the API.
        is_public: Whether it is answered without a token: pages, which hold no data.
        reads_only: Whether the request changes nothing, so that a read-only server answers it.
        most_body_bytes: The longest body.
        to_file: Whether the body is written to a file instead of memory.
    """

    method: str
    path: str
    handler: Handler
    summary: str = ""
    is_public: bool = False
    reads_only: bool = True
    most_body_bytes: int = MOST_BODY_BYTES
    to_file: bool = False


class Found(NamedTuple):
    """The route of a request, and the variable parts of its path."""

    route: Route
    parameters: Mapping[str, str]


class Routes:
    """The routes of a server. A fixed part of a path wins over a variable one, and both over `*`."""

    def __init__(self) -> None:
        self._root = _Branch()
        self._all: list[Route] = []

    def add(self, method: str, path: str, handler: Handler, summary: str = "", **more: Any) -> None:
        """Add a route. Methods other than GET change something unless `reads_only` says otherwise."""
        more.setdefault("reads_only", method == "GET")
        route = Route(method, path, handler, summary, **more)
        branch = self._root
        names = []
        for part in _parts(path):
            if part.startswith(":"):
                names.append(part[1:])
                branch.variable = branch.variable or _Branch()
                branch = branch.variable
            elif part == "*":
                names.append("*")
                branch.rest = branch.rest or _Branch()
                branch = branch.rest
            else:
                branch = branch.fixed.setdefault(part, _Branch())
        branch.routes[method] = route, names
        self._all.append(route)

    def find(self, method: str, parts: list[str]) -> Found:
        """Return the route of a path.

        Args:
            method: The method, in capitals.
            parts: The decoded parts of the path.

        Raises:
            HttpError: There is no such path, or it does not have the method.
        """
        allowed: set[str] = set()
        for branch, values in self._root.matching(parts, ()):
            found = branch.routes.get("GET" if method == "HEAD" else method)
            if found is not None:
                route, names = found
                return Found(route, dict(zip(names, values, strict=True)))
            allowed |= set(branch.routes)
        if allowed:
            raise HttpError(405, f"the path supports {', '.join(sorted(allowed))}, not {method[:20]}")
        raise HttpError(404, f"there is no path /{'/'.join(parts)[:200]}")

    def __iter__(self) -> Iterator[Route]:
        return iter(self._all)


class _Branch:
    """What may follow the part of a path."""

    def __init__(self) -> None:
        self.fixed: dict[str, _Branch] = {}
        self.variable: _Branch | None = None
        self.rest: _Branch | None = None
        self.routes: dict[str, tuple[Route, list[str]]] = {}

    def matching(self, parts: list[str], values: tuple[str, ...]) -> Iterator[tuple[_Branch, tuple[str, ...]]]:
        if not parts:
            if self.routes:
                yield self, values
            return
        first, rest = parts[0], parts[1:]
        if first in self.fixed:
            yield from self.fixed[first].matching(rest, values)
        if self.variable is not None:
            yield from self.variable.matching(rest, (*values, first))
        if self.rest is not None:
            yield self.rest, (*values, "/".join(quote(part, safe="") for part in parts))


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part]
