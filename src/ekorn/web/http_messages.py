"""Requests, responses and errors: what a handler receives, and what it returns or raises."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from ekorn.errors import EkornError

__all__ = ["FileAnswer", "HttpError", "Request", "Response", "not_found"]


class HttpError(EkornError):
    """A request is refused: the status code of HTTP, and the reason for the client to read."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(status, reason)
        self.status = status
        self.reason = reason

    def __str__(self) -> str:
        return self.reason


def not_found(what: str) -> NoReturn:
    """Refuse a request for something that does not exist."""
    raise HttpError(404, what)


@dataclass(frozen=True, slots=True)
class Request:
    """One request, after the checks that are common to all of them.

    Attributes:
        method: The method, in capitals.
        path: The path, decoded.
        parameters: The variable parts of the path, by name.
        query: The parameters after the question mark.
        body: The body; empty if there is none.
        body_file: The file that a large body was written to, for routes that ask for one.
    """

    method: str
    path: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, Sequence[str]] = field(default_factory=dict)
    body: bytes = b""
    body_file: Path | None = None

    def json_object(self) -> dict[str, Any]:
        """Return the body as an object of JSON; an empty body is an empty object.

        Raises:
            HttpError: The body is something else.
        """
        if not self.body.strip():
            return {}
        try:
            found = json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise HttpError(400, f"the body is not JSON: {error}") from None
        if not isinstance(found, dict):
            raise HttpError(400, "the body is not a JSON object")
        return found

    def one(self, name: str) -> str | None:
        """Return a query parameter that may be given once; None if it is not given.

        Raises:
            HttpError: It is given several times.
        """
        values = self.query.get(name, ())
        if len(values) > 1:
            raise HttpError(400, f"the query parameter {name!r} is given {len(values)} times")
        return values[0] if values else None

    def many(self, name: str) -> list[str] | None:
        """Return the values of a query parameter, separated by commas or given several times; None if there is none."""
        if name not in self.query:
            return None
        return [part for value in self.query[name] for part in value.split(",") if part]

    def number(self, name: str, least: int = 0) -> int | None:
        """Return a query parameter that is a whole number; None if it is not given.

        Raises:
            HttpError: It is not a number, or is too small.
        """
        given = self.one(name)
        return None if given is None else whole_number(given, f"the query parameter {name!r}", least)


def whole_number(given: str, what: str, least: int = 0) -> int:
    """Return a number that a client wrote.

    Raises:
        HttpError: It is not a number, is too small, or has more digits than any number that makes sense.
    """
    if not (given.isascii() and given.isdigit() and len(given) <= 18) or int(given) < least:
        raise HttpError(400, f"{what} is {given[:40]!r}, which is not a number of at least {least}")
    return int(given)


@dataclass(frozen=True, slots=True)
class FileAnswer:
    """A file as the body of a response, from a position on."""

    path: Path
    first_byte: int = 0


@dataclass(frozen=True, slots=True)
class Response:
    """The answer to a request: JSON, bytes or a file."""

    content: Any = None
    status: int = 200
    content_type: str = "application/json; charset=UTF-8"
    headers: Mapping[str, str] = field(default_factory=dict)

    def body(self) -> bytes:
        """Return the bytes of a response that is not a file."""
        if isinstance(self.content, bytes):
            return self.content
        return json.dumps({} if self.content is None else self.content, default=str).encode()
