"""Text from a socket, for trials and demonstrations."""

from __future__ import annotations

import logging
import socket
import threading
from typing import Any

from ekorn.functions.source_contract import SourceContext, SourceFunction

__all__ = ["SocketTextStreamFunction"]

_RETRY_SECONDS = 0.5
_CONNECT_SECONDS = 10.0
_READ_BYTES = 8192

log = logging.getLogger(__name__)


class SocketTextStreamFunction(SourceFunction[str]):
    r"""Connects to a server and emits the text that it sends, cut at a delimiter.

    A socket cannot be read a second time: text that was read after the last checkpoint is lost when the job fails.
    """

    def __init__(self, hostname: str, port: int, delimiter: str = "\n", max_retry: int = 0) -> None:
        """Create the source.

        Args:
            hostname: The server.
            port: The port of the server.
            delimiter: The end of a record, which is no part of it. At a line feed a carriage return is removed too.
            max_retry: How often to connect again when the server ends the connection; -1 for without end.
        """
        if isinstance(port, bool) or not isinstance(port, int) or not 0 < port < 65536:
            raise ValueError(f"socket_text_stream() takes a port from 1 to 65535, got {port!r}")
        if not isinstance(delimiter, str) or not delimiter:
            raise ValueError(f"socket_text_stream() takes a delimiter of at least one character, got {delimiter!r}")
        if isinstance(max_retry, bool) or not isinstance(max_retry, int) or max_retry < -1:
            raise ValueError(f"socket_text_stream() takes -1 or more retries, got {max_retry!r}")
        self._address = (hostname, port)
        self._delimiter = delimiter
        self._max_retry = max_retry

    def open(self, runtime_context: Any) -> None:
        """Prepare to be cancelled."""
        self._cancelled = threading.Event()
        self._socket: socket.socket | None = None

    def run(self, ctx: SourceContext[str]) -> None:
        """Read until the server ends the last connection."""
        retries = 0
        while not self._cancelled.is_set():
            try:
                self._read(ctx)
            except OSError as error:
                if self._cancelled.is_set():
                    return
                if self._max_retry != -1 and retries >= self._max_retry:
                    raise ConnectionError(f"cannot read from {self._address[0]}:{self._address[1]}: {error}") from error
                log.warning("the connection to %s:%d failed, reconnecting: %s", *self._address, error)
            if self._max_retry != -1 and retries >= self._max_retry:
                return
            retries += 1
            self._cancelled.wait(_RETRY_SECONDS)

    def _read(self, ctx: SourceContext[str]) -> None:
        """Emit what one connection sends."""
        delimiter, rest = self._delimiter.encode(), b""
        with socket.create_connection(self._address, _CONNECT_SECONDS) as connection:
            connection.settimeout(None)
            self._socket = connection
            while not self._cancelled.is_set():
                data = connection.recv(_READ_BYTES)
                if not data:
                    break
                *records, rest = (rest + data).split(delimiter)
                for record in records:
                    ctx.collect(self._text(record))
        self._socket = None
        # Flink: the text after the last delimiter is a record too.
        if rest and not self._cancelled.is_set():
            ctx.collect(self._text(rest))

    def _text(self, record: bytes) -> str:
        if self._delimiter == "\n":
            record = record.removesuffix(b"\r")
        return record.decode()

    def cancel(self) -> None:
        """End the connection."""
        self._cancelled.set()
        connection = self._socket
        if connection is not None:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                log.debug("the connection to %s:%d had ended already", *self._address)

    def __repr__(self) -> str:
        return f"SocketTextStreamFunction({self._address[0]!r}, {self._address[1]})"
