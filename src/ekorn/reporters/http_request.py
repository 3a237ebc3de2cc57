"""Sends the requests of reporters that use HTTP."""

from __future__ import annotations

import urllib.error
import urllib.request

__all__ = ["send"]

_TIMEOUT_S = 10.0


def send(method: str, url: str, content_type: str, body: bytes) -> None:
    """Send a request.

    Raises:
        OSError: The server does not answer, or refuses the request; the message has its reason.
    """
    request = urllib.request.Request(url, body, {"Content-Type": content_type}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:
            answer.read()
    except urllib.error.HTTPError as refused:
        reason = refused.read(300).decode("utf-8", "replace").strip()
        raise OSError(f"the server answered {refused.code}: {reason or refused.reason}") from None
