"""Receives the messages of a queue ahead of the reader, and acknowledges them."""

from __future__ import annotations

import uuid
from collections import deque
from typing import Any, NamedTuple

from ekorn import faults
from ekorn.connectors.rabbitmq.connection_config import RMQConnectionConfig
from ekorn.connectors.rabbitmq.connection_thread import ConnectionThread

__all__ = ["Delivery", "QueueConsumer"]

_MOST_WAITING = 20_000
_PAUSED_TURN_S = 0.02


class Delivery(NamedTuple):
    """A message. Its tag counts the deliveries of a session, which is the life of one channel."""

    session: str
    tag: int
    correlation_id: str | None
    body: bytes


class QueueConsumer(ConnectionThread):
    """The consumer of one reader.

    Attributes:
        waiting: The messages that have arrived and were not read yet.
        session: The present session; None while there is no connection. The server delivers what another session has
            not acknowledged once more.
        confirmed: The session and the tag up to which the server has confirmed acknowledgements.
    """

    def __init__(
        self, config: RMQConnectionConfig, queue: str, *, confirms: bool, most_waiting: int = _MOST_WAITING
    ) -> None:
        """Prepare a consumer.

        Args:
            config: The server.
            queue: The queue.
            confirms: Whether acknowledgements are sent in transactions, which the server confirms.
            most_waiting: The number of waiting messages beyond which no more are asked for, until few are left.
        """
        super().__init__(config, queue, "reading")
        self.waiting: deque[Delivery] = deque()
        self.session: str | None = None
        self.confirmed: tuple[str, int] = ("", 0)
        self._confirms = confirms
        self._most_waiting = most_waiting
        self._consumer_tag: str | None = None
        self._was_cancelled = False

    def acknowledge(self, session: str, tag: int) -> None:
        """Acknowledge all messages of a session up to a tag. Without effect if the session is over."""
        if tag:
            self.order(lambda channel: self._acknowledge(channel, session, tag))

    # ------------------------------------------------------------------------------------------- on the thread

    def _begin(self, channel: Any) -> None:
        if self._config.prefetch_count:
            channel.basic_qos(prefetch_count=self._config.prefetch_count)
        if self._confirms:
            channel.tx_select()
        self.waiting.clear()  # the server delivers these messages again
        self._was_cancelled = False
        channel.add_on_cancel_callback(self._note_cancellation)
        self.session = uuid.uuid4().hex
        self._consume(channel)

    def _note_cancellation(self, _: Any) -> None:
        self._was_cancelled = True

    def _consume(self, channel: Any) -> None:
        session = self.session
        assert session is not None

        def take(_: Any, method: Any, properties: Any, body: bytes) -> None:  # hot
            self.waiting.append(Delivery(session, method.delivery_tag, properties.correlation_id, body))

        self._consumer_tag = channel.basic_consume(self._queue, take)

    def _serve(self, channel: Any) -> float:
        """Stop to receive while too many messages wait. The connection is served meanwhile."""
        if self._was_cancelled:
            raise self._pika.exceptions.ConsumerCancelled("the server ended the consumer: the queue may be deleted")
        if self._consumer_tag is not None and len(self.waiting) >= self._most_waiting:
            channel.basic_cancel(self._consumer_tag)  # gives back what pika has not passed on
            self._consumer_tag = None
            if self._confirms:
                channel.tx_commit()
        elif self._consumer_tag is None and len(self.waiting) <= self._most_waiting // 4:
            self._consume(channel)
        return super()._serve(channel) if self._consumer_tag is not None else _PAUSED_TURN_S

    def _stopped(self) -> None:
        self.session, self._consumer_tag = None, None

    def _acknowledge(self, channel: Any, session: str, tag: int) -> None:
        if session != self.session or (session == self.confirmed[0] and tag <= self.confirmed[1]):
            return
        faults.point("rabbitmq-acknowledge")
        channel.basic_ack(tag, multiple=True)
        if self._confirms:
            channel.tx_commit()  # returns when the server has the acknowledgements
        faults.point("rabbitmq-acknowledged")
        self.confirmed = (session, tag)
