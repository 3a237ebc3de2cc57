"""Decides whether a request is answered: by the name it addresses, the page it comes from, and its token.

A browser sends requests on behalf of any page that it shows. The server therefore answers only requests that address it
by one of its own names, which defeats pages that let a foreign name point to this machine, and that come from one of
its own pages. The token travels in a header that no foreign page can set, never in a cookie or an address.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from ekorn.web.http_messages import HttpError
from ekorn.web.routes import Route

__all__ = ["Gate"]

_BEARER = "bearer "


@dataclass(frozen=True)
class Gate:
    """The rules by which a server decides which requests it answers.

    Attributes:
        token: What a client has to know; None for a server that answers every client that reaches it.
        hosts: The names by which the server may be addressed, in lower case; None for a Unix socket, which has none.
        read_only: Whether requests that change something are refused.
    """

    token: bytes | None = None
    hosts: frozenset[str] | None = None
    read_only: bool = False

    def check_sender(self, headers: Mapping[str, str]) -> None:
        """Refuse a request that addresses another server, or comes from a page of another server.

        Raises:
            HttpError: The request is refused.
        """
        if self.hosts is None:
            return
        host = headers.get("Host", "")
        name = _name_of(host)
        if name is None or name not in self.hosts:
            raise HttpError(403, f"this server is not called {host[:80]!r} (ekorn.web.allowed-hosts)")
        origin = headers.get("Origin")
        if origin is not None and _address_of(origin) != host.lower():
            raise HttpError(403, "the request comes from a page of another server")
        # A link on another page may lead to a page of this server: the browser sends neither token nor origin with it.
        is_link = headers.get("Sec-Fetch-Mode") == "navigate"
        if headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin") and not is_link:
            raise HttpError(403, "the request comes from a page of another server")

    def knows(self, headers: Mapping[str, str]) -> bool:
        """Return whether a request has the token. Takes the same time for every wrong token."""
        if self.token is None:
            return True
        given = headers.get("Authorization", "")
        if given[: len(_BEARER)].lower() != _BEARER:
            return False
        return hmac.compare_digest(given[len(_BEARER) :].strip().encode("utf-8", "surrogateescape"), self.token)

    def check_route(self, route: Route) -> None:
        """Refuse a request that changes something, on a server that only shows.

        Raises:
            HttpError: The request is refused.
        """
        if self.read_only and not route.reads_only:
            raise HttpError(403, "this server is read-only (ekorn.web.read-only)")


def _name_of(host: str) -> str | None:
    """Return the name in a `Host` header, without the port; None if the header is malformed."""
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None


def _address_of(origin: str) -> str | None:
    """Return name and port of an origin; None if it has none, such as `null`."""
    try:
        return urlsplit(origin).netloc.lower() or None
    except ValueError:
        return None
