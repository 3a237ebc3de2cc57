"""A client of a web server: by address and token, or by a Unix socket.

The token allows its owner to run programs, so it leaves this machine over TLS alone, and only after the certificate of
the server was verified. Plain HTTP to another machine is refused unless the user allows it explicitly.
"""

from __future__ import annotations

import http.client
import ipaddress
import json
import socket
import ssl
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import urlsplit

from ekorn.config.settings.web_settings import is_loopback
from ekorn.errors import ConfigurationError, EkornError

__all__ = ["Answered", "RefusedRequest", "ServerGone", "ServerTarget", "WebClient", "target_of"]

_MOST_REDIRECTS = 3
_PAUSE_S = 0.5
_CROWD_S = 0.01


class ServerGone(EkornError):
    """The server cannot be reached, or ended before it answered."""


class _Unreachable(ServerGone):
    """The server cannot be reached, so it has not read the request."""


class _Untrusted(_Unreachable):
    """The certificate of the server was not accepted, so nothing was sent to the server."""


class RefusedRequest(EkornError):
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
    location: str | None = None  # where the server that leads is asked
    retry_after_s: float | None = None  # when to ask again, if no server leads

    def json(self) -> Any:
        """Return the answer to a request that succeeded.

        Raises:
            RefusedRequest: The request was refused.
            ServerGone: The answer does not come from a server of Ekorn.
        """
        try:
            found = json.loads(self.body) if self.body else {}
        except ValueError:
            raise ServerGone(f"the server answered with status {self.status} and no JSON") from None
        if self.status >= 300:
            reasons = found.get("errors") if isinstance(found, dict) else None
            raise RefusedRequest(self.status, "; ".join(map(str, reasons or [f"status {self.status}"])))
        return found


class WebClient:
    """Sends requests to one server, each over a connection of its own. Thread-safe.

    Args:
        address: `https://host:port`, `http://host:port`, `host:port`, or `unix:` and the path of a socket. `host:port`
            means HTTPS, except for a loopback address without a certificate file. Several addresses, separated by
            commas, are those of servers that stand by for each other.
        token: What the server demands; None for a server that demands nothing.
        certificate_file: The certificate of the server or of the authority that signed it; None for the system's.
        timeout_s: How long the server may take to answer; None for any time.
        patience_s: How long to ask again while no server leads the others; servers without standbys always answer.
        allow_plain_http: Whether requests, with the token, may go to another machine unencrypted.

    Raises:
        ConfigurationError: The address is malformed, or is plain HTTP to another machine, or the certificate file
            cannot be read.
    """

    def __init__(
        self,
        address: str,
        token: str | None = None,
        certificate_file: str | None = None,
        timeout_s: float | None = 60.0,
        patience_s: float = 60.0,
        *,
        allow_plain_http: bool = False,
    ) -> None:
        self.address = address
        self._token = token
        self._certificate_file = certificate_file
        self._timeout_s = timeout_s
        self._patience_s = patience_s
        self._allows_plain_http = allow_plain_http
        self._addresses = [each.strip() for each in address.split(",") if each.strip()] or [address]
        for each in self._addresses:
            self._connection(each)  # checks the address

    def ask(self, method: str, path: str, body: Any = None, *, file: BinaryIO | None = None) -> Answered:
        """Send a request and return the answer, whatever its status.

        A server that stands by names the one that leads, which is asked then. While none leads, and while none of
        several servers can be reached, the request is sent again. A request that may have been read is not sent twice.

        Args:
            method: The method.
            path: The path, with its query.
            body: What is sent as JSON; None for nothing, bytes as they are.
            file: A file that is sent instead.

        Raises:
            ServerGone: The server cannot be reached, is not trusted, or ended before it answered.
            ConfigurationError: The leader that a server names is to be asked by plain HTTP on another machine.
        """
        until_s = time.monotonic() + self._patience_s
        while True:
            found = self._ask_all(method, path, body, file)
            if isinstance(found, Answered) and found.retry_after_s is None:
                return found
            pause_s = _PAUSE_S if isinstance(found, ServerGone) else found.retry_after_s or _PAUSE_S
            is_over = time.monotonic() + pause_s > until_s
            if isinstance(found, _Untrusted):
                raise found  # waiting does not change a certificate
            if isinstance(found, ServerGone) and (is_over or len(self._addresses) == 1):
                raise found
            if isinstance(found, Answered) and is_over:
                return found
            time.sleep(pause_s)

    def _ask_all(self, method: str, path: str, body: Any, file: BinaryIO | None) -> Answered | ServerGone:
        """Ask the servers in turn; return the first answer, or why the last one could not be reached.

        Raises:
            ServerGone: A server ended after it may have read the request.
        """
        gone: ServerGone | None = None
        waiting: Answered | None = None
        for address in self._addresses:
            try:
                found = self._ask_leader(address, method, path, body, file)
            except _Unreachable as error:
                gone = gone if isinstance(gone, _Untrusted) else error
                continue
            if found.retry_after_s is None:
                return found
            waiting = found
        if waiting is not None:
            return waiting
        assert gone is not None
        return gone

    def _ask_leader(self, address: str, method: str, path: str, body: Any, file: BinaryIO | None) -> Answered:
        """Ask a server, and the one that it names if it stands by."""
        found = self._ask(address, method, path, body, file)
        for _ in range(_MOST_REDIRECTS):
            leader = _leader_in(found)
            if leader is None or (_is_encrypted(address) and not _is_encrypted(leader)):
                return found
            try:
                found = self._ask(leader, method, path, body, file)
            except ServerGone as error:
                if isinstance(error, _Untrusted) or (not isinstance(error, _Unreachable) and method != "GET"):
                    raise
                break  # the leader is gone, and another server is about to lead
            address = leader
        return replace(found, retry_after_s=_PAUSE_S)

    def _ask(self, address: str, method: str, path: str, body: Any, file: BinaryIO | None) -> Answered:
        link = self._connection(address)
        headers = {} if self._token is None else {"Authorization": f"Bearer {self._token}"}
        data = file if file is not None else body
        if data is not None and not isinstance(data, bytes) and file is None:
            data = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        if file is not None:
            headers["Content-Length"] = str(file.seek(0, 2))
            file.seek(0)
        try:
            try:
                link.connect()  # includes the TLS handshake: the token is not sent to a server that is not verified
            except ssl.SSLEOFError as error:  # the server ended during the handshake
                raise _Unreachable(f"{address} does not answer, or does not speak TLS: {error}") from error
            except ssl.SSLError as error:
                raise _Untrusted(_distrust(address, error)) from error
            except OSError as error:
                raise _Unreachable(f"{address} does not answer: {error or type(error).__name__}") from error
            link.request(method, path, data, headers)
            answer = link.getresponse()
            retry, location = answer.getheader("Retry-After"), answer.getheader("Location")
            return Answered(
                answer.status,
                answer.getheader("Content-Type") or "",
                answer.read(),
                location if answer.status == 307 else None,
                float(retry) if retry is not None and retry.isdigit() and answer.status == 503 else None,
            )
        except (OSError, http.client.HTTPException) as error:
            raise ServerGone(f"{address} does not answer: {error or type(error).__name__}") from error
        finally:
            link.close()

    def get(self, path: str) -> Any:
        """Return the answer to a reading request, as JSON."""
        return self.ask("GET", path).json()

    def _connection(self, given: str) -> http.client.HTTPConnection:
        if given.startswith("unix:"):
            return _UnixConnection(given.removeprefix("unix:"), self._timeout_s)
        target = target_of(given, has_certificate=self._certificate_file is not None)
        if target.is_encrypted:
            return http.client.HTTPSConnection(
                target.host, target.port, timeout=self._timeout_s, context=self._trusting(given)
            )
        if not self._allows_plain_http and not _is_on_this_machine(target.host):
            raise ConfigurationError(
                f"{given} is plain HTTP to another machine: anyone on the network path could read the token and "
                f"run programs with it. Name the service https://{target.host}:{target.port}, or allow plain HTTP "
                "(--allow-plain-http, in Python allow_plain_http=True)"
            )
        return http.client.HTTPConnection(target.host, target.port, timeout=self._timeout_s)

    def _trusting(self, given: str) -> ssl.SSLContext:
        """Return a context that verifies the chain and the host name of the server's certificate."""
        try:
            return ssl.create_default_context(cafile=self._certificate_file)
        except OSError as error:  # ssl.SSLError is an OSError
            raise ConfigurationError(
                f"cannot ask {given}: the certificate file {self._certificate_file!r} cannot be used: "
                f"{error.strerror or error}"
            ) from error


class ServerTarget(NamedTuple):
    """Where a connection goes."""

    host: str
    port: int
    is_encrypted: bool


def target_of(given: str, *, has_certificate: bool) -> ServerTarget:
    """Parse an address. Without a scheme it means HTTPS, except on loopback without a certificate file.

    >>> target_of("a.example:8081", has_certificate=False)
    ServerTarget(host='a.example', port=8081, is_encrypted=True)
    >>> target_of("localhost:8081", has_certificate=False)
    ServerTarget(host='localhost', port=8081, is_encrypted=False)
    """
    try:
        parts = urlsplit(given if "://" in given else f"//{given}")
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ConfigurationError(f"{given!r} is not the address of a service: {error}") from None
    if not host or parts.scheme not in ("", "http", "https"):
        raise ConfigurationError(f"{given!r} is not the address of a service, such as https://host:8081")
    is_encrypted = parts.scheme == "https" if parts.scheme else has_certificate or not is_loopback(host)
    return ServerTarget(host, port or 8081, is_encrypted)


def _is_on_this_machine(host: str) -> bool:
    """Return whether a connection to a host stays on this machine: loopback, or an IP address of this machine.

    Names other than `localhost` are not looked up: whoever answers the look-up could choose where the token goes.
    """
    if is_loopback(host):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    if address.is_unspecified or address.is_multicast:
        return False
    with socket.socket(socket.AF_INET if address.version == 4 else socket.AF_INET6, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((host, 0))  # fails for the address of another machine
        except OSError:
            return False
    return True


def _distrust(address: str, error: ssl.SSLError) -> str:
    """Return why a server is not trusted, and what to do."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            f"{address} is not trusted, and no token was sent: its certificate was not verified "
            f"({error.verify_message}). If the machine does not know who signed it, name the certificate with "
            "--certificate-file or EKORN_SERVICE_CERTIFICATE_FILE; if it is for another name, use that name; if it "
            "has expired, renew it"
        )
    if error.reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE"):
        return (
            f"{address} does not speak TLS, and no token was sent: set ekorn.web.certificate-file where the service "
            f"runs, or name the service by http:// and allow plain HTTP (--allow-plain-http): {error}"
        )
    return f"{address} is not trusted, and no token was sent: the TLS handshake failed: {error}"


def _leader_in(answer: Answered) -> str | None:
    """Return the address of the server that leads, from the answer of one that stands by; None if it is an answer."""
    if answer.location is None:
        return None
    try:
        parts = urlsplit(answer.location)
    except ValueError:
        return None
    return f"{parts.scheme}://{parts.netloc}" if parts.scheme in ("http", "https") and parts.netloc else None


def _is_encrypted(address: str) -> bool:
    return urlsplit(address).scheme == "https"  # in lower case, however it is given


class _UnixConnection(http.client.HTTPConnection):
    """A connection over a Unix socket."""

    def __init__(self, path: str, timeout_s: float | None) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self._path = str(Path(path))

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        until_s = None if self.timeout is None else time.monotonic() + self.timeout
        while True:
            try:
                self.sock.connect(self._path)
                return
            except BlockingIOError:  # a crowd waits to be accepted: with a timeout, the system does not wait by itself
                if until_s is not None and time.monotonic() > until_s:
                    raise TimeoutError("the server accepts no connections") from None
                time.sleep(_CROWD_S)
