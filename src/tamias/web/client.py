"""A client of a web server: by address and token, or by a Unix socket."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlsplit

from tamias.errors import ConfigurationError, TamiasError

__all__ = ["Answered", "RefusedRequest", "ServerGone", "WebClient"]


class ServerGone(TamiasError):
    """The server cannot be reached, or ended before it answered."""


class RefusedRequest(TamiasError):
    """The server refused a request: its status and its reason."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(status, reason)
        self.status = status

    def __str__(self) -> str:
        return str(self.args[1])


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer of a server."""

    status: int
    content_type: str
    body: bytes

    def json(self) -> Any:
        """Return the answer to a request that succeeded.

        Raises:
            RefusedRequest: It did not.
            ServerGone: The answer is not that of such a server.
        """
        try:
            found = json.loads(self.body) if self.body else {}
        except ValueError:
            raise ServerGone(f"the server answered with status {self.status} and no JSON") from None
        if self.status >= 400:
            reasons = found.get("errors") if isinstance(found, dict) else None
            raise RefusedRequest(self.status, "; ".join(map(str, reasons or [f"status {self.status}"])))
        return found


class WebClient:
    """Sends requests to one server, each over a connection of its own. Thread-safe.

    Args:
        address: `http://host:port`, `https://host:port`, `host:port`, or `unix:` and the path of a socket.
        token: What the server demands; None for a server that demands nothing.
        certificate_file: The certificate that the server, or who signed its certificate, has; None for the system's.
        timeout_s: How long the server may take to answer.

    Raises:
        ConfigurationError: The address is malformed.
    """

    def __init__(
        self, address: str, token: str | None = None, certificate_file: str | None = None, timeout_s: float = 60.0
    ) -> None:
        self.address = address
        self._token = token
        self._certificate_file = certificate_file
        self._timeout_s = timeout_s
        self._connection()  # checks the address

    def ask(self, method: str, path: str, body: Any = None, *, file: BinaryIO | None = None) -> Answered:
        """Send a request and return the answer, whatever its status.

        Args:
            method: The method.
            path: The path, with its query.
            body: What is sent as JSON; None for nothing, bytes as they are.
            file: A file that is sent instead.

        Raises:
            ServerGone: The server cannot be reached, or ended before it answered.
        """
        link = self._connection()
        headers = {} if self._token is None else {"Authorization": f"Bearer {self._token}"}
        data = file if file is not None else body
        if data is not None and not isinstance(data, bytes) and file is None:
            data = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        if file is not None:
            headers["Content-Length"] = str(file.seek(0, 2))
            file.seek(0)
        try:
            link.request(method, path, data, headers)
            answer = link.getresponse()
            return Answered(answer.status, answer.getheader("Content-Type") or "", answer.read())
        except (OSError, http.client.HTTPException) as error:
            raise ServerGone(f"{self.address} does not answer: {error or type(error).__name__}") from error
        finally:
            link.close()

    def get(self, path: str) -> Any:
        """Return the answer to a reading request, as JSON."""
        return self.ask("GET", path).json()

    def _connection(self) -> http.client.HTTPConnection:
        if self.address.startswith("unix:"):
            return _UnixConnection(self.address.removeprefix("unix:"), self._timeout_s)
        address = self.address if "://" in self.address else f"http://{self.address}"
        try:
            parts = urlsplit(address)
            host, port = parts.hostname, parts.port
        except ValueError as error:
            raise ConfigurationError(f"{self.address!r} is no address of a service: {error}") from None
        if host is None or parts.scheme not in ("http", "https"):
            raise ConfigurationError(f"{self.address!r} is no address of a service, such as https://host:8081")
        if parts.scheme == "http":
            return http.client.HTTPConnection(host, port or 8081, timeout=self._timeout_s)
        context = ssl.create_default_context(cafile=self._certificate_file)
        return http.client.HTTPSConnection(host, port or 8081, timeout=self._timeout_s, context=context)


class _UnixConnection(http.client.HTTPConnection):
    """A connection over a Unix socket."""

    def __init__(self, path: str, timeout_s: float) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self._path = str(Path(path))

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)
