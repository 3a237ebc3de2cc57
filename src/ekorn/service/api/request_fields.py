"""Fields of the JSON object that a request has for its body."""

from __future__ import annotations

from typing import Any

from ekorn.web.http_messages import HttpError

__all__ = ["field", "texts"]


def field(fields: dict[str, Any], name: str, kind: type) -> Any:
    """Return a field; None if it is missing or null.

    Raises:
        HttpError: It is of another type.
    """
    found = fields.get(name)
    if found is not None and type(found) is not kind:
        raise HttpError(400, f"the field {name!r} is {str(found)[:40]!r}, which is not of the type {kind.__name__}")
    return found


def texts(fields: dict[str, Any], name: str) -> dict[str, str]:
    """Return a field that is an object with texts; empty if it is missing or null.

    Raises:
        HttpError: It is something else.
    """
    found = fields.get(name) or {}
    if not isinstance(found, dict) or not all(isinstance(each, str) for each in found.values()):
        raise HttpError(400, f"the field {name!r} is not an object of strings")
    return dict(found)
