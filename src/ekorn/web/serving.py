"""Opens a web server as settings say: address, token and certificate."""

from __future__ import annotations

import socket
import ssl
from dataclasses import dataclass

from ekorn.config.settings.web_settings import WebSettings, is_loopback
from ekorn.errors import ConfigurationError
from ekorn.web.gate import Gate
from ekorn.web.http_server import WebServer, tcp_socket
from ekorn.web.routes import Routes
from ekorn.web.token_file import token_in

__all__ = ["Serving", "serve"]


@dataclass(frozen=True)
class Serving:
    """A web server that runs.

    Attributes:
        server: The server.
        address: The address for browsers and clients.
        local_address: The address for clients on this machine: without TLS, one that no other machine answers.
        token_file: The file with the token; None if none is needed.
    """

    server: WebServer
    address: str
    local_address: str
    token_file: str | None


def serve(
    settings: WebSettings, routes: Routes, default_token_file: str, *, host: str | None = None, started: bool = True
) -> Serving:
    """Open a web server.

    Args:
        settings: Where it listens, and which clients it answers; the port is set.
        routes: The handlers.
        default_token_file: The file with the token, unless the settings name one.
        host: The name by which clients reach it; None for the address that it listens on.
        started: Whether it answers at once; otherwise its caller starts it.

    Raises:
        ConfigurationError: The address is in use, or the token or the certificate cannot be read.
    """
    assert settings.port is not None
    token_file = (settings.token_file or default_token_file) if settings.needs_token else None
    token = None if token_file is None else token_in(token_file)
    tls = None if settings.certificate_file is None else _tls(settings.certificate_file)
    try:
        sock = tcp_socket(settings.bind_address, settings.port)
    except OSError as error:
        raise ConfigurationError(
            f"the web server cannot listen on {settings.bind_address}:{settings.port} "
            f"(ekorn.web, ekorn.web.bind-address): {error.strerror or error}"
        ) from error
    gate = Gate(token, _names(settings, host), settings.read_only)
    server = WebServer(sock, routes, gate, tls)
    if started:
        server.start()
    listens_on = socket.gethostname() if settings.bind_address in ("0.0.0.0", "::") else settings.bind_address
    address = _url(host or listens_on, server.port, tls is not None)
    on_loopback = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.bind_address, settings.bind_address)
    local_address = address if tls else _url(on_loopback, server.port, False)  # a certificate is for the host's name
    return Serving(server, address, local_address, token_file)


def _url(host: str, port: int, is_encrypted: bool) -> str:
    return f"{'https' if is_encrypted else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"


def _names(settings: WebSettings, host: str | None) -> frozenset[str]:
    names = {settings.bind_address, *settings.allowed_hosts, *([] if host is None else [host])}
    if is_loopback(settings.bind_address):
        names |= {"localhost", "127.0.0.1", "::1"}
    elif settings.bind_address in ("0.0.0.0", "::"):
        names |= {"localhost", "127.0.0.1", "::1", socket.gethostname(), socket.getfqdn()}
    return frozenset(name.strip().lower() for name in names)


def _tls(certificate_file: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate_file)
    except OSError as error:  # ssl.SSLError is an OSError
        raise ConfigurationError(
            f"ekorn.web.certificate-file: {certificate_file!r} cannot be used: {error.strerror or error}"
        ) from error
    return context
