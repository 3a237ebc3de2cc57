"""Errors of services that functions ask."""

from __future__ import annotations

from ekorn.errors.base import EkornError, with_fields


@with_fields
class HttpLookupError(EkornError):
    """An HTTP service did not answer a lookup, or answered with an error."""

    method: str
    url: str
    status: int | None
    reason: str

    def __str__(self) -> str:
        method, url, status, reason = self.args
        found = "no answer" if status is None else f"status {status}"
        return f"{method} {url}: {found}: {reason}"
