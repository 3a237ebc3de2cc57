"""The writers of the Kafka sink: one producer for all records, or one per transaction.

librdkafka sends on its own threads. Delivery reports are requested only for failures. They are checked when a record
does not fit into the queue, at the end of every epoch, and before a checkpoint.
"""

from __future__ import annotations

import logging
import threading
import uuid
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ekorn.clock import Clock
from ekorn.connectors.kafka.client_properties import ClientProperties
from ekorn.connectors.kafka.clients import ClientErrors, failure, library, start_producer
from ekorn.connectors.kafka.column_serialization import MessagesOfColumns
from ekorn.connectors.kafka.record_serialization import KafkaRecordSerializationSchema
from ekorn.connectors.kafka.transactions import (
    PreparedTransaction,
    TransactionAdmin,
    WriterName,
    abort_lingering,
)
from ekorn.errors import KafkaError, KafkaTransactionLost
from ekorn.faults import point
from ekorn.functions.sink_contract import SinkWriter, WriterContext, WrittenBatch

log = logging.getLogger(__name__)

_WRITING = "writing to Kafka"
_START_S = 60.0  # the time in which a producer must get its id for transactions
_ABORT_S = 5.0
_ROOM_S = 0.1  # the time between two checks for room in the queue
_FLUSH_S = 1.0


def producer_settings(properties: ClientProperties) -> dict[str, Any]:
    """Return the settings that the sink gives to its producers, in addition to the program's properties."""
    settings: dict[str, Any] = {"delivery.report.only.error": True}
    if "partitioner" not in properties:
        # The choice of Java's client: all producers of a topic agree on partitions.
        settings["partitioner"] = "murmur2_random"
    if not {"delivery.timeout.ms", "message.timeout.ms"} & properties.keys():
        settings["message.timeout.ms"] = "120000"  # the default of Java's client
    return settings


class KafkaWriter(SinkWriter[Any, PreparedTransaction]):
    """Hands records to a producer."""

    def __init__(
        self,
        properties: ClientProperties,
        schema: KafkaRecordSerializationSchema,
        messages: MessagesOfColumns | None = None,
    ) -> None:
        self._properties = properties
        self._messages = messages
        self._kafka = library()
        self._errors = ClientErrors(properties, _WRITING)
        self._undelivered: tuple[Any, Any] | None = None  # the first error and its message
        self._partitions: dict[str, list[int]] = {}
        self._send = schema.sender(self._partitions_of)
        self._produce: Callable[..., None]  # the method of the current producer

    @property
    @abstractmethod
    def _producer(self) -> Any:
        """The current producer."""

    def _start(self, more: dict[str, Any]) -> Any:
        callbacks = {"on_delivery": self._delivered, "error_cb": self._errors.report}
        return start_producer(self._properties, {**producer_settings(self._properties), **callbacks, **more})

    def write(self, value: Any, timestamp: int | None) -> None:  # hot
        try:
            self._send(self._produce, value, timestamp)
        except BufferError:
            self._wait_for_room()
            self.write(value, timestamp)
        except self._kafka.KafkaException as error:
            raise failure(_WRITING, error, self._properties) from None

    def write_batch(self, batch: WrittenBatch) -> None:
        assert self._messages is not None, "the sink was made for columns"
        messages = iter(self._messages(batch))  # all of them are made before the first is sent
        for first in messages:
            self._send_message(first)
            break
        produce = self._produce  # of the transaction that the first message may have begun
        for message in messages:  # hot
            try:
                produce(*message)
            except (BufferError, self._kafka.KafkaException):
                self._send_message(message)

    def _send_message(self, message: tuple[Any, ...]) -> None:
        while True:
            try:
                self._produce(*message)
                return
            except BufferError:
                self._wait_for_room()
            except self._kafka.KafkaException as error:
                raise failure(_WRITING, error, self._properties) from None

    def _wait_for_room(self) -> None:
        self._serve(self._producer.poll, _ROOM_S)

    def end_epoch(self) -> None:
        self._serve(self._producer.poll, 0)

    def _flush(self) -> None:
        """Wait until all messages are delivered. The producer gives each of them up after delivery.timeout.ms."""
        while self._serve(self._producer.flush, _FLUSH_S):
            pass

    def _serve(self, wait: Callable[[float], int], timeout_s: float) -> int:
        """Let the client report events, and raise errors that must not be ignored."""
        try:
            left = wait(timeout_s)
        except (self._kafka.KafkaException, SystemError) as raised:
            # This is a fatal error, such as that of a writer that was replaced. confluent-kafka may call `_delivered`
            # while the error is pending. Python then raises a SystemError, with or without the error as its cause. In
            # both cases the client has reported the error.
            cause = raised.__cause__ if isinstance(raised, SystemError) else raised
            if isinstance(cause, self._kafka.KafkaException):
                raise failure(_WRITING, cause, self._properties) from None
            self._check_reports()
            raise
        self._check_reports()
        return left

    def _check_reports(self) -> None:
        """Raise an error that the client has reported: its own, or that of a message."""
        self._errors.check()
        if self._undelivered is not None:
            error, message = self._undelivered
            found = f"a message to topic {message.topic()!r} was not delivered: {error.str()}"
            raise KafkaError(_WRITING, self._properties.hide(found))

    def _delivered(self, error: Any, message: Any) -> None:
        if error is None:
            self._errors.recovered()
        elif self._undelivered is None:
            self._undelivered = (error, message)

    def _partitions_of(self, topic: str) -> Sequence[int]:
        known = self._partitions.get(topic)
        if known is None:
            found = self._producer.list_topics(topic, timeout=_START_S).topics[topic]
            if found.error is not None:
                raise KafkaError(f"writing to topic {topic!r}", found.error.str())
            known = self._partitions[topic] = sorted(found.partitions)
        return known


class PlainWriter(KafkaWriter):
    """Writes outside transactions: at least once if `flushes` before each checkpoint, else without a guarantee."""

    def __init__(
        self,
        properties: ClientProperties,
        schema: KafkaRecordSerializationSchema,
        messages: MessagesOfColumns | None = None,
        *,
        flushes: bool,
    ) -> None:
        super().__init__(properties, schema, messages)
        self._flushes = flushes
        self._one: Any = self._start({})
        self._produce = self._one.produce

    @property
    def _producer(self) -> Any:
        return self._one

    def prepare_commit(self) -> Sequence[PreparedTransaction]:
        if self._flushes:
            self._flush()
        return ()

    def finish(self) -> None:
        self._flush()

    def close(self) -> None:
        self._one.purge()  # the records since the last checkpoint are read again


class _Open(NamedTuple):
    """A transaction that records are written to."""

    id: str
    producer: Any
    begun_ms: int


class TransactionalWriter(KafkaWriter):
    """Writes the records between two checkpoints in one transaction.

    librdkafka commits only transactions of its own process, and `close` of a producer aborts. A prepared transaction is
    therefore left open and its producer dropped, and `transactions.py` commits it. The next producer is started in
    advance on a thread, because starting one takes the brokers a while.
    """

    def __init__(
        self,
        properties: ClientProperties,
        schema: KafkaRecordSerializationSchema,
        messages: MessagesOfColumns | None = None,
        *,
        prefix: str,
        context: WriterContext,
        admin: TransactionAdmin,
        clock: Clock,
        timeout_ms: int,
    ) -> None:
        super().__init__(properties, schema, messages)
        self._name = WriterName(prefix, context.subtask_index, uuid.uuid4().hex[:12])
        self._topic = schema.topic
        self._context = context
        self._admin = admin
        self._clock = clock
        self._timeout_ms = timeout_ms
        self._number = 0
        self._open: _Open | None = None
        self._has_swept = False
        self._produce = self._begin_and_produce
        self._ahead = self._start_ahead()

    def _start_ahead(self) -> _Ahead:
        self._number += 1
        name = self._name.transaction(self._number)
        settings = {"transactional.id": name, "transaction.timeout.ms": str(self._timeout_ms)}
        return _Ahead(name, lambda: self._started(settings))

    def _started(self, settings: dict[str, Any]) -> Any:
        producer = self._start(settings)
        try:
            # Connect first: librdkafka looks for a coordinator at once, and then only after half a second.
            if self._topic is not None:
                producer.list_topics(self._topic, timeout=_START_S)
            else:
                producer.cluster_id(_START_S)
            producer.init_transactions(_START_S)
        except self._kafka.KafkaException as error:
            found = failure("beginning a transaction", error, self._properties)
            if error.args[0].name() == "INVALID_TRANSACTION_TIMEOUT":
                found = KafkaError(
                    "beginning a transaction",
                    f"the brokers refuse transaction.timeout.ms = {self._timeout_ms}: set it lower for the sink, or "
                    "set transaction.max.timeout.ms of the brokers higher",
                )
            raise found from None
        return producer

    # ----------------------------------------------------------------------------------------------- records

    @property
    def _producer(self) -> Any:
        assert self._open is not None, "a transaction is open"
        return self._open.producer

    def _begin_and_produce(self, *message: Any, **more: Any) -> None:
        """Begin a transaction with its first message."""
        producer = self._ahead.take()
        producer.begin_transaction()
        self._open = _Open(self._ahead.name, producer, self._clock.now_ms())
        self._ahead = self._start_ahead()
        self._produce = producer.produce
        producer.produce(*message, **more)

    def end_epoch(self) -> None:
        self._sweep_once()
        if self._open is not None:
            super().end_epoch()

    def finish(self) -> None:
        self._sweep_once()  # if the input ends in the first epoch, `end_epoch` has not run yet

    def _sweep_once(self) -> None:
        """Abort the transactions that earlier attempts left open. All subtasks have committed what they restored."""
        if self._has_swept:
            return
        aborted = abort_lingering(self._admin, self._name, self._context.subtask_count, self._timeout_ms)
        self._has_swept = True
        if aborted:
            log.info("aborted %d transactions of earlier attempts: %s", len(aborted), ", ".join(aborted))

    # ------------------------------------------------------------------------------------------- checkpoints

    def prepare_commit(self) -> Sequence[PreparedTransaction]:
        if self._open is None:
            return ()
        self._flush()
        point("kafka-flushed", self._context.subtask_index)
        opened = self._open
        state = self._admin.describe(opened.id)
        if state.error or state.state != "Ongoing":
            found = f"its state is {state.error if state.error else state.state}"
            age_s = (self._clock.now_ms() - opened.begun_ms) // 1000
            raise KafkaTransactionLost(opened.id, found, age_s, self._timeout_ms)
        self._open, self._produce = None, self._begin_and_produce
        _drop(opened)
        point("kafka-prepared", self._context.subtask_index)
        return [
            PreparedTransaction(
                id=opened.id, producer_id=state.producer_id, epoch=state.epoch, begun_ms=opened.begun_ms
            )
        ]

    def close(self) -> None:
        self._ahead.discard()
        if self._open is not None:
            try:
                self._open.producer.abort_transaction(_ABORT_S)
            except self._kafka.KafkaException as error:  # the next attempt aborts the transaction
                log.warning("transaction %r was not aborted: %s", self._open.id, error.args[0].str())
            self._open = None
        self._admin.close()


class _Ahead:
    """A producer that is started on a thread, for the next transaction."""

    def __init__(self, name: str, start: Callable[[], Any]) -> None:
        self.name = name
        self._start = start
        self._producer: Any = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=f"kafka {name}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._producer = self._start()
        except BaseException as error:  # `take` raises the error where the producer is needed
            self._error = error

    def take(self) -> Any:
        """Wait for the producer and return it."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        producer, self._producer = self._producer, None
        return producer

    def discard(self) -> None:
        """Give the producer up. It has no transaction."""
        self._producer = None


def _drop(opened: _Open) -> None:
    """Drop a producer whose transaction stays open. A thread does it, because the client first ends its own threads."""
    threading.Thread(target=lambda dropped: None, args=(opened,), name="kafka drop", daemon=True).start()
