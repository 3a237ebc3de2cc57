"""The settings of queryable state."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from ekorn.config import options
from ekorn.config.configuration import Configuration
from ekorn.errors import ConfigurationError

__all__ = ["QueryableSettings", "queryable_settings"]


@dataclass(frozen=True)
class QueryableSettings:
    """Whether and where the driver answers queries of state.

    Attributes:
        enabled: Whether it does.
        host: The address at which it listens.
        ports: The ports to try, in this order; 0 is any free one.
        token_file: The file with the token of clients; None: the driver makes a token.
        timeout_ms: How long a query waits for user code.
    """

    enabled: bool = False
    host: str = "127.0.0.1"
    ports: tuple[int, ...] = (9069,)
    token_file: str | None = None
    timeout_ms: int = 10_000


def queryable_settings(configuration: Configuration) -> QueryableSettings:
    """Read the settings of queryable state from a configuration.

    Raises:
        ConfigurationError: The host is not an address.
    """
    host = options.QUERYABLE_STATE_HOST.read(configuration)
    try:
        ipaddress.ip_address(host)
    except ValueError:
        raise ConfigurationError(f"{options.QUERYABLE_STATE_HOST.key} is {host!r}; give an IP address") from None
    return QueryableSettings(
        enabled=options.QUERYABLE_STATE.read(configuration),
        host=host,
        ports=options.QUERYABLE_STATE_PORTS.read(configuration),
        token_file=options.QUERYABLE_STATE_TOKEN_FILE.read(configuration),
        timeout_ms=options.QUERYABLE_STATE_TIMEOUT.read(configuration),
    )
