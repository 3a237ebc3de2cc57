"""The settings of a web server."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from ekorn.config import options
from ekorn.config.configuration import Configuration
from ekorn.config.settings.fields import filled_by, part, read_settings
from ekorn.errors import ConfigurationError

__all__ = ["FlameGraphSettings", "WebSettings", "web_settings"]


@dataclass(frozen=True)
class FlameGraphSettings:
    """How stacks are sampled for flame graphs.

    Attributes:
        enabled: Whether flame graphs are offered.
        samples: How many samples make a flame graph.
        delay_ms: The time between two samples.
        depth: How many frames of a stack are kept, counted from the innermost.
        refresh_ms: The age at which a flame graph is sampled anew on the next request.
    """

    enabled: bool = filled_by(options.FLAME_GRAPH_ENABLED)
    samples: int = filled_by(options.FLAME_GRAPH_SAMPLES)
    delay_ms: int = filled_by(options.FLAME_GRAPH_DELAY)
    depth: int = filled_by(options.FLAME_GRAPH_DEPTH)
    refresh_ms: int = filled_by(options.FLAME_GRAPH_REFRESH)


def _port(given: str) -> int | None:
    return {"off": None, "auto": 0}[given] if given in ("off", "auto") else int(given)


@dataclass(frozen=True)
class WebSettings:
    """Where a web server listens, and which requests it answers.

    Attributes:
        port: The port; 0 for a free one, None for no server.
        socket: A Unix socket at which the driver's own user is answered; None for none.
        bind_address: The address that the server listens on.
        token_file: The file with the token; None for the file in the user's runtime folder.
        needs_token: Whether requests without the token are refused.
        read_only: Whether requests that change something are refused.
        certificate_file: A PEM file with certificate and private key; None for a server without TLS.
        allowed_hosts: Further names by which the server may be addressed.
        address: The address of the server once it is open.
        flame_graphs: How stacks are sampled.
    """

    port: int | None = filled_by(options.WEB, by=_port)
    socket: str | None = filled_by(options.WEB_SOCKET)
    bind_address: str = filled_by(options.WEB_BIND_ADDRESS, by=str.strip)
    token_file: str | None = filled_by(options.WEB_TOKEN_FILE)
    needs_token: bool = filled_by(options.WEB_AUTHENTICATION, by=lambda way: way == "token")
    read_only: bool = filled_by(options.WEB_READ_ONLY)
    certificate_file: str | None = filled_by(options.WEB_CERTIFICATE_FILE)
    allowed_hosts: tuple[str, ...] = filled_by(options.WEB_ALLOWED_HOSTS)
    address: str | None = None
    flame_graphs: FlameGraphSettings = part(FlameGraphSettings)


def web_settings(configuration: Configuration, port: int | None = None) -> WebSettings:
    """Read the settings of a web server.

    Args:
        configuration: The keys and values.
        port: The port; None for that of a driver (`ekorn.web`).

    Raises:
        ConfigurationError: Strangers could use the server: it is reachable from other machines without TLS, or needs
            no token.
    """
    given = {} if port is None else {"port": port}
    settings = read_settings(WebSettings, configuration, **given)
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
    where = f"{options.WEB_BIND_ADDRESS.key} is {settings.bind_address!r}, which other machines can reach"
    if not settings.needs_token:
        raise ConfigurationError(f"{where}, so {options.WEB_AUTHENTICATION.key} cannot be 'none'")
    if encrypted and settings.certificate_file is None:
        raise ConfigurationError(
            f"{where}: set {options.WEB_CERTIFICATE_FILE.key}, or set {options.WEB_ENCRYPTION.key} to 'off' if a "
            "proxy in front of the server handles TLS"
        )
