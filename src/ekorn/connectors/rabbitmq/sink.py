"""`RMQSink`: writes records to a queue of RabbitMQ, each at least once."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ekorn.connectors.formats.schemas import SerializationSchema, SimpleStringSchema
from ekorn.connectors.rabbitmq.connection_config import RMQConnectionConfig
from ekorn.connectors.rabbitmq.connection_thread import ConnectionThread
from ekorn.connectors.rabbitmq.source import _check
from ekorn.errors import RabbitMQError, preview
from ekorn.extras import need
from ekorn.functions.sink_contract import Sink, SinkWriter, WriterContext
from ekorn.legacy.spellings import SinkSpelling
from ekorn.types.type_information import TypeInformation

__all__ = ["RMQSink", "RabbitQueueSink"]

_MOST_WAITING = 10_000  # messages in memory, beyond which write() waits
_AT_ONCE = 1_000  # messages of one transaction
_PATIENCE_S = 60.0  # how long the server may confirm nothing


class RMQSink(SinkSpelling):
    """Writes records to a queue, which is created if it does not exist.

    A checkpoint completes when the server has confirmed all messages before it. After a failure, messages that were
    written after the restored checkpoint are written again: the queue holds each record at least once.
    """

    def __init__(
        self,
        connection_config: RMQConnectionConfig,
        queue_name: str,
        serialization_schema: SerializationSchema[Any],
    ) -> None:
        """Create a sink.

        Args:
            connection_config: The server.
            queue_name: The queue.
            serialization_schema: Turns a record into the body of a message.
        """
        need("rabbitmq", "RMQSink")
        _check("RMQSink", connection_config, queue_name)
        if not isinstance(serialization_schema, SerializationSchema):
            raise TypeError(f"RMQSink() takes a SerializationSchema, got {serialization_schema!r}")
        self._sink = RabbitQueueSink(connection_config, queue_name, serialization_schema)

    def as_sink(self) -> RabbitQueueSink:
        """Return the sink."""
        return self._sink


@dataclass(frozen=True)
class RabbitQueueSink(Sink[Any]):
    """A queue as a sink."""

    config: RMQConnectionConfig
    queue: str
    schema: SerializationSchema[Any]

    def create_writer(self, context: WriterContext, restored: Sequence[Any]) -> QueueWriter:
        return QueueWriter(self)

    def with_input_type(self, type_info: TypeInformation | None) -> RabbitQueueSink:
        if isinstance(self.schema, SimpleStringSchema):
            return replace(self, schema=self.schema.with_type(type_info))
        return self


class QueueWriter(SinkWriter[Any, None]):
    """The writer of one subtask."""

    def __init__(self, sink: RabbitQueueSink) -> None:
        self._serialize = sink.schema.serialize
        self.publisher = Publisher(sink.config, sink.queue)
        self.publisher.start()

    def write(self, value: Any, timestamp: int | None) -> None:
        body = self._serialize(value)
        if not isinstance(body, (bytes, bytearray)):
            raise TypeError(f"the schema of RMQSink made {preview(body)} of {preview(value)}, where bytes are expected")
        self.publisher.publish(bytes(body))

    def prepare_commit(self) -> Sequence[None]:
        """Wait until the server has all messages."""
        self.publisher.flush()
        return ()

    def finish(self) -> None:
        self.publisher.flush()

    def close(self) -> None:
        self.publisher.close()


class Publisher(ConnectionThread):
    """Publishes messages in transactions, each as large as what has come since the last one.

    A transaction that a lost connection has not committed has no effect, and is begun again.
    """

    def __init__(self, config: RMQConnectionConfig, queue: str) -> None:
        super().__init__(config, queue, "writing to")
        self._messages: deque[bytes] = deque()  # not confirmed; the thread takes them away when they are
        self._changed = threading.Condition()
        self._is_called = False
        self._properties = self._pika.BasicProperties(delivery_mode=2)  # they survive a restart of the server

    def publish(self, body: bytes) -> None:
        """Add a message; wait if too many are under way."""
        if len(self._messages) >= _MOST_WAITING:
            self._wait(_MOST_WAITING - 1)
        self._messages.append(body)
        self._call()

    def flush(self) -> None:
        """Wait until the server has confirmed all messages.

        Raises:
            RabbitMQError: The server confirms nothing for a minute.
        """
        self._call()
        self._wait(0)

    def _wait(self, most: int) -> None:
        left, until = len(self._messages), time.monotonic() + _PATIENCE_S
        with self._changed:
            while len(self._messages) > most:
                self.check()
                if len(self._messages) < left:
                    left, until = len(self._messages), time.monotonic() + _PATIENCE_S
                elif time.monotonic() > until:
                    raise RabbitMQError(self._where, f"{left} messages were not confirmed within {_PATIENCE_S:.0f} s")
                self._changed.wait(1.0)
        self.check()

    def _call(self) -> None:
        """Let the thread publish what waits, if it was not called yet."""
        if not self._is_called:
            self._is_called = True
            if not self.order(lambda channel: None):  # the thread looks for messages once it is connected
                self._is_called = False

    # ------------------------------------------------------------------------------------------- on the thread

    def _begin(self, channel: Any) -> None:
        channel.tx_select()

    def _serve(self, channel: Any) -> float:
        self._is_called = False
        while self._messages and not self._closing.is_set():
            count = min(len(self._messages), _AT_ONCE)
            for number in range(count):
                channel.basic_publish("", self._queue, self._messages[number], self._properties)
            channel.tx_commit()
            with self._changed:
                for _ in range(count):
                    self._messages.popleft()
                self._changed.notify_all()
        return super()._serve(channel)

    def _stopped(self) -> None:
        with self._changed:
            self._changed.notify_all()
