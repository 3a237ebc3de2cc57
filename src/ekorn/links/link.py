"""Authenticated connections to a slot: a socket on which both sides prove that they know a secret, then messages.

Nothing that arrives before the proof is interpreted: the handshake reads at most a hundred bytes and compares digests
of fixed-size challenges. After it both sides trust each other as parts of one job. Someone on the path of a TCP
connection could read, change or add messages. A listener with a certificate therefore speaks TLS, before the proof and
after it; without a certificate every message carries a keyed digest. A Unix socket has no path. See
docs/decisions/0005-slot-connections.md, 0020-links.md and 0022-encrypted-links.md.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import select
import socket
import ssl
import struct
import time
from collections.abc import Iterable, Iterator

from ekorn.errors import DeploymentError
from ekorn.links.encryption import CalledSide, CallingSide, EncryptedAddress, EncryptedSocket

Address = str | tuple[str, int] | EncryptedAddress  # the path of a Unix socket, or host and port
Channel = socket.socket | EncryptedSocket

_CHALLENGE = 32
_GREETING = b"ekorn/2"
HANDSHAKE_S = 10.0  # limit of the whole handshake, however slowly the peer sends
_FIRST_PAUSE_S = 0.02  # before a peer that was closed in its handshake tries again
_LONGEST_PAUSE_S = 1.0
# A host is taken for lost after three minutes: idle for one, then six questions without an answer. Data that is not
# acknowledged (TCP_USER_TIMEOUT, in milliseconds) has the same time.
_SILENCE = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 20, "TCP_KEEPCNT": 6, "TCP_USER_TIMEOUT": 180_000}
_LENGTH = struct.Struct("<Q")
_DIGEST = 32  # bytes of a message's digest
_NUMBER = struct.Struct("<QQ")  # the number of a message, and its length
# The most that one call reads when small messages are received together. Python allocates the buffer before each call
# and shrinks it afterwards, and the system maps and unmaps memory for larger ones: 20 µs instead of 3.
_READ_BYTES = 1 << 16
_LARGEST = 1 << 34  # a length above 16 GiB is a corrupted length, not a message


class MessageTooLarge(EOFError):
    """The peer announces a message of more bytes than are accepted. The connection cannot be read any further."""


class MessageDigests:
    """Computes the digests of one direction's messages, which reveal that one is changed, repeated or left out."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._number = 0

    def of(self, length: int, parts: Iterable[bytes | bytearray | memoryview]) -> bytes:
        """Return the digest of the next message."""
        digest = hashlib.blake2b(_NUMBER.pack(self._number, length), key=self._key, digest_size=_DIGEST)
        self._number += 1
        for part in parts:
            digest.update(part)
        return digest.digest()


class Link:
    """An authenticated connection. A message is any number of bytes, also none.

    Args:
        sock: The connection.
        sent: The digests of messages that leave; None: messages have no digests.
        received: The digests of messages that arrive.
    """

    def __init__(
        self, sock: Channel, sent: MessageDigests | None = None, received: MessageDigests | None = None
    ) -> None:
        self._socket = sock
        self._sent = sent
        self._received = received
        self._arrived = bytearray()  # the beginning of the next message, after `receive_arrived`
        self._largest = _LARGEST

    def accept_at_most(self, size: int) -> None:
        """Refuse messages of more bytes from now on, before they are read: the peer is trusted with less than a job."""
        self._largest = size

    def send(self, *parts: bytes | bytearray | memoryview) -> None:
        """Send one message, given in parts."""
        length = sum(len(p) for p in parts)
        if self._sent is not None:
            parts = (*parts, self._sent.of(length, parts))
        if length < 65536:
            self._socket.sendall(_LENGTH.pack(length) + b"".join(parts))
        else:
            self._socket.sendall(_LENGTH.pack(length))
            for part in parts:
                self._socket.sendall(part)

    def send_now(self, *parts: bytes | bytearray | memoryview) -> bytes | None:
        """Send one small message without waiting, as far as the connection takes it.

        Returns:
            The rest, which `send_rest` must send before any other message; None if there is none.
        """
        length = sum(len(p) for p in parts)
        if self._sent is not None:
            parts = (*parts, self._sent.of(length, parts))
        return self._taken(_LENGTH.pack(length) + b"".join(parts))

    def send_rest(self, rest: bytes | memoryview) -> None:
        """Send what `send_now` returned."""
        self._socket.sendall(rest)

    def send_each(self, messages: Iterable[bytes]) -> None:
        """Send some messages at once."""
        self._socket.sendall(self._joined(messages))

    def send_each_now(self, messages: Iterable[bytes]) -> bytes | None:
        """Send some messages without waiting, as far as the connection takes them; return the rest as `send_now`."""
        return self._taken(self._joined(messages))

    def _joined(self, messages: Iterable[bytes]) -> bytes:
        parts: list[bytes] = []
        for message in messages:
            parts += _LENGTH.pack(len(message)), message
            if self._sent is not None:
                parts.append(self._sent.of(len(message), (message,)))
        return b"".join(parts)

    def _taken(self, data: bytes) -> bytes | None:
        """Send bytes as far as the connection takes them now; return the rest."""
        if isinstance(self._socket, EncryptedSocket):
            return data  # TLS may have to read before it sends, which could wait
        try:
            taken = self._socket.send(data, socket.MSG_DONTWAIT)
        except OSError:  # it is full or has ended; `send_rest` waits or raises
            return data
        return None if taken == len(data) else data[taken:]

    @property
    def never_waits(self) -> bool:
        """Whether `take_arrived` and `send_each_now` can be used. TLS may have to read before it sends."""
        return not isinstance(self._socket, EncryptedSocket)

    def take_arrived(self) -> list[bytes]:
        """Return the messages that have arrived completely, without waiting for one.

        Raises:
            EOFError: As `receive`.
        """
        assert self.never_waits, "the caller has asked"
        try:
            part = self._socket.recv(_READ_BYTES, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return []  # whole messages were taken when their last bytes came
        if not part:
            raise EOFError("the other side closed the connection")
        self._arrived += part
        return list(self._whole_messages())

    def receive_arrived(self) -> list[bytes]:
        """Wait for a message; return it and the messages behind it that have arrived completely, in few system calls.

        A thread that calls the system releases the interpreter and may wait to get it back. After this method only
        `wait`, `take_arrived` and this method may be called: it may have read the beginning of the next message.

        Raises:
            EOFError: As `receive`.
        """
        while not (messages := list(self._whole_messages())):
            part = self._socket.recv(_READ_BYTES, 0)
            if not part:
                raise EOFError("the other side closed the connection")
            self._arrived += part
        return messages

    def _whole_messages(self) -> Iterator[bytes]:
        """Take the complete messages off `_arrived`."""
        trailer, start = 0 if self._received is None else _DIGEST, 0
        arrived = self._arrived
        while len(arrived) >= start + _LENGTH.size:
            (length,) = _LENGTH.unpack_from(arrived, start)
            self._check_length(length)
            begin, end = start + _LENGTH.size, start + _LENGTH.size + length
            if len(arrived) < end + trailer:
                break
            message = bytes(memoryview(arrived)[begin:end])
            self._check_digest(message, bytes(arrived[end : end + trailer]))
            yield message
            start = end + trailer
        del arrived[:start]

    def receive(self) -> bytes:
        """Receive one message.

        Raises:
            EOFError: The other side has closed the connection, or someone on the path has changed a message. The
                message is not returned, and the connection is closed.
        """
        (length,) = _LENGTH.unpack(_exactly(self._socket, _LENGTH.size))
        self._check_length(length)
        message = _exactly(self._socket, length)
        if self._received is not None:
            self._check_digest(message, _exactly(self._socket, _DIGEST))
        return message

    def _check_length(self, length: int) -> None:
        if length > self._largest:
            raise MessageTooLarge(f"a message of {length} bytes was announced; at most {self._largest} are accepted")

    def _check_digest(self, message: bytes, digest: bytes) -> None:
        if self._received is not None and not hmac.compare_digest(digest, self._received.of(len(message), (message,))):
            self.close()
            raise EOFError("a message was changed in transit: its digest is wrong")

    def wait(self, seconds: float) -> bool:
        """Wait until a message begins to arrive or the connection ends; return False if the time is up."""
        if isinstance(self._socket, EncryptedSocket) and self._socket.has_bytes:
            return True
        descriptor = self._socket.fileno()
        if descriptor < 0:
            return True  # the connection was closed on this side
        waiting = select.poll()
        waiting.register(descriptor, select.POLLIN)
        return bool(waiting.poll(seconds * 1000))

    def settimeout(self, seconds: float | None) -> None:
        """Limit how long `receive` and `send` wait; None: without limit."""
        self._socket.settimeout(seconds)

    def local_host(self) -> str:
        """Return the host address of this side of the connection."""
        return str(self._socket.getsockname()[0])

    @property
    def crosses_hosts(self) -> bool:
        """Whether the two sides are on different hosts."""
        if self._socket.family == socket.AF_UNIX:
            return False
        try:
            # A connection from a host to itself has the same address on both sides.
            return bool(self._socket.getsockname()[0] != self._socket.getpeername()[0])
        except OSError:  # it has ended; the next use raises
            return False

    def shut_down(self) -> None:
        """End the connection: a `receive` on another thread, or on the other side, ends with EOFError."""
        with contextlib.suppress(OSError):  # the other side has closed the connection already
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """End the connection and release the socket."""
        self.shut_down()
        self._socket.close()


def listen(address: Address) -> socket.socket:
    """Open a listening socket. With port 0 the system chooses a free port."""
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


def connect(address: Address, secret: bytes, timeout_s: float = HANDSHAKE_S) -> Link:
    """Connect to a listener and prove the secret to each other.

    A listener that is crowded by strangers may close a connection in its handshake (`listener.py`), or have no room for
    one more. The caller tries again, with longer and longer pauses, until the timeout.

    Raises:
        DeploymentError: The peer is no ekorn slot of this version, or does not know the secret.
        OSError: The listener cannot be reached, or does not answer in time.
        EOFError: The listener closed the connection each time.
    """
    deadline = time.monotonic() + timeout_s
    pause_s = _FIRST_PAUSE_S
    while True:
        try:
            return _connect_once(address, secret, deadline)
        except (EOFError, ConnectionResetError, BrokenPipeError, BlockingIOError):
            if time.monotonic() + pause_s >= deadline:
                raise
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


def _connect_once(address: Address, secret: bytes, deadline: float) -> Link:
    if isinstance(address, str):
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(_remaining(deadline))
        try:
            sock.connect(address)
        except BaseException:
            sock.close()
            raise
    else:
        sock = socket.create_connection((address[0], address[1]), timeout=_remaining(deadline))
        _prepare_tcp(sock)
    try:
        encrypted = isinstance(address, EncryptedAddress)
        channel = _encrypt(sock, CallingSide(), deadline) if encrypted else sock
        link = _prove(channel, secret, first=False, deadline=deadline)
    except ssl.SSLError as error:
        sock.close()
        raise DeploymentError(f"the peer at {address[0]}:{address[1]} does not speak TLS: {error.reason}") from error
    except BaseException:
        sock.close()
        raise
    sock.settimeout(None)
    return link


def accept(
    sock: socket.socket, secret: bytes, encryption: CalledSide | None = None, timeout_s: float = HANDSHAKE_S
) -> Link | None:
    """Authenticate an accepted connection. If the peer does not know the secret, close it and return None.

    Args:
        sock: The connection.
        secret: What the peer has to know.
        encryption: If given, a peer that does not speak TLS is refused.
        timeout_s: The time for the whole handshake.
    """
    deadline = time.monotonic() + timeout_s
    try:
        if sock.family != socket.AF_UNIX:
            _prepare_tcp(sock)
        channel = _encrypt(sock, encryption, deadline) if encryption is not None else sock
        link = _prove(channel, secret, first=True, deadline=deadline)
        sock.settimeout(None)
    except (OSError, EOFError, DeploymentError):
        sock.close()
        return None
    return link


def _encrypt(sock: socket.socket, side: CalledSide | CallingSide, deadline: float) -> EncryptedSocket:
    channel = EncryptedSocket(sock, side)
    sock.settimeout(_remaining(deadline))
    while not channel.go_on_with_handshake():
        sock.settimeout(_remaining(deadline))
        if not channel.take_in():
            raise EOFError("the other side closed the connection")
    return channel


def _prepare_tcp(sock: socket.socket) -> None:
    """Send small messages at once, and notice a peer's host that vanished without closing its connections.

    Lifelines and the connections for events have heartbeats, which notice it sooner.
    """
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _SILENCE.items():
        if hasattr(socket, name):  # each system has some of them
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _prove(sock: Channel, secret: bytes, *, first: bool, deadline: float) -> Link:
    """Send a challenge, and prove the secret on the peer's challenge. The side that was called sends `first`."""
    mine = os.urandom(_CHALLENGE)
    # If someone on the path presents a certificate of their own, the two sides see different certificates. The proofs
    # cover the certificate and can only be passed on, so they do not match.
    seen = sock.fingerprint if isinstance(sock, EncryptedSocket) else b""
    sock.settimeout(_remaining(deadline))
    if first:
        sock.sendall(_GREETING + mine)
        theirs = _exactly(sock, _CHALLENGE, deadline)
    else:
        greeting = _exactly(sock, len(_GREETING) + _CHALLENGE, deadline)
        if not greeting.startswith(_GREETING):
            raise DeploymentError(f"the peer is not an ekorn slot of this version: its greeting was {greeting[:8]!r}")
        theirs = greeting[len(_GREETING) :]
        sock.sendall(mine)
    # The role is part of the digest, so that a stranger cannot send a digest back to the side that made it.
    sock.sendall(_digest(secret, b"called" if first else b"caller", theirs + seen))
    answer = _exactly(sock, hashlib.sha256().digest_size, deadline)
    if not hmac.compare_digest(answer, _digest(secret, b"caller" if first else b"called", mine + seen)):
        raise DeploymentError(
            "the peer does not know this job's secret, or someone on the network path has changed the proof"
        )
    if sock.family == socket.AF_UNIX or isinstance(sock, EncryptedSocket):
        return Link(sock)
    # Each proof covers the challenge of its reader, so both sides have the same two challenges here.
    challenges = mine + theirs if first else theirs + mine
    by_called = MessageDigests(_digest(secret, b"messages of the called", challenges))
    by_caller = MessageDigests(_digest(secret, b"messages of the caller", challenges))
    return Link(sock, by_called, by_caller) if first else Link(sock, by_caller, by_called)


def _digest(secret: bytes, role: bytes, challenge: bytes) -> bytes:
    return hmac.new(secret, role + challenge, hashlib.sha256).digest()


def _remaining(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("the handshake was not finished in time")
    return left


def _exactly(sock: Channel, length: int, deadline: float | None = None) -> bytes:
    """Read exactly `length` bytes, as one object if the system fills it in one call."""
    parts: list[bytes] = []
    while length:
        if deadline is not None:  # else the socket's own timeout applies to each call
            sock.settimeout(_remaining(deadline))
        part = sock.recv(length, socket.MSG_WAITALL)
        if not part:
            raise EOFError("the other side closed the connection")
        parts.append(part)
        length -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)
