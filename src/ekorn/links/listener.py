"""Keeps a listening socket open to its own peers, whatever strangers do to it.

A stranger can connect as often as it likes and stay silent. Each connection costs a descriptor and a thread, so only
some may be in their handshake at once: one more closes the oldest. A failing `accept` is not the end of a listener:
the system may be short of descriptors or memory for a moment. Only `close` ends it. See docs/decisions/0020-links.md.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import socket
import threading
from collections.abc import Callable

from ekorn.links.encryption import CalledSide, Certificate, EncryptedAddress
from ekorn.links.link import HANDSHAKE_S, Address, Link, accept, listen

_log = logging.getLogger(__name__)

MAX_NEWCOMERS = 64  # connections of one listener that may be in their handshake at once
_PAUSE_S = 0.05  # before the next `accept` when the system is short of something
_PASSING = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.ECONNABORTED, errno.EINTR, errno.EPROTO}


class Newcomers:
    """The connections of one listener that are in their handshake. Thread-safe."""

    def __init__(self, limit: int = MAX_NEWCOMERS) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._waiting: dict[socket.socket, None] = {}  # the oldest first

    def add(self, sock: socket.socket) -> None:
        """Count a connection; if there are too many, close the oldest."""
        with self._lock:
            self._waiting[sock] = None
            crowded = len(self._waiting) > self._limit
        if crowded:
            self.close_oldest()

    def remove(self, sock: socket.socket) -> None:
        """Stop counting a connection: its peer is known, or it is closed."""
        with self._lock:
            self._waiting.pop(sock, None)

    def close_oldest(self) -> None:
        """End the oldest connection. The thread that reads from it then closes it."""
        with self._lock:
            oldest = next(iter(self._waiting), None)
            if oldest is not None:
                del self._waiting[oldest]
                with contextlib.suppress(OSError):  # the peer has closed the connection already
                    oldest.shutdown(socket.SHUT_RDWR)


class Acceptor:
    """Accepts the connections of a listening socket, each with a thread of its own, until it is closed.

    Args:
        sock: The listening socket; the acceptor closes it.
        converse: Called with each connection. It removes the connection from `newcomers` once its peer is known.
        name: The name of the threads.
        most_newcomers: The most connections that may be in their handshake at once.
    """

    def __init__(
        self,
        sock: socket.socket,
        converse: Callable[[socket.socket], None],
        name: str,
        *,
        most_newcomers: int = MAX_NEWCOMERS,
    ) -> None:
        self._socket = sock
        self._converse = converse
        self._name = name
        self._closed = threading.Event()
        self.newcomers = Newcomers(most_newcomers)

    def start(self) -> None:
        """Accept connections on a thread of its own."""
        threading.Thread(target=self.run, name=self._name, daemon=True).start()

    def run(self) -> None:
        """Accept connections until `close`."""
        while not self._closed.is_set():
            try:
                sock, _ = self._socket.accept()
            except OSError as error:
                if not self._closed.is_set():
                    self._pause(error)
                continue
            self.newcomers.add(sock)
            try:
                threading.Thread(target=self._serve, args=(sock,), name=self._name, daemon=True).start()
            except RuntimeError as error:  # the system has no more threads
                self.newcomers.remove(sock)
                sock.close()
                self._pause(error)

    def close(self) -> None:
        """Accept nothing more. Connections that were accepted stay."""
        self._closed.set()
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # ends the `accept` that waits
        self._socket.close()

    def _serve(self, sock: socket.socket) -> None:
        try:
            self._converse(sock)
        finally:
            self.newcomers.remove(sock)

    def _pause(self, error: OSError | RuntimeError) -> None:
        """Wait until the system has resources again, which a stranger's connection may occupy."""
        if not (isinstance(error, OSError) and error.errno in _PASSING):
            _log.warning("a connection could not be accepted, the listener goes on: %s", error)
        self.newcomers.close_oldest()
        self._closed.wait(_PAUSE_S)


class Listener:
    """Listens for authenticated peers.

    Args:
        address: Where to listen; with port 0 the system chooses a free port.
        secret: What a peer has to know.
        serve: Called with the link of each peer that proved the secret, on a thread of its own.
        name: The name of the threads.
        certificate: The certificate of a listener that speaks TLS; its address is then an `EncryptedAddress`.
        handshake_s: How long a peer has to prove the secret.
    """

    def __init__(
        self,
        address: Address,
        secret: bytes,
        serve: Callable[[Link], None],
        name: str,
        certificate: Certificate | None = None,
        *,
        handshake_s: float = HANDSHAKE_S,
    ) -> None:
        self._secret = secret
        self._serve = serve
        self._encryption = CalledSide(certificate) if certificate is not None else None
        self._handshake_s = handshake_s
        sock = listen(address)
        found = sock.getsockname()
        self.address: Address = found if isinstance(found, str) else (found[0], found[1])
        if certificate is not None:
            self.address = EncryptedAddress(*self.address)
        self._acceptor = Acceptor(sock, self._authenticate, name)

    def start(self) -> None:
        """Accept peers from now on."""
        self._acceptor.start()

    def close(self) -> None:
        """Accept no more peers."""
        self._acceptor.close()

    def _authenticate(self, sock: socket.socket) -> None:
        link = accept(sock, self._secret, self._encryption, self._handshake_s)
        self._acceptor.newcomers.remove(sock)
        if link is not None:
            self._serve(link)
