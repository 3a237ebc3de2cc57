"""The options of a database: how to connect, and how to write batches. The names are PyFlink's."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = ["JdbcConnectionOptions", "JdbcExecutionOptions"]

_DEFAULT_BATCH_SIZE = 5000
_DEFAULT_RETRIES = 3


@dataclass(frozen=True, repr=False)
class JdbcConnectionOptions:
    """The database and its user; made by `JdbcConnectionOptions.JdbcConnectionOptionsBuilder`."""

    url: str
    driver_name: str | None = None
    user_name: str | None = None
    password: str | None = field(default=None)

    def get_db_url(self) -> str:
        """Return the URL, as it was given."""
        return self.url

    def get_driver_name(self) -> str | None:
        """Return the name of the Java driver, or None."""
        return self.driver_name

    def get_user_name(self) -> str | None:
        """Return the user, or None."""
        return self.user_name

    def get_password(self) -> str | None:
        """Return the password, or None."""
        return self.password

    def __repr__(self) -> str:
        password = "" if self.password is None else ", password=***"
        return f"JdbcConnectionOptions({without_secrets(self.url)!r}, user={self.user_name!r}{password})"

    class JdbcConnectionOptionsBuilder:
        """Builds `JdbcConnectionOptions`."""

        def __init__(self) -> None:
            """Begin without any option."""
            self._values: dict[str, str] = {}

        def with_url(self, url: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """Set the URL: `jdbc:postgresql://host:port/database` or `jdbc:sqlite:/path/of/the/file`."""
            return self._with("url", url)

        def with_driver_name(self, driver_name: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """Set the Java driver. The URL chooses the Python driver; a name of another database is refused."""
            return self._with("driver_name", driver_name)

        def with_user_name(self, user_name: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """Set the user."""
            return self._with("user_name", user_name)

        def with_password(self, password: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """Set the password. It is part of the job that is sent to the slots, and of no log, error or checkpoint."""
            return self._with("password", password)

        def build(self) -> JdbcConnectionOptions:
            """Return the options."""
            if "url" not in self._values:
                raise ValueError("JdbcConnectionOptionsBuilder needs a URL: call with_url()")
            return JdbcConnectionOptions(**self._values)

        def _with(self, name: str, value: Any) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            if not isinstance(value, str):
                raise TypeError(f"with_{name}() takes a str, got a {type(value).__name__}")
            self._values[name] = value
            return self


@dataclass(frozen=True)
class JdbcExecutionOptions:
    """The size of batches and the number of retries; made by `JdbcExecutionOptions.builder()`."""

    batch_interval_ms: int = 0
    batch_size: int = _DEFAULT_BATCH_SIZE
    max_retries: int = _DEFAULT_RETRIES

    def get_batch_interval_ms(self) -> int:
        """Return the longest time that a row waits for its batch; 0 for no limit but the next checkpoint."""
        return self.batch_interval_ms

    def get_batch_size(self) -> int:
        """Return the number of rows of a batch."""
        return self.batch_size

    def get_max_retries(self) -> int:
        """Return how often a batch is tried again when the database is away."""
        return self.max_retries

    @staticmethod
    def defaults() -> JdbcExecutionOptions:
        """Return batches of 5000 rows without an interval, and 3 retries."""
        return JdbcExecutionOptions()

    @staticmethod
    def builder() -> JdbcExecutionOptions.Builder:
        """Begin with the defaults."""
        return JdbcExecutionOptions.Builder()

    class Builder:
        """Builds `JdbcExecutionOptions`."""

        def __init__(self) -> None:
            """Begin with the defaults."""
            self._values: dict[str, int] = {}

        def with_batch_interval_ms(self, batch_interval_ms: int) -> JdbcExecutionOptions.Builder:
            """Set the longest time that a row waits for its batch, in milliseconds; 0 for no limit."""
            return self._with("batch_interval_ms", batch_interval_ms, least=0)

        def with_batch_size(self, batch_size: int) -> JdbcExecutionOptions.Builder:
            """Set the number of rows of a batch; 0 or less writes batches at checkpoints and at the interval only."""
            # Flink: batches of 0 or fewer rows are never full, too.
            return self._with("batch_size", batch_size, least=None)

        def with_max_retries(self, max_retries: int) -> JdbcExecutionOptions.Builder:
            """Set how often a batch is tried again when the database is away."""
            return self._with("max_retries", max_retries, least=0)

        def build(self) -> JdbcExecutionOptions:
            """Return the options."""
            return JdbcExecutionOptions(**self._values)

        def _with(self, name: str, value: int, *, least: int | None) -> JdbcExecutionOptions.Builder:
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"with_{name}() takes an int, got {value!r}")
            if least is not None and value < least:
                raise ValueError(f"with_{name}() takes a number of {least} or more, got {value}")
            self._values[name] = value
            return self


def without_secrets(url: str) -> str:
    """Return a URL without the parameters behind `?` and without a password before the host.

    >>> without_secrets("jdbc:postgresql://me:secret@host/db?password=secret")
    'jdbc:postgresql://host/db'
    """
    address = url.partition("?")[0]
    before, slashes, rest = address.partition("//")
    host, slash, path = rest.partition("/")
    return f"{before}{slashes}{host.rpartition('@')[2]}{slash}{path}"
