"""The registry of databases: which driver serves which URL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ekorn.connectors.jdbc import postgresql, sqlite
from ekorn.connectors.jdbc.database import Database
from ekorn.connectors.jdbc.options import JdbcConnectionOptions, without_secrets
from ekorn.errors import ConfigurationError


@dataclass(frozen=True)
class _Driver:
    prefix: str
    java_name: str
    open: Callable[[JdbcConnectionOptions], Database]


_DRIVERS = (
    _Driver(postgresql.PREFIX, postgresql.DRIVER_NAME, postgresql.PostgreSql.of),
    _Driver(sqlite.PREFIX, sqlite.DRIVER_NAME, sqlite.Sqlite.of),
)


def database_of(options: JdbcConnectionOptions) -> Database:
    """Return the database of a connection's options; check them, without connecting.

    Raises:
        ConfigurationError: No driver serves the URL, or the options contradict it.
    """
    shown = without_secrets(options.url)
    for driver in _DRIVERS:
        if options.url.startswith(driver.prefix):
            if options.driver_name not in (None, driver.java_name):
                raise ConfigurationError(
                    f"the driver {options.driver_name!r} does not support {shown!r}; "
                    f"leave out with_driver_name(), or set it to {driver.java_name!r}"
                )
            return driver.open(options)
    known = " and ".join(driver.prefix for driver in _DRIVERS)
    raise ConfigurationError(f"no driver supports {shown!r}; URLs start with {known}")
