"""One subtask's consumer, and the readers of its partitions.

A subtask has one consumer for all its partitions. The consumer fetches ahead on its own threads. A reader that has no
messages pulls all messages that the consumer has fetched, of any partition, and each message is kept with its reader.
Positions are offsets in the job's state; the offsets that a group commits are for display.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ekorn.connectors.kafka.client_properties import ClientProperties
from ekorn.connectors.kafka.clients import ClientErrors, failure, is_permanent, library, start_consumer
from ekorn.connectors.kafka.deserialization import Decoded
from ekorn.connectors.kafka.offsets import KafkaOffsetsInitializer, KafkaTopicPartition
from ekorn.connectors.kafka.topic_partitions import PartitionChoice, describe
from ekorn.errors import KafkaOffsetsLost
from ekorn.functions.source_contract import Batch, SourceConnection, Split, SplitReader

log = logging.getLogger(__name__)

PULL = 4096  # messages taken from the consumer at a time
PULL_OF_COLUMNS = 1 << 16  # the consumer holds at most queued.max.messages.kbytes of them
_ASK_S = 3.0  # the time for one try of a question
_TRIES = 10  # the tries of a question whose answer the job needs; other questions are asked again later
_SETTINGS = {
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    "auto.offset.reset": "error",  # an offset that no longer exists is an error, never a jump
    "enable.partition.eof": "true",
}


class Position(NamedTuple):
    """The position of a reader. Checkpoints hold it as a plain tuple."""

    next_offset: int
    stop_offset: int | None


class Reading(NamedTuple):
    """The partition to read, and the offsets at which reading begins and ends."""

    properties: ClientProperties
    choice: PartitionChoice
    starting: KafkaOffsetsInitializer
    stopping: KafkaOffsetsInitializer | None
    commits: bool
    make_decoder: Callable[[], Callable[[Sequence[Any]], Decoded]]
    pull: int = PULL


def consumer_settings(properties: ClientProperties, subtask_index: int) -> dict[str, Any]:
    """Return the settings that the source gives to its consumer, in addition to the program's properties."""
    settings: dict[str, Any] = dict(_SETTINGS)
    # Flink: Java's client reads uncommitted records by default, librdkafka reads committed ones.
    settings["isolation.level"] = properties.get("isolation.level", "read_uncommitted")
    settings["group.id"] = properties.get("group.id", f"ekorn-{uuid.uuid4()}")
    if "client.id" in properties:
        settings["client.id"] = f"{properties['client.id']}-{subtask_index}"
    return settings


class KafkaConnection(SourceConnection):
    """The consumer of one subtask."""

    def __init__(self, reading: Reading, subtask_index: int, *, patience_s: float) -> None:
        self._reading = reading
        self._kafka = library()
        self._errors = ClientErrors(reading.properties, "reading from Kafka")
        self._consumer = start_consumer(
            reading.properties,
            {
                **consumer_settings(reading.properties, subtask_index),
                "error_cb": self._report,
                "on_commit": _note_commit,
            },
        )
        self._decode = reading.make_decoder()
        # By topic and number. A topic stays after its last reader is removed: its messages must not look like others.
        self._readers: dict[str, dict[int, PartitionReader]] = {}
        self._only_reader: PartitionReader | None = None  # set while there has been only one reader
        self._patience_s = patience_s
        self._is_quiet = False  # whether the last wait was in vain and nothing has arrived since
        self._may_be_gone = False  # whether the client reports that some partition does not exist
        self.buffered = 0  # the number of messages in the readers

    # ----------------------------------------------------------------------------------------------- splits

    def discover_splits(self, parallelism: int, *, first: bool) -> list[Split]:
        try:
            topics = self._ask(self._reading.choice.topics_now, self._consumer, tries=_TRIES if first else 1)
        except self._kafka.KafkaException as error:
            if first or is_permanent(error.args[0]):
                raise failure("looking for partitions", error, self._reading.properties) from None
            log.warning("looking for new partitions failed and will be retried: %s", error.args[0].str())
            return []
        for reader in self._all_readers():
            topics.check_present(reader.partition)
        start = "starting" if first else "first"
        found = self._reading.choice.partitions(topics)
        return [Split(f"{p.topic}-{p.partition}", (p.topic, p.partition, start)) for p in found]

    def create_reader(self, split: Split, position: Any | None) -> SplitReader:
        topic, number, start = split.what
        partition = KafkaTopicPartition(topic, number)
        try:
            if position is None:
                place = self._place(partition, start)
            else:
                place = Position(*position)
                self._check_in_range(partition, place.next_offset)
            reader = PartitionReader(self, partition, place, self._decode)
            if not reader.finished:
                self._only_reader = None if self._readers else reader
                self._readers.setdefault(topic, {})[number] = reader
                self._consumer.incremental_assign([self._kafka.TopicPartition(topic, number, place.next_offset)])
        except self._kafka.KafkaException as error:
            raise failure(f"opening {partition}", error, self._reading.properties) from None
        return reader

    def _place(self, partition: KafkaTopicPartition, start: str) -> Position:
        """Return the position at which a partition is begun. All offsets are looked up now, and kept from then on."""
        reading = self._reading
        begin = self.first(partition) if start == "first" else reading.starting.find(partition, self)
        return Position(begin, None if reading.stopping is None else reading.stopping.find_stop(partition, self))

    def _check_in_range(self, partition: KafkaTopicPartition, offset: int) -> None:
        try:
            first, end = self._range(partition)
        except self._kafka.KafkaException as error:
            if is_missing(error.args[0]):
                self._check_exist([partition])
            raise
        if not first <= offset <= end:
            raise KafkaOffsetsLost(partition.topic, partition.partition, offset, first, end)

    def _ask(self, question: Callable[..., Any], *about: Any, tries: int = _TRIES) -> Any:
        """Ask the brokers, several times if they are away. The client reports the reason only while it is polled."""
        for left in reversed(range(tries)):
            try:
                return question(*about, timeout=_ASK_S)
            except self._kafka.KafkaException as error:
                self._sort(self._consumer.consume(PULL, 0))
                self._errors.check()
                if not left or is_permanent(error.args[0]) or is_missing(error.args[0]):
                    raise

    # ---------------------------------------------------------------------------------------------- offsets

    def first(self, partition: KafkaTopicPartition) -> int:
        return self._range(partition)[0]

    def end(self, partition: KafkaTopicPartition) -> int:
        return self._range(partition)[1]

    def _range(self, partition: KafkaTopicPartition) -> tuple[int, int]:
        first, end = self._ask(self._consumer.get_watermark_offsets, self._place_of(partition))
        return first, end

    def committed(self, partition: KafkaTopicPartition) -> int | None:
        if "group.id" not in self._reading.properties:
            return None
        (found,) = self._ask(self._consumer.committed, [self._place_of(partition)])
        return found.offset if found.offset >= 0 else None

    def at_time(self, partition: KafkaTopicPartition, timestamp_ms: int) -> int | None:
        (found,) = self._ask(self._consumer.offsets_for_times, [self._place_of(partition, timestamp_ms)])
        return found.offset if found.offset >= 0 else None

    def _place_of(self, partition: KafkaTopicPartition, offset: int = 0) -> Any:
        return self._kafka.TopicPartition(partition.topic, partition.partition, offset)

    # --------------------------------------------------------------------------------------------- messages

    def pull(self, *, behind: bool) -> None:
        """Move fetched messages to their readers. Wait a little if messages are known to come (`behind`)."""
        most = self._reading.pull
        if self.buffered >= most:
            return  # the messages are of other partitions, whose readers take them first
        messages = self._consumer.consume(most, 0)
        if not messages and behind and not self._is_quiet:
            message = self._consumer.poll(self._patience_s)  # returns at the first message, unlike consume()
            messages = [] if message is None else [message, *self._consumer.consume(most, 0)]
            self._is_quiet = not messages
        if messages:
            self._is_quiet = False
            self._sort(messages)
        self._errors.check()
        if self._may_be_gone:
            self._may_be_gone = False
            self._check_exist([reader.partition for reader in self._all_readers()])

    def _sort(self, messages: list[Any]) -> None:  # hot
        good = [message for message in messages if message.error() is None]
        if self._only_reader is not None:
            self._only_reader.buffer += good
        elif len(self._readers) == 1:  # most jobs have only one topic, whose name is then not asked for per message
            (of_topic,) = self._readers.values()
            for message in good:
                of_topic[message.partition()].buffer.append(message)
        else:
            readers = self._readers
            for message in good:
                readers[message.topic()][message.partition()].buffer.append(message)
        if good:
            self.buffered += len(good)
            self._errors.recovered()
        if len(good) < len(messages):
            for message in messages:
                if message.error() is not None:
                    self._handle(message)

    def _all_readers(self) -> list[PartitionReader]:
        return [reader for of_topic in self._readers.values() for reader in of_topic.values()]

    def _handle(self, message: Any) -> None:
        """Handle an event that the consumer reports between messages: the end of a partition, or an error."""
        error = message.error()
        reader = self._readers.get(message.topic(), {}).get(message.partition())
        if error.code() == self._kafka.KafkaError._PARTITION_EOF:
            if reader is not None:
                reader.end_offset = message.offset()
        elif error.name() in ("_AUTO_OFFSET_RESET", "OFFSET_OUT_OF_RANGE") and reader is not None:
            raise self._offsets_lost(reader)
        else:
            self._report(error)

    def _report(self, error: Any) -> None:
        """Take an error from the client; called while the consumer is polled."""
        if is_missing(error):
            self._may_be_gone = True
        else:
            self._errors.report(error)

    def _offsets_lost(self, reader: PartitionReader) -> KafkaOffsetsLost:
        topic, number = reader.partition.topic, reader.partition.partition
        try:
            first, end = self._range(reader.partition)
        except self._kafka.KafkaException:  # the range only helps the reader of the message, and can be left out
            return KafkaOffsetsLost(topic, number, reader.fetched_offset, None, None)
        return KafkaOffsetsLost(topic, number, reader.fetched_offset, first, end)

    def _check_exist(self, partitions: Sequence[KafkaTopicPartition]) -> None:
        """Raise if a partition no longer exists. Brokers also report that temporarily, while a leader changes."""
        try:
            names = sorted({each.topic for each in partitions})
            topics = describe(self._consumer, names, timeout=_ASK_S)
        except self._kafka.KafkaException as error:
            log.warning("looking for partitions failed and will be retried: %s", error.args[0].str())
            self._may_be_gone = True
            return
        for partition in partitions:
            topics.check_present(partition)

    # -------------------------------------------------------------------------------------------------- end

    def checkpoint_completed(self, positions: Mapping[str, Any]) -> None:
        if not self._reading.commits:
            return
        places = []
        for split_id, position in positions.items():
            topic, _, number = split_id.rpartition("-")
            places.append(self._kafka.TopicPartition(topic, int(number), Position(*position).next_offset))
        try:
            self._consumer.commit(offsets=places, asynchronous=True)
        except self._kafka.KafkaException as error:  # the job's positions are in its checkpoint
            log.warning("offsets were not committed to the group: %s", error.args[0].str())

    def remove(self, reader: PartitionReader) -> None:
        """Forget a reader and stop fetching its partition."""
        readers, number = self._readers.get(reader.partition.topic, {}), reader.partition.partition
        if readers.get(number) is reader:
            del readers[number]
            self._only_reader = None
            self.buffered -= len(reader.buffer)
            self._consumer.incremental_unassign([self._place_of(reader.partition)])

    def close(self) -> None:
        self._readers.clear()
        self._consumer.close()


class PartitionReader(SplitReader):
    """Reads one partition."""

    def __init__(
        self,
        connection: KafkaConnection,
        partition: KafkaTopicPartition,
        position: Position,
        decode: Callable[[Sequence[Any]], Decoded],
    ) -> None:
        self.partition = partition
        self.buffer: list[Any] = []
        self.end_offset = -1  # the end of the partition when the consumer last reached it
        self._connection = connection
        self._next = position.next_offset
        self._stop = position.stop_offset
        self._decode = decode
        self._finished = self._stop is not None and self._next >= self._stop

    @property
    def fetched_offset(self) -> int:
        """The offset after the messages that were fetched so far."""
        return self.buffer[-1].offset() + 1 if self.buffer else self._next

    def read(self, max_records: int) -> Batch:
        if self._finished:
            return Batch([])
        if not self.buffer:
            self._connection.pull(behind=self.behind)
        messages = self._take(max_records)
        if not messages:
            self._pass_gap()
            return Batch([])
        self._next = messages[-1].offset() + 1
        if self._stop is not None and self._next >= self._stop:
            self._finished = True
            messages = [message for message in messages if message.offset() < self._stop]
            self._next = self._stop
        batch, ended = self._decode(messages)
        self._finished = self._finished or ended
        return batch

    def _take(self, max_records: int) -> list[Any]:
        taken = self.buffer[:max_records]
        if len(taken) == len(self.buffer):
            self.buffer = []
        else:
            del self.buffer[:max_records]
        self._connection.buffered -= len(taken)
        return taken

    def _pass_gap(self) -> None:
        """Advance over offsets without messages for this reader: transaction marks and aborted messages."""
        self._next = max(self._next, self.end_offset)
        self._finished = self._stop is not None and self._next >= self._stop

    def position(self) -> tuple[int, int | None]:
        return (self._next, self._stop)

    @property
    def finished(self) -> bool:
        return self._finished

    @property
    def behind(self) -> bool:
        return self.end_offset < self._next and not self._finished

    def close(self) -> None:
        self._connection.remove(self)


class LoneReader(SplitReader):
    """A reader with a consumer of its own."""

    def __init__(self, connection: KafkaConnection, split: Split, position: Any | None) -> None:
        self._connection = connection
        try:
            self._reader = connection.create_reader(split, position)
        except BaseException:
            connection.close()
            raise

    def read(self, max_records: int) -> Batch:
        return self._reader.read(max_records)

    def position(self) -> Any:
        return self._reader.position()

    @property
    def finished(self) -> bool:
        return self._reader.finished

    @property
    def behind(self) -> bool:
        return self._reader.behind

    def close(self) -> None:
        self._connection.close()


def is_missing(error: Any) -> bool:
    """Return whether an error says that a topic or partition does not exist."""
    return error.name() in ("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION", "UNKNOWN_TOPIC_ID")


def _note_commit(error: Any, places: Any) -> None:
    if error is not None:
        log.warning("offsets were not committed to the group: %s", error.str())
