"""A thread that owns a connection to RabbitMQ.

A connection of pika belongs to one thread, and must be served also while nothing is read or written: otherwise the
server misses its heartbeats and closes it. So every connection has a thread of its own, and the subtask passes orders
to it.
"""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from ekorn.connectors.rabbitmq.connection_config import RMQConnectionConfig, client_library
from ekorn.errors import RabbitMQError

__all__ = ["ConnectionThread"]

log = logging.getLogger(__name__)

_TURN_S = 1.0  # how long the thread waits for events; an order ends the wait
_CLOSE_S = 10.0
_NO_QUEUE = 404  # the server's code for a queue that does not exist


class ConnectionThread(ABC):
    """Opens a connection with one channel, serves it, and opens it again when it is lost.

    Args:
        config: The server.
        queue: The queue that the channel is for.
        purpose: What the connection is for, for names and errors.
    """

    def __init__(self, config: RMQConnectionConfig, queue: str, purpose: str) -> None:
        self._pika = client_library()
        self._config = config
        self._queue = queue
        self._where = f"{purpose} queue {queue!r} of RabbitMQ at {config.place}"
        self._connection: Any = None
        self._channel: Any = None
        self._closing = threading.Event()
        self._is_open: Future[None] = Future()
        self.failure: Exception | None = None  # set once the thread has given up
        self._thread = threading.Thread(target=self._run, name="ekorn-rabbitmq", daemon=True)

    def start(self) -> None:
        """Start the thread, and wait until the connection is open.

        Raises:
            RabbitMQError: The server cannot be reached, or refuses the connection.
        """
        self._thread.start()
        self._is_open.result()

    def check(self) -> None:
        """Raise the error for which the thread has given up, if it has."""
        if self.failure is not None:
            raise self.failure

    def close(self) -> None:
        """Close the connection and end the thread."""
        self._closing.set()
        self.order(lambda channel: None)
        if self._thread.is_alive():
            self._thread.join(_CLOSE_S)

    def order(self, action: Callable[[Any], None]) -> bool:
        """Let the thread call a function with the channel; return whether there is a connection to do it on."""
        connection = self._connection
        if connection is None:
            return False
        try:
            connection.add_callback_threadsafe(lambda: self._perform(connection, action))
        except self._pika.exceptions.ConnectionWrongStateError:
            return False
        return True

    def _perform(self, connection: Any, action: Callable[[Any], None]) -> None:
        if connection is self._connection and self._channel is not None:
            action(self._channel)

    # ------------------------------------------------------------------------------------------- on the thread

    @abstractmethod
    def _begin(self, channel: Any) -> None:
        """Prepare a new channel."""

    def _serve(self, channel: Any) -> float:
        """Do what is due between two waits, and return how long the next wait may be."""
        return _TURN_S

    def _stopped(self) -> None:  # noqa: B027 - who waits for nothing need not know
        """Take note that the thread has given up, or that the connection was lost."""

    def _run(self) -> None:
        try:
            self._open(is_first=True)
        except Exception as error:
            self._disconnect()
            self._is_open.set_exception(self._described(error))
            return
        self._is_open.set_result(None)
        while not self._closing.is_set():
            try:
                if self._connection is None:
                    self._open(is_first=False)
                    log.info("%s: connected again", self._where)
                self._connection.process_data_events(time_limit=self._serve(self._channel))
                if not self._channel.is_open:  # pika says so at the next call alone
                    unknown = self._pika.exceptions.ChannelWrongStateError("the server closed the channel")
                    raise getattr(self._channel, "_closing_reason", None) or unknown
            except Exception as error:
                self._lose(error)
        self._end()

    def _end(self) -> None:
        """Carry out the orders that were given before the end, and close the connection."""
        try:
            if self._connection is not None:
                self._connection.process_data_events(time_limit=0)
        except Exception as error:
            log.warning("%s", self._described(error))
        self._disconnect()

    def _open(self, *, is_first: bool) -> None:
        connection = self._pika.BlockingConnection(self._config.parameters())
        try:
            if is_first or self._config.topology_recovery is not False:
                self._declare(connection)
            channel = connection.channel()
            self._begin(channel)
        except BaseException:
            _close(connection)
            raise
        self._channel, self._connection = channel, connection

    def _declare(self, connection: Any) -> None:
        """Make sure that the queue exists. One that exists may have any properties; a new one survives a restart."""
        channel = connection.channel()
        try:
            channel.queue_declare(self._queue, passive=True)
        except self._pika.exceptions.ChannelClosedByBroker as error:
            if error.reply_code != _NO_QUEUE:
                raise
            channel = connection.channel()
            channel.queue_declare(self._queue, durable=True)
        channel.close()

    def _lose(self, error: Exception) -> None:
        """Wait until the connection may be opened again; or give up."""
        was_open = self._connection is not None
        self._disconnect()
        if self._closing.is_set():
            return
        wait_s = self._config.recovery_s
        if wait_s is None or not isinstance(error, (self._pika.exceptions.AMQPError, OSError)):
            self.failure = self._described(error)
            self._closing.set()
        elif was_open:  # one line per outage, not one per attempt
            log.warning("%s; the connection will be opened again", self._described(error))
        self._stopped()
        if self.failure is None and wait_s is not None:
            self._closing.wait(wait_s if not was_open else min(wait_s, 0.1))

    def _disconnect(self) -> None:
        connection, self._connection, self._channel = self._connection, None, None
        if connection is not None:
            _close(connection)

    def _described(self, error: Exception) -> Exception:
        if not isinstance(error, (self._pika.exceptions.AMQPError, OSError)):
            return error
        cause: BaseException = error
        inner = getattr(error, "args", ())
        if inner and isinstance(inner[0], BaseException):  # pika wraps the error of a workflow
            cause = inner[0]
        nested = getattr(cause, "exceptions", None) or getattr(cause, "exception", None)
        cause = nested[-1] if isinstance(nested, (list, tuple)) and nested else cause
        text = " ".join(map(str, cause.args)) if isinstance(cause, self._pika.exceptions.AMQPError) else str(cause)
        name = type(cause).__name__
        return RabbitMQError(self._where, f"{name}: {text}" if text else name)


def _close(connection: Any) -> None:
    try:
        connection.close()
    except Exception as error:  # it is closed already, or lost: there is nothing left to release
        log.debug("closing a connection to RabbitMQ: %s", error)
