"""The messages of a queue as a source: the server keeps a message until a checkpoint that covers it is complete.

A queue cannot be read again from a position. So a message stays unacknowledged until a completed checkpoint holds its
effects. After a failure the server delivers every unacknowledged message once more. Some of them are covered by the
restored checkpoint: those whose acknowledgement was lost. Their correlation ids are part of the checkpoint, so they are
recognized. Without correlation ids they are processed twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ekorn.clock import Clock, SystemClock
from ekorn.connectors.formats.schemas import DeserializationSchema
from ekorn.connectors.rabbitmq.connection_config import RMQConnectionConfig
from ekorn.connectors.rabbitmq.queue_consumer import Delivery, QueueConsumer
from ekorn.errors import MalformedRecordError, preview
from ekorn.functions.source_contract import (
    Batch,
    Boundedness,
    Malformed,
    Source,
    SourceConnection,
    Split,
    SplitReader,
)
from ekorn.types.type_information import TypeInformation

__all__ = ["QueueReader", "RabbitQueue"]

_DISCOVERY_MS = 10_000
_KEPT_MS = 3_600_000  # how long the ids of an earlier session are kept: the server delivers a message long before


@dataclass(frozen=True)
class RabbitQueue(Source):
    """A queue of RabbitMQ.

    With correlation ids one subtask reads, since an id must come back to the subtask that knows it. Without them every
    subtask has a consumer.

    Attributes:
        config: The server.
        queue: The name of the queue.
        schema: Turns the bodies of messages into records.
        uses_ids: Whether messages have unique correlation ids, by which repeated messages are recognized.
        checkpointing: Whether the job takes checkpoints. Without them a message is acknowledged when it was read.
    """

    config: RMQConnectionConfig
    queue: str
    schema: DeserializationSchema[Any]
    uses_ids: bool
    checkpointing: bool = True

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.CONTINUOUS_UNBOUNDED

    @property
    def ends(self) -> bool:
        return type(self.schema).is_end_of_stream is not DeserializationSchema.is_end_of_stream

    @property
    def discovery_interval_ms(self) -> int | None:
        # After a change of the parallelism, subtasks without a consumer get one.
        return None if self.uses_ids else _DISCOVERY_MS

    def for_job(self, *, checkpointing: bool) -> Source:
        return replace(self, checkpointing=checkpointing)

    def discover_splits(self, parallelism: int) -> list[Split]:
        return [Split(f"{self.queue}-{number}") for number in range(1 if self.uses_ids else parallelism)]

    def owner(self, split_id: str, parallelism: int) -> int | None:
        return int(split_id.rpartition("-")[2]) % parallelism

    def create_reader(self, split: Split, position: Any | None) -> SplitReader:
        connection = _QueueConnection(self)
        reader = connection.create_reader(split, position)
        reader.close = connection.close  # type: ignore[method-assign]  # no connection of a subtask closes its consumer
        return reader

    def connect(self, subtask_index: int) -> SourceConnection:
        return _QueueConnection(self)

    def get_produced_type(self) -> TypeInformation | None:
        """Return the type that the schema declares."""
        return self.schema.get_produced_type()


class _QueueConnection(SourceConnection):
    """The consumers of one subtask. A reader that is at its end is closed before its last messages are acknowledged."""

    def __init__(self, source: RabbitQueue) -> None:
        self._source = source
        self._consumers: dict[str, QueueConsumer] = {}

    def discover_splits(self, parallelism: int, *, first: bool) -> list[Split]:
        return self._source.discover_splits(parallelism)

    def create_reader(self, split: Split, position: Any | None) -> QueueReader:
        source = self._source
        consumer = QueueConsumer(source.config, source.queue, confirms=source.checkpointing)
        consumer.start()
        self._consumers[split.id] = consumer
        return QueueReader(source, consumer, position)

    def checkpoint_completed(self, positions: Mapping[str, Any]) -> None:
        for split_id, position in positions.items():
            consumer = self._consumers.get(split_id)
            if consumer is not None:
                session, tag, *_ = position
                consumer.acknowledge(session, tag)

    def close(self) -> None:
        for consumer in self._consumers.values():
            consumer.close()


class QueueReader(SplitReader):
    """Reads the messages that a consumer receives.

    Args:
        source: The queue.
        consumer: Receives the messages.
        position: The position of an earlier reader, or None.
        clock: The clock by which ids of earlier sessions grow old.
    """

    def __init__(
        self, source: RabbitQueue, consumer: QueueConsumer, position: Any | None, clock: Clock | None = None
    ) -> None:
        self._source = source
        self.consumer = consumer
        self._deserialize = source.schema.deserialize
        self._is_end: Callable[[Any], bool] = source.schema.is_end_of_stream
        self._clock = clock or SystemClock()
        self._session = consumer.session or ""
        self._tag = 0  # the last message of the session that was read
        self._ids: dict[str, int] = {}  # the ids of the session that are not acknowledged for sure: by id, the tag
        self._earlier: dict[str, int] = {}  # those of earlier sessions: by id, since when they are kept
        self._finished = False
        if position is not None:
            _, _, ids, earlier = position
            self._earlier = {**dict(earlier), **dict.fromkeys(ids, self._clock.now_ms())}

    def read(self, max_records: int) -> Batch:
        self.consumer.check()
        self._follow()
        values: list[Any] = []
        malformed: list[Malformed] = []
        waiting = self.consumer.waiting
        while len(values) < max_records and waiting and not self._finished:
            try:
                delivery = waiting.popleft()
            except IndexError:  # the connection was lost, and what waited with it
                break
            if delivery.session == self._session:
                self._tag = delivery.tag
                self._take(delivery, values, malformed)
        if not self._source.checkpointing:
            self.consumer.acknowledge(self._session, self._tag)
        return Batch(values, None, malformed)

    def _take(self, delivery: Delivery, values: list[Any], malformed: list[Malformed]) -> None:
        if self._source.uses_ids and not self._is_new(delivery, malformed):
            return
        try:
            value = self._deserialize(delivery.body)
        except Exception as error:
            error.add_note(f"while deserializing a message of queue {self._source.queue!r}")
            malformed.append(Malformed(delivery.body, error))
            return
        if value is None:
            return
        if self._is_end(value):
            self._finished = True
        else:
            values.append(value)

    def _is_new(self, delivery: Delivery, malformed: list[Malformed]) -> bool:
        """Return whether no message with the same correlation id was read; note the id."""
        found = delivery.correlation_id
        if not found:
            error = MalformedRecordError(
                f"a message of queue {self._source.queue!r}",
                "it has no correlation id, and use_correlation_id is True; let the publisher set a unique one",
                preview(delivery.body),
            )
            malformed.append(Malformed(delivery.body, error))
            return False
        is_new = self._ids.pop(found, None) is None and self._earlier.pop(found, None) is None
        self._ids[found] = delivery.tag  # at the end: tags ascend
        return is_new

    def _follow(self) -> None:
        """Take note of a new session, and of messages that are acknowledged."""
        session = self.consumer.session
        if session is not None and session != self._session:
            self._earlier.update(dict.fromkeys(self._ids, self._clock.now_ms()))
            self._ids.clear()
            self._session, self._tag = session, 0
        confirmed_session, confirmed_tag = self.consumer.confirmed
        if confirmed_session == self._session:
            done = []
            for each, tag in self._ids.items():
                if tag > confirmed_tag:
                    break
                done.append(each)
            for each in done:
                del self._ids[each]

    def position(self) -> Any:
        self._follow()
        oldest = self._clock.now_ms() - _KEPT_MS
        self._earlier = {each: since for each, since in self._earlier.items() if since > oldest}
        return [self._session, self._tag, list(self._ids), [list(each) for each in self._earlier.items()]]

    @property
    def finished(self) -> bool:
        return self._finished
