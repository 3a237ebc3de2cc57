"""The HTTP server: listens, reads requests within bounds, lets the gate check them, and calls their handlers.

Python's own `http.server` parses the requests. Every connection has a thread. A peer that has not shown the token is a
newcomer: a limited number of newcomers is connected at once, and each has a limited time for a request. The number of
connections of peers that have shown it is limited too, because a client of a read-only server must not take all
descriptors of a driver. Every malformed request is answered with a status from 400 to 499 and a reason, in Flink's
form: `{"errors": [...]}`.
"""

from __future__ import annotations

import contextlib
import errno
import io
import logging
import os
import socket
import ssl
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, BinaryIO, cast
from urllib.parse import parse_qs, unquote, urlsplit

from ekorn.errors import EkornError
from ekorn.links.listener import Acceptor
from ekorn.web.gate import Gate
from ekorn.web.http_messages import FileAnswer, HttpError, Request, Response
from ekorn.web.peers import peer_uid
from ekorn.web.routes import Found, Routes

__all__ = ["ServerLimits", "WebServer", "tcp_socket", "unix_socket"]

_log = logging.getLogger(__name__)

_LONGEST_LINE = 1 << 16
_MOST_HEADER_BYTES = 1 << 16  # of a request; a newcomer may send them
_PIECE_BYTES = 1 << 16
_LINGER_S = 2.0
_DISK_REFUSES = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """How long peers may take, and how many may connect before they are known.

    Attributes:
        idle_s: The time between two requests of a connection.
        request_s: The time for the lines of a request, and the time of an encryption's handshake.
        body_s: The time for a body, and for reading an answer.
        most_newcomers: The connections whose peers are not known yet; one more closes the oldest.
        most_known: The connections whose peers have shown the token; one more is told so and closed.
    """

    idle_s: float = 60.0
    request_s: float = 10.0
    body_s: float = 60.0
    most_newcomers: int = 256
    most_known: int = 256


def tcp_socket(address: str, port: int) -> socket.socket:
    """Return a listening socket.

    Raises:
        OSError: The address is in use, or not one of this machine.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return socket.create_server((address, port), family=family, backlog=128)


def unix_socket(path: str) -> socket.socket:
    """Return a listening Unix socket that only this user can connect to.

    Raises:
        OSError: The path is too long, or in use.
    """
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.bind(path)
        os.chmod(path, 0o600)
        sock.listen(128)
    except OSError:
        sock.close()
        raise
    return sock


class WebServer:
    """Answers requests until it is closed.

    Args:
        sock: The listening socket, which the server closes.
        routes: The handlers.
        gate: Decides which requests the server answers.
        tls: The certificate, for a server that speaks TLS.
        limits: How long peers may take, and how many may wait.
        uid_of: Returns the user id of a peer of a Unix socket.
    """

    def __init__(
        self,
        sock: socket.socket,
        routes: Routes,
        gate: Gate,
        tls: ssl.SSLContext | None = None,
        *,
        limits: ServerLimits | None = None,
        uid_of: Callable[[socket.socket], int | None] = peer_uid,
    ) -> None:
        self.routes = routes
        self.gate = gate
        self.limits = limits or ServerLimits()
        self._tls = tls
        self._is_unix = sock.family == socket.AF_UNIX
        self._uid_of = uid_of
        self._open: set[socket.socket] = set()
        self._known: set[socket.socket] = set()
        self._closed = False
        self._lock = threading.Condition()  # notified at the end of every connection
        self.port: int = 0 if self._is_unix else sock.getsockname()[1]
        self._acceptor = Acceptor(sock, self._converse, "ekorn-web", most_newcomers=self.limits.most_newcomers)

    def start(self) -> None:
        """Answer requests from now on."""
        self._acceptor.start()

    def close(self) -> None:
        """Accept no more connections, and end those that are open."""
        self._acceptor.close()
        with self._lock:
            self._closed = True
            for sock in self._open:
                with contextlib.suppress(OSError):  # the peer has closed the connection already
                    sock.shutdown(socket.SHUT_RDWR)

    def stop_accepting(self) -> None:
        """Accept no more connections. Those that are open go on."""
        self._acceptor.close()

    def wait_until_idle(self, timeout_s: float) -> bool:
        """Wait until no connection is open; return whether that is so. A negative timeout returns at once."""
        with self._lock:
            return self._lock.wait_for(lambda: not self._open, max(timeout_s, 0.0))

    def _converse(self, sock: socket.socket) -> None:
        link = sock
        try:
            if self._is_unix and self._uid_of(sock) not in (None, os.getuid()):
                return
            with self._lock:
                if self._closed:
                    return
                self._open.add(sock)
            sock.settimeout(self.limits.request_s)
            if self._tls is not None:
                # A copy: `sock`, which the encryption would take over, is what ends the connection from other threads.
                link = self._tls.wrap_socket(sock.dup(), server_side=True)
            _Conversation(link, self, known=lambda: self._has_room_for(sock))
            _linger(sock)
        except (OSError, EOFError) as gone:
            _log.debug("a connection to the web server ended: %s", gone)
        finally:
            with self._lock:
                self._open.discard(sock)
                self._known.discard(sock)
                self._lock.notify_all()
            for each in {link, sock}:
                each.close()

    def _has_room_for(self, sock: socket.socket) -> bool:
        """Count a connection whose peer has shown the token; return False, and count nothing, if there are too many."""
        with self._lock:
            if sock not in self._known and len(self._known) >= self.limits.most_known:
                return False
            self._known.add(sock)
        self._acceptor.newcomers.remove(sock)
        return True


def _linger(sock: socket.socket) -> None:
    """Read what the peer still sends for a while; otherwise the system may drop the answer that it has not read yet."""
    until = time.monotonic() + _LINGER_S
    sock.shutdown(socket.SHUT_WR)
    while (left := until - time.monotonic()) > 0:
        sock.settimeout(left)
        if not sock.recv(_PIECE_BYTES):
            return


class _BoundedReader(io.RawIOBase):
    """Reads from a socket until a deadline, however slowly the bytes arrive."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self.deadline = 0.0  # set before each part of a request

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("the peer took too long")
        self._sock.settimeout(left)
        return self._sock.recv_into(buffer)


class _HeaderLines:
    """Reads the header lines of a request, which are bounded together. Python bounds each of them and their number."""

    def __init__(self, source: io.BufferedIOBase) -> None:
        self._source = source
        self._left = _MOST_HEADER_BYTES

    def readline(self, limit: int) -> bytes:
        line = self._source.readline(min(limit, self._left + 1))
        self._left -= len(line)
        if self._left < 0:
            raise HttpError(431, f"the headers of the request are longer than {_MOST_HEADER_BYTES} bytes")
        return line


class _Conversation(BaseHTTPRequestHandler):
    """The requests of one connection, one after the other."""

    protocol_version = "HTTP/1.1"
    server_version = "ekorn"
    sys_version = ""

    def __init__(self, link: socket.socket, server: WebServer, known: Callable[[], bool]) -> None:
        self._link = link
        self._web = server
        self._known = known
        super().__init__(link, "", server)  # type: ignore[arg-type]

    def setup(self) -> None:
        self.connection = self._link
        if self._link.family != socket.AF_UNIX:
            self._link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._reader = _BoundedReader(self._link)
        self.rfile = cast(io.BufferedIOBase, io.BufferedReader(self._reader, _PIECE_BYTES))
        self.wfile = self._link.makefile("wb", _PIECE_BYTES)  # type: ignore[assignment]

    def handle_one_request(self) -> None:
        self.close_connection = True  # unless the request is read to its end
        limits = self._web.limits
        self._reader.deadline = time.monotonic() + limits.idle_s
        first = self.rfile.read(1)
        if not first:
            return
        self._reader.deadline = time.monotonic() + limits.request_s
        try:
            self.raw_requestline = first + self.rfile.readline(_LONGEST_LINE + 1)
            if len(self.raw_requestline) > _LONGEST_LINE:
                self.command = ""  # not that of the request before
                self.send_error(414, "the first line of the request is too long")
                return
            if not self._parse():
                return
            wants_more = self.headers.get("Connection", "").lower() != "close" and self.request_version == "HTTP/1.1"
            self.close_connection = True
            self._link.settimeout(limits.body_s)
            self._answer(wants_more=wants_more)
        except TimeoutError:
            self._send_refusal(HttpError(408, "the request took too long"))
        except HttpError as refused:
            self._send_refusal(refused)

    def _parse(self) -> bool:
        """Read the headers; return False if the request was malformed, and has been answered."""
        whole = self.rfile
        self.rfile = cast(io.BufferedIOBase, _HeaderLines(whole))
        try:
            return self.parse_request()
        finally:
            self.rfile = whole

    def handle_expect_100(self) -> bool:
        """Ask the client for the body at once: it waits for the word. Python calls it."""
        go_on = super().handle_expect_100()
        self.wfile.flush()
        return go_on

    def _answer(self, *, wants_more: bool) -> None:
        try:
            request, found = self._admitted()
        except HttpError as refused:
            self._send(_refusal(refused))
            return
        self.close_connection = not wants_more
        try:
            response = self._response(request, found)
        finally:
            if request.body_file is not None:
                request.body_file.unlink(missing_ok=True)
        self._send(response)

    def _response(self, request: Request, found: Found) -> Response:
        try:
            answer = found.route.handler(request)
            return answer if isinstance(answer, Response) else Response(answer)
        except HttpError as refused:
            return _refusal(refused)
        except EkornError as refused:
            return _refusal(HttpError(400, str(refused)))
        except Exception as error:  # a defect of ekorn: the server goes on, and the log has the traceback
            _log.exception("the web server could not answer %s %s", self.command, self.path.partition("?")[0])
            of_disk = _refusal_of_disk(error)
            return _refusal(of_disk or HttpError(500, "the server could not answer; see its log for the reason"))

    def _admitted(self) -> tuple[Request, Found]:
        """Return the request after all checks.

        Raises:
            HttpError: It is refused.
        """
        gate = self._web.gate
        gate.check_sender(self.headers)  # type: ignore[arg-type]
        is_known = gate.knows(self.headers)  # type: ignore[arg-type]
        if is_known and not self._known():
            most = self._web.limits.most_known
            raise HttpError(429, f"clients have {most} connections to this server; close some, or ask again later")
        try:
            parts, query = _parsed(self.path)
            found = self._web.routes.find(self.command, parts)
        except HttpError:
            if is_known:
                raise
            raise _UNKNOWN from None
        if not is_known and not found.route.is_public:
            raise _UNKNOWN
        gate.check_route(found.route)
        request = Request(self.command, "/" + "/".join(parts), found.parameters, query)
        size = self._body_bytes(found.route.most_body_bytes)
        self._reader.deadline = time.monotonic() + self._web.limits.body_s
        if found.route.to_file:
            return _with(request, body_file=self._body_in_file(size)), found
        return _with(request, body=self._read(size)), found

    def _body_bytes(self, most: int) -> int:
        if "Transfer-Encoding" in self.headers:
            raise HttpError(411, "the body needs a Content-Length")
        given = self.headers.get_all("Content-Length", ["0"])
        if len(given) > 1 or not (given[0].strip().isascii() and given[0].strip().isdigit()):
            raise HttpError(400, f"the Content-Length is {', '.join(given)[:80]!r}, which is not a number")
        size = int(given[0]) if len(given[0]) < 19 else most + 1
        if size > most:
            raise HttpError(413, f"the body is longer than {most} bytes")
        return size

    def _read(self, size: int) -> bytes:
        body = self.rfile.read(size)
        if len(body) < size:
            raise HttpError(400, f"the body ended after {len(body)} of {size} bytes")
        return body

    def _body_in_file(self, size: int) -> Path:
        path: Path | None = None
        try:
            number, name = tempfile.mkstemp(prefix="ekorn-body-")
            path = Path(name)
            with open(number, "wb") as file:
                while size:
                    piece = self._read(min(size, _PIECE_BYTES))
                    file.write(piece)
                    size -= len(piece)
        except BaseException as error:
            if path is not None:
                path.unlink(missing_ok=True)
            if (of_disk := _refusal_of_disk(error)) is not None:
                _log.error("the body of %s %s cannot be kept: %s", self.command, self.path.partition("?")[0], error)
                raise of_disk from error
            raise
        return path

    def _send(self, response: Response) -> None:
        content = response.content
        if isinstance(content, FileAnswer):
            try:
                with open(content.path, "rb") as file:
                    size = max(os.fstat(file.fileno()).st_size - content.first_byte, 0)
                    file.seek(content.first_byte)
                    self._send_head(response, size)
                    if self.command != "HEAD":
                        _copy(file, self.wfile, size)
            except FileNotFoundError:
                self._send_refusal(HttpError(404, "the file is gone"))
                return
        else:
            body = response.body()
            self._send_head(response, len(body))
            if self.command != "HEAD":
                self.wfile.write(body)
        self.wfile.flush()

    def _send_head(self, response: Response, size: int) -> None:
        self.send_response_only(response.status)
        headers = {
            "Content-Type": response.content_type,
            "Content-Length": str(size),
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "DENY",
            "Referrer-Policy": "no-referrer",
            **response.headers,
        }
        if response.status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        if self.close_connection:
            headers["Connection"] = "close"
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def _send_refusal(self, refused: HttpError) -> None:
        self.close_connection = True
        self.request_version = "HTTP/1.1"
        self.command = self.command if getattr(self, "command", None) else "GET"
        with contextlib.suppress(OSError):
            self._send(_refusal(refused))

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer a request that cannot be parsed. Python calls it."""
        self._send_refusal(HttpError(code if 400 <= code < 500 else 400, message or "the request is malformed"))

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: requests of pages come every second, and addresses may hold names of users."""


_UNKNOWN = HttpError(401, "the request must carry the server's token (Authorization: Bearer ...; ekorn.web.token-file)")


def _refusal(refused: HttpError) -> Response:
    return Response({"errors": [refused.reason]}, refused.status)


def _refusal_of_disk(error: BaseException) -> HttpError | None:
    """Return what to answer if the disk of the server is full, or takes no writes; None if the error is another one."""
    if not isinstance(error, OSError) or error.errno not in _DISK_REFUSES:
        return None
    why = os.strerror(error.errno).lower()
    return HttpError(
        507,
        f"the server cannot write to its disk: {why}; its log names the file; repeat the request once there is room",
    )


def _with(request: Request, **more: Any) -> Request:
    return Request(request.method, request.path, request.parameters, request.query, **more)


def _parsed(target: str) -> tuple[list[str], dict[str, list[str]]]:
    try:
        address = urlsplit(target)
        parts = [unquote(part, errors="strict") for part in address.path.split("/") if part]
        query = parse_qs(address.query, keep_blank_values=True, max_num_fields=200, errors="strict")
    except ValueError as error:
        raise HttpError(400, f"the address of the request is malformed: {error}") from None
    return parts, query


def _copy(source: BinaryIO, target: Any, size: int) -> None:
    """Copy as many bytes as were announced: a log may grow meanwhile, or be cut."""
    while size:
        piece = source.read(min(size, _PIECE_BYTES))
        if not piece:
            raise ConnectionError("the file was cut while it was sent")
        target.write(piece)
        size -= len(piece)
