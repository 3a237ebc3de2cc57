"""Authenticated connections to a slot: a socket, a secret both sides prove to know, then messages of bytes.

Nothing that arrives before the proof is interpreted: the handshake compares digests of fixed-size challenges
and reads at most some hundred bytes. Afterwards peers trust one another as parts of one job.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import socket
import struct

from tamias.errors import DeploymentError

Address = str | tuple[str, int]  # the path of a Unix socket, or host and port

_CHALLENGE = 32
_GREETING = b"tamias/1"
_HANDSHAKE_S = 10.0
_LENGTH = struct.Struct("<Q")
_LARGEST = 1 << 34  # a message above 16 GiB is a torn length, not a message


class Link:
    """A connection that has authenticated. Messages are bytes; an empty one is a message too."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock

    def send(self, *parts: bytes | bytearray | memoryview) -> None:
        """Send one message, given in parts."""
        length = sum(len(p) for p in parts)
        if length < 65536:
            self._socket.sendall(_LENGTH.pack(length) + b"".join(parts))
        else:
            self._socket.sendall(_LENGTH.pack(length))
            for part in parts:
                self._socket.sendall(part)

    def receive(self) -> bytes:
        """Receive one message; EOFError when the other side is gone."""
        (length,) = _LENGTH.unpack(_exactly(self._socket, _LENGTH.size))
        if length > _LARGEST:
            raise EOFError(f"a message of {length} bytes was announced")
        return _exactly(self._socket, length)

    def settimeout(self, seconds: float | None) -> None:
        """How long `receive` and `send` may wait."""
        self._socket.settimeout(seconds)

    def local_host(self) -> str:
        """This side's address, as the other side sees it."""
        return str(self._socket.getsockname()[0])

    def close(self) -> None:
        """Close the connection; a `receive` on another thread ends."""
        with contextlib.suppress(OSError):  # already closed by the other side
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


def listen(address: Address) -> socket.socket:
    """A listening socket; with port 0 the system chooses one."""
    if isinstance(address, str):
        sock = socket.socket(socket.AF_UNIX)
        sock.bind(address)
        os.chmod(address, 0o600)
    else:
        sock = socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
    sock.listen(128)
    return sock


def connect(address: Address, secret: bytes, timeout_s: float = _HANDSHAKE_S) -> Link:
    """Connect to a listener that knows the secret."""
    if isinstance(address, str):
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(timeout_s)
        sock.connect(address)
    else:
        sock = socket.create_connection((address[0], address[1]), timeout=timeout_s)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        _prove(sock, secret, first=False)
    except BaseException:
        sock.close()
        raise
    sock.settimeout(None)
    return Link(sock)


def accept(sock: socket.socket, secret: bytes) -> Link | None:
    """Authenticate a connection that a listener accepted; None (and closed) when the peer does not know the secret."""
    sock.settimeout(_HANDSHAKE_S)
    if sock.family != socket.AF_UNIX:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        _prove(sock, secret, first=True)
    except (OSError, EOFError, DeploymentError):
        sock.close()
        return None
    sock.settimeout(None)
    return Link(sock)


def _prove(sock: socket.socket, secret: bytes, *, first: bool) -> None:
    """Each side sends a challenge, and proves the secret on the other's. The side that was called speaks first."""
    mine = os.urandom(_CHALLENGE)
    if first:
        sock.sendall(_GREETING + mine)
        theirs = _exactly(sock, _CHALLENGE)
    else:
        greeting = _exactly(sock, len(_GREETING) + _CHALLENGE)
        if not greeting.startswith(_GREETING):
            raise DeploymentError(f"the peer is not a tamias slot of this version: it said {greeting[:8]!r}")
        theirs = greeting[len(_GREETING) :]
        sock.sendall(mine)
    # The roles are part of what is digested, so a digest cannot be sent back to its maker.
    sock.sendall(_digest(secret, b"called" if first else b"caller", theirs))
    answer = _exactly(sock, hashlib.sha256().digest_size)
    if not hmac.compare_digest(answer, _digest(secret, b"caller" if first else b"called", mine)):
        raise DeploymentError("the peer does not know this job's secret")


def _digest(secret: bytes, role: bytes, challenge: bytes) -> bytes:
    return hmac.new(secret, role + challenge, hashlib.sha256).digest()


def _exactly(sock: socket.socket, length: int) -> bytes:
    """Read so many bytes, as one object where the system can fill it in one call."""
    parts: list[bytes] = []
    while length:
        part = sock.recv(length, socket.MSG_WAITALL)
        if not part:
            raise EOFError("the other side closed the connection")
        parts.append(part)
        length -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)
