"""`RMQConnectionConfig`: where a RabbitMQ server is, and how a connection to it behaves."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from ekorn.config.masking import masked_urls
from ekorn.errors import ConfigurationError
from ekorn.extras import load

__all__ = ["RMQConnectionConfig", "client_library"]

_DEFAULT_PORT = 5672
_RECOVERY_MS = 5000  # Flink: the default of RabbitMQ's client for Java


def client_library() -> Any:
    """Return the module `pika`.

    It logs every failed attempt to connect in a dozen lines. The connector reports what they say, once; a program that
    sets a level for the logger `pika` sees them.
    """
    logger = logging.getLogger("pika")
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.CRITICAL)
    return load("rabbitmq", "RabbitMQ")


@dataclass(frozen=True)
class RMQConnectionConfig:
    """A server and the settings of a connection; made by `RMQConnectionConfig.Builder`."""

    host: str | None = None
    port: int | None = None
    virtual_host: str | None = None
    user_name: str | None = None
    password: str | None = field(default=None, repr=False)
    uri: str | None = field(default=None, repr=False)
    network_recovery_interval: int | None = None
    automatic_recovery: bool | None = None
    topology_recovery: bool | None = None
    connection_timeout: int | None = None
    requested_channel_max: int | None = None
    requested_frame_max: int | None = None
    requested_heartbeat: int | None = None
    prefetch_count: int | None = None

    def get_host(self) -> str | None:
        """Return the host, or None if a URI was given."""
        return self.host

    def get_port(self) -> int | None:
        """Return the port, or None if a URI was given."""
        return self.port

    def get_virtual_host(self) -> str | None:
        """Return the virtual host, or None if a URI was given."""
        return self.virtual_host

    def get_user_name(self) -> str | None:
        """Return the user, or None if a URI was given."""
        return self.user_name

    def get_password(self) -> str | None:
        """Return the password, or None if a URI was given."""
        return self.password

    def get_uri(self) -> str | None:
        """Return the URI, or None."""
        return self.uri

    def get_network_recovery_interval(self) -> int | None:
        """Return the milliseconds between two attempts to connect again; None for the default, 5000."""
        return self.network_recovery_interval

    def is_automatic_recovery(self) -> bool | None:
        """Return whether a lost connection is opened again; None for the default, which is to do so."""
        return self.automatic_recovery

    def is_topology_recovery(self) -> bool | None:
        """Return whether the queue is declared again on a new connection; None for the default, which is to do so."""
        return self.topology_recovery

    def get_connection_timeout(self) -> int | None:
        """Return the milliseconds within which a connection must be open, or None for the client's default."""
        return self.connection_timeout

    def get_requested_channel_max(self) -> int | None:
        """Return the largest number of channels, or None for the client's default."""
        return self.requested_channel_max

    def get_requested_frame_max(self) -> int | None:
        """Return the largest size of a frame in bytes, or None for the client's default."""
        return self.requested_frame_max

    def get_requested_heartbeat(self) -> int | None:
        """Return the interval of heartbeats in seconds, or None for the server's default."""
        return self.requested_heartbeat

    def get_prefetch_count(self) -> int | None:
        """Return how many messages may be unacknowledged at a time, or None for any number."""
        return self.prefetch_count

    @property
    def recovery_s(self) -> float | None:
        """The seconds between two attempts to connect again; None if a lost connection fails the job."""
        if self.automatic_recovery is False:
            return None
        interval = self.network_recovery_interval
        return (_RECOVERY_MS if interval is None else interval) / 1000

    @property
    def place(self) -> str:
        """The server as errors name it, without user and password."""
        if self.uri is None:
            return f"{self.host}:{self.port}"
        parts = urlsplit(self.uri)
        return f"{parts.hostname}:{parts.port or (5671 if parts.scheme == 'amqps' else _DEFAULT_PORT)}"

    def parameters(self) -> Any:
        """Return the settings as pika takes them."""
        pika = client_library()
        if self.uri is not None:
            made = pika.URLParameters(self.uri)
        else:
            made = pika.ConnectionParameters(
                host=self.host,
                port=self.port,
                virtual_host=self.virtual_host,
                credentials=pika.PlainCredentials(self.user_name, self.password),
            )
        if self.connection_timeout:
            made.socket_timeout = made.stack_timeout = self.connection_timeout / 1000
        for name, given in (
            ("channel_max", self.requested_channel_max),
            ("frame_max", self.requested_frame_max),
            ("heartbeat", self.requested_heartbeat),
        ):
            if given is not None:
                setattr(made, name, given)
        return made

    def __str__(self) -> str:
        return f"RMQConnectionConfig({self.place})"

    class Builder:
        """Builds an `RMQConnectionConfig`: from a URI, or from host, user and password.

        Example:
            >>> builder = RMQConnectionConfig.Builder().set_host("localhost").set_port(5672)
            >>> builder.set_virtual_host("/").set_user_name("guest").set_password("guest").build().get_port()
            5672
        """

        def __init__(self) -> None:
            """Begin without any setting."""
            self._values: dict[str, Any] = {}

        def set_host(self, host: str) -> RMQConnectionConfig.Builder:
            """Set the host."""
            return self._text("host", host)

        def set_port(self, port: int) -> RMQConnectionConfig.Builder:
            """Set the port; 5672 if it is not set."""
            return self._whole("port", port, 1, 65535)

        def set_virtual_host(self, vhost: str) -> RMQConnectionConfig.Builder:
            """Set the virtual host; ``/`` if it is not set."""
            return self._text("virtual_host", vhost)

        def set_user_name(self, user_name: str) -> RMQConnectionConfig.Builder:
            """Set the user."""
            return self._text("user_name", user_name)

        def set_password(self, password: str) -> RMQConnectionConfig.Builder:
            """Set the password. It is part of the job that is sent to the slots, and of no log, error or checkpoint."""
            return self._text("password", password)

        def set_uri(self, uri: str) -> RMQConnectionConfig.Builder:
            """Set the server, the user and the virtual host at once: ``amqp://user:password@host:port/vhost``.

            ``amqps`` encrypts the connection, and checks the server's certificate.
            """
            if not isinstance(uri, str) or urlsplit(uri).scheme not in ("amqp", "amqps") or not urlsplit(uri).hostname:
                shown = masked_urls(uri) if isinstance(uri, str) else repr(uri)
                raise ConfigurationError(f"set_uri() takes amqp://... or amqps://..., with a host; got {shown}")
            self._values["uri"] = uri
            return self

        def set_topology_recovery_enabled(self, topology_recovery_enabled: bool) -> RMQConnectionConfig.Builder:
            """Choose whether the queue is declared again when a lost connection is opened again; by default it is."""
            self._values["topology_recovery"] = bool(topology_recovery_enabled)
            return self

        def set_automatic_recovery(self, automatic_recovery: bool) -> RMQConnectionConfig.Builder:
            """Choose whether a lost connection is opened again, which is the default, or fails the job."""
            self._values["automatic_recovery"] = bool(automatic_recovery)
            return self

        def set_network_recovery_interval(self, network_recovery_interval: int) -> RMQConnectionConfig.Builder:
            """Set the milliseconds between two attempts to open a lost connection again; 5000 if it is not set."""
            return self._whole("network_recovery_interval", network_recovery_interval, 0)

        def set_connection_timeout(self, connection_timeout: int) -> RMQConnectionConfig.Builder:
            """Set the milliseconds within which a connection must be open; 0 for the client's default."""
            return self._whole("connection_timeout", connection_timeout, 0)

        def set_requested_heartbeat(self, requested_heartbeat: int) -> RMQConnectionConfig.Builder:
            """Set the interval of heartbeats in seconds; 0 for none."""
            return self._whole("requested_heartbeat", requested_heartbeat, 0)

        def set_requested_frame_max(self, requested_frame_max: int) -> RMQConnectionConfig.Builder:
            """Set the largest size of a frame in bytes."""
            return self._whole("requested_frame_max", requested_frame_max, 4096, 131072)

        def set_requested_channel_max(self, requested_channel_max: int) -> RMQConnectionConfig.Builder:
            """Set the largest number of channels of the connection."""
            return self._whole("requested_channel_max", requested_channel_max, 1, 65535)

        def set_prefetch_count(self, prefetch_count: int) -> RMQConnectionConfig.Builder:
            """Set how many messages the server sends ahead of their acknowledgement; any number if it is not set.

            With checkpoints, messages are acknowledged when a checkpoint is complete: a subtask then reads at most this
            number of messages from one checkpoint to the next.
            """
            return self._whole("prefetch_count", prefetch_count, 0, 65535)

        def build(self) -> RMQConnectionConfig:
            """Return the config.

            Raises:
                ConfigurationError: There is neither a URI nor a host with user and password.
            """
            if "uri" in self._values:
                return RMQConnectionConfig(**self._values)
            missing = [f"set_{name}()" for name in ("host", "user_name", "password") if name not in self._values]
            if missing:
                raise ConfigurationError(f"RMQConnectionConfig.Builder: call {', '.join(missing)}, or set_uri()")
            return RMQConnectionConfig(**{"port": _DEFAULT_PORT, "virtual_host": "/", **self._values})

        def _text(self, name: str, given: str) -> RMQConnectionConfig.Builder:
            if not isinstance(given, str) or not given:
                shown = "an empty text" if given == "" else f"a {type(given).__name__}"
                raise ConfigurationError(f"set_{name}() takes a text, got {shown}")
            self._values[name] = given
            return self

        def _whole(self, name: str, given: int, least: int, most: int = 2**31 - 1) -> RMQConnectionConfig.Builder:
            if isinstance(given, bool) or not isinstance(given, int) or not least <= given <= most:
                raise ConfigurationError(f"set_{name}() takes a whole number from {least} to {most}, got {given!r}")
            self._values[name] = given
            return self
