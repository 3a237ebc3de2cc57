"""TLS for links between hosts: hides what a link carries, and notices what someone on the path changes.

TLS alone does not say who the peer is: nobody vouches for the certificate of a job. `links/link.py` has both sides
prove the job's secret over the fingerprint of the certificate that they see. See
docs/decisions/0022-encrypted-links.md.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import socket
import ssl
import tempfile
import threading
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ekorn.errors import DeploymentError
from ekorn.storage.scratch_folders import LocalFolder

_RECORD_BYTES = 1 << 14  # the most that one TLS record holds
_CHUNK_BYTES = 1 << 18  # what is encrypted before it is sent, and the most that is read from the socket at once
_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


class EncryptedAddress(NamedTuple):
    """Host and port of a listener that speaks TLS only."""

    host: str
    port: int


@dataclass(frozen=True)
class Certificate:
    """A certificate of a job with its private key, as PEM text."""

    pem: bytes = field(repr=False)

    @functools.cached_property
    def fingerprint(self) -> bytes:
        """The SHA-256 of the certificate.

        Raises:
            DeploymentError: The text holds no certificate.
        """
        found = _CERTIFICATE.search(self.pem)
        if found is None:
            raise DeploymentError("a certificate in PEM format was expected: -----BEGIN CERTIFICATE-----")
        return hashlib.sha256(ssl.PEM_cert_to_DER_cert(found[0].decode("ascii", "replace"))).digest()


class CalledSide:
    """The side of a listener: has the certificate and its private key.

    Raises:
        DeploymentError: OpenSSL refuses the certificate or the key.
    """

    def __init__(self, certificate: Certificate) -> None:
        self.fingerprint = certificate.fingerprint
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_3
        self.context.num_tickets = 0  # a link is never resumed
        with contextlib.closing(LocalFolder(tempfile.gettempdir(), "ekorn-tls-")) as folder:  # closed to other users
            path = os.path.join(folder.path, "certificate.pem")
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(certificate.pem)
            try:
                # Python's ssl reads keys from files only. Without a password OpenSSL would ask for one at the terminal.
                self.context.load_cert_chain(path, password="")
            except ssl.SSLError as error:
                raise DeploymentError(f"the certificate of the links cannot be used: {error}") from error


class CallingSide:
    """The side that connects. It takes any certificate: which one it was becomes part of the proof of the secret."""

    def __init__(self) -> None:
        self.fingerprint = b""  # known after the handshake
        self.context = _calling_context()


@functools.cache
def _calling_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


class EncryptedSocket:
    """A TCP connection under TLS, with the methods of a socket that a link uses.

    One thread may send while another receives, as on a plain socket. `ssl.SSLSocket` does not allow that: its object of
    OpenSSL is for one thread at a time, and a `recv` that waits would hold it. Here it is held only while bytes in
    memory are encrypted or decrypted.

    Args:
        sock: The connection.
        side: Which side of the connection this is.
    """

    def __init__(self, sock: socket.socket, side: CalledSide | CallingSide) -> None:
        self._socket = sock
        self._side = side
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = side.context.wrap_bio(self._incoming, self._outgoing, server_side=isinstance(side, CalledSide))
        self._tls_lock = threading.Lock()  # guards the objects of OpenSSL
        self._sending = threading.Lock()  # keeps records in the order of their encryption
        self.family = sock.family
        self.fingerprint = side.fingerprint  # identifies the certificate, after the handshake

    def go_on_with_handshake(self) -> bool:
        """Send what the handshake has to say next; return whether the handshake is done. If not, `take_in` more.

        Raises:
            ssl.SSLError: The peer speaks no TLS 1.3.
        """
        done = True
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            done = False
        except ssl.SSLError:
            with contextlib.suppress(OSError):  # tell the peer what was wrong, if it still listens
                self._socket.sendall(self._outgoing.read())
            raise
        self._socket.sendall(self._outgoing.read())
        if done and isinstance(self._side, CallingSide):
            self.fingerprint = hashlib.sha256(self._tls.getpeercert(binary_form=True) or b"").digest()
        return done

    def take_in(self) -> bool:
        """Read bytes from the network; return False at their end."""
        data = self._socket.recv(_CHUNK_BYTES)
        with self._tls_lock:
            self._incoming.write(data)
        return bool(data)

    def recv(self, size: int, flags: int = 0) -> bytes:
        """Receive between one and `size` bytes; none at the end of the connection.

        Raises:
            EOFError: Someone on the path has changed something.
        """
        while True:
            with self._tls_lock:
                try:
                    return self._tls.read(min(size, _RECORD_BYTES))
                except ssl.SSLWantReadError:
                    pass
                except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                    return b""
                except ssl.SSLError as error:
                    self.close()
                    raise EOFError(f"a message was changed in transit: {error.reason}") from error
            if not self.take_in():
                return b""

    def sendall(self, data: bytes | bytearray | memoryview) -> None:
        """Send all bytes."""
        view = memoryview(data)
        for start in range(0, len(view), _CHUNK_BYTES):
            with self._sending:
                self._socket.sendall(self._encrypted(view[start : start + _CHUNK_BYTES]))

    def _encrypted(self, plain: memoryview) -> bytes:
        with self._tls_lock:
            sent = 0
            while sent < len(plain):
                sent += self._tls.write(plain[sent:])  # one record
            return self._outgoing.read()

    @property
    def has_bytes(self) -> bool:
        """Whether bytes have been taken in that were not received yet."""
        with self._tls_lock:
            return bool(self._incoming.pending or self._tls.pending())

    def fileno(self) -> int:
        return self._socket.fileno()

    def settimeout(self, seconds: float | None) -> None:
        self._socket.settimeout(seconds)

    def getsockname(self) -> Any:
        return self._socket.getsockname()

    def getpeername(self) -> Any:
        return self._socket.getpeername()

    def shutdown(self, how: int) -> None:
        self._socket.shutdown(how)

    def close(self) -> None:
        self._socket.close()
