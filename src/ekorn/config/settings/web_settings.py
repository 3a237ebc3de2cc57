"""The settings of a web server."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from ekorn.config import options
from ekorn.config.configuration import Configuration
from ekorn.errors import ConfigurationError

__all__ = ["FlameGraphSettings", "WebSettings", "web_settings"]


@dataclass(frozen=True)
class FlameGraphSettings:
    """How stacks are sampled for flame graphs.

    Attributes:
        enabled: Whether they are.
        samples: How many samples make a flame graph.
        delay_ms: The time between two samples.
        depth: How many frames are kept, from the innermost on.
        refresh_ms: How old a flame graph may become before the next request samples anew.
    """

    enabled: bool = True
    samples: int = 100
    delay_ms: int = 50
    depth: int = 100
    refresh_ms: int = 60_000


@dataclass(frozen=True)
class WebSettings:
    """Where a web server listens, and whom it answers.

    Attributes:
        port: The port; 0 for a free one, None for no server.
        socket: A Unix socket at which the driver's own user is answered; None for none.
        bind_address: The address that it listens on.
        token_file: The file with the token; None for the file in the user's runtime folder.
        needs_token: Whether requests without the token are refused.
        read_only: Whether requests that change something are refused.
        certificate_file: A PEM file with certificate and private key; None for a server without TLS.
        allowed_hosts: Further names by which the server may be addressed.
        address: Where the server listens, once it is open.
        flame_graphs: How stacks are sampled.
    """

    port: int | None = None
    socket: str | None = None
    bind_address: str = "127.0.0.1"
    token_file: str | None = None
    needs_token: bool = True
    read_only: bool = False
    certificate_file: str | None = None
    allowed_hosts: tuple[str, ...] = ()
    address: str | None = None
    flame_graphs: FlameGraphSettings = FlameGraphSettings()


def web_settings(configuration: Configuration, port: int | None = None) -> WebSettings:
    """Read the settings of a web server.

    Args:
        configuration: The keys and values.
        port: The port; None for that of a driver (`ekorn.web`).

    Raises:
        ConfigurationError: Strangers could use the server: it is reachable from other machines without TLS, or needs
            no token.
    """
    if port is None:
        given = options.WEB.read(configuration)
        port = {"off": None, "auto": 0}[given] if given in ("off", "auto") else int(given)
    settings = WebSettings(
        port=port,
        socket=options.WEB_SOCKET.read(configuration),
        bind_address=options.WEB_BIND_ADDRESS.read(configuration).strip(),
        token_file=options.WEB_TOKEN_FILE.read(configuration),
        needs_token=options.WEB_AUTHENTICATION.read(configuration) == "token",
        read_only=options.WEB_READ_ONLY.read(configuration),
        certificate_file=options.WEB_CERTIFICATE_FILE.read(configuration),
        allowed_hosts=options.WEB_ALLOWED_HOSTS.read(configuration),
        flame_graphs=FlameGraphSettings(
            enabled=options.FLAME_GRAPH_ENABLED.read(configuration),
            samples=options.FLAME_GRAPH_SAMPLES.read(configuration),
            delay_ms=options.FLAME_GRAPH_DELAY.read(configuration),
            depth=options.FLAME_GRAPH_DEPTH.read(configuration),
            refresh_ms=options.FLAME_GRAPH_REFRESH.read(configuration),
        ),
    )
    if not is_loopback(settings.bind_address):  # also without a port: the reporter for Prometheus has its own
        _check_exposed(settings, encrypted=options.WEB_ENCRYPTION.read(configuration) == "auto")
    return settings


def is_loopback(address: str) -> bool:
    """Return whether only this machine can connect to an address.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"


def _check_exposed(settings: WebSettings, *, encrypted: bool) -> None:
    where = f"{options.WEB_BIND_ADDRESS.key} is {settings.bind_address!r}, which other machines reach"
    if not settings.needs_token:
        raise ConfigurationError(f"{where}, so {options.WEB_AUTHENTICATION.key} cannot be 'none'")
    if encrypted and settings.certificate_file is None:
        raise ConfigurationError(
            f"{where}: set {options.WEB_CERTIFICATE_FILE.key}, or set {options.WEB_ENCRYPTION.key} to 'off' if a "
            "proxy in front of the server speaks TLS"
        )
