"""The reader of a queue recognizes repeated messages by their ids, across sessions and restores; without a server."""

from __future__ import annotations

from collections import deque

import pytest

from ekorn.clock import ManualClock
from ekorn.common import SimpleStringSchema
from ekorn.connectors.rabbitmq.queue_consumer import Delivery
from ekorn.connectors.rabbitmq.queue_source import QueueReader, RabbitQueue
from ekorn.datastream.connectors.rabbitmq import RMQConnectionConfig
from ekorn.errors import MalformedRecordError

CONFIG = RMQConnectionConfig.Builder().set_host("h").set_user_name("u").set_password("p").build()
HOUR_MS = 3_600_000


class UntilEnd(SimpleStringSchema):
    def is_end_of_stream(self, next_element):
        return next_element == "end"


class Consumer:
    """What a reader needs of a consumer."""

    def __init__(self):
        self.waiting: deque[Delivery] = deque()
        self.session: str | None = "s1"
        self.confirmed = ("", 0)

    def check(self):
        pass

    def deliver(self, *messages, session=None):
        """Deliver messages, each a pair of id and body; tags count up in each session."""
        if session is not None:
            self.waiting.clear()
            self.session = session
            self._tag = 0
        for found, body in messages:
            self._tag = getattr(self, "_tag", 0) + 1
            assert self.session is not None
            self.waiting.append(Delivery(self.session, self._tag, found, body.encode()))


@pytest.fixture
def clock():
    return ManualClock(1_000)


def reader_of(consumer, position=None, *, ids=True, clock=None):
    return QueueReader(RabbitQueue(CONFIG, "q", UntilEnd(), ids), consumer, position, clock)


def test_a_repeated_id_is_passed_over_and_acknowledged_again():
    consumer = Consumer()
    reader = reader_of(consumer)
    consumer.deliver(("a", "1"), ("b", "2"), ("a", "1 again"), ("c", "3"))
    assert reader.read(2).values == ["1", "2"]
    assert reader.position()[:3] == ["s1", 2, ["a", "b"]]
    assert reader.read(10).values == ["3"]
    assert reader.position()[:3] == ["s1", 4, ["b", "a", "c"]]


def test_ids_are_forgotten_once_their_acknowledgement_is_confirmed():
    consumer = Consumer()
    reader = reader_of(consumer)
    consumer.deliver(("a", "1"), ("b", "2"), ("c", "3"))
    reader.read(10)
    consumer.confirmed = ("s1", 2)
    assert reader.position()[2] == ["c"]
    consumer.confirmed = ("another session", 99)
    assert reader.position()[2] == ["c"]


def test_a_restored_reader_passes_over_what_the_checkpoint_covers(clock):
    consumer = Consumer()
    first = reader_of(consumer, clock=clock)
    consumer.deliver(("a", "1"), ("b", "2"))
    first.read(10)
    saved = first.position()
    consumer.deliver(("c", "lost with the attempt"))
    first.read(10)
    restored = reader_of(consumer, saved, clock=clock)
    consumer.deliver(("a", "1"), ("b", "2"), ("c", "3"), session="s2")
    assert restored.read(10).values == ["3"]
    assert restored.position() == ["s2", 3, ["a", "b", "c"], []]


def test_a_lost_connection_is_like_a_restore(clock):
    consumer = Consumer()
    reader = reader_of(consumer, clock=clock)
    consumer.deliver(("a", "1"), ("b", "2"))
    assert reader.read(1).values == ["1"]
    old = consumer.waiting.copy()
    consumer.deliver(("a", "1"), ("b", "2"), session="s2")
    consumer.waiting.extendleft(reversed(old))  # a message of the old session that was being added meanwhile
    assert reader.read(10).values == ["2"]
    consumer.session = None
    assert reader.position()[0] == "s2"


def test_ids_of_earlier_sessions_are_kept_for_an_hour(clock):
    consumer = Consumer()
    first = reader_of(consumer, clock=clock)
    consumer.deliver(("a", "1"), ("b", "2"))
    first.read(10)
    second = reader_of(consumer, first.position(), clock=clock)
    clock.advance(HOUR_MS - 1)
    third = reader_of(consumer, second.position(), clock=clock)
    consumer.deliver(("a", "1"), session="s3")
    assert third.read(10).values == []
    clock.advance(1)
    assert third.position()[2:] == [["a"], []]
    consumer.deliver(("b", "2"))
    assert third.read(10).values == ["2"]


def test_without_ids_every_message_is_a_record():
    consumer = Consumer()
    reader = reader_of(consumer, ids=False)
    consumer.deliver((None, "1"), ("a", "2"), ("a", "3"))
    assert reader.read(10).values == ["1", "2", "3"]
    assert reader.position() == ["s1", 3, [], []]


def test_a_message_without_an_id_is_malformed():
    consumer = Consumer()
    reader = reader_of(consumer)
    consumer.deliver(("a", "1"), (None, "2"), ("", "3"), ("b", "4"))
    batch = reader.read(10)
    assert batch.values == ["1", "4"] and [each.content for each in batch.malformed] == [b"2", b"3"]
    assert isinstance(batch.malformed[0].error, MalformedRecordError)
    assert "a message of queue 'q': it has no correlation id" in str(batch.malformed[0].error)
    assert reader.position()[1] == 4


def test_the_schema_ends_the_queue_and_what_follows_stays_unread():
    consumer = Consumer()
    reader = reader_of(consumer)
    consumer.deliver(("a", "1"), ("b", "end"), ("c", "2"))
    assert reader.read(10).values == ["1"] and reader.finished
    assert reader.read(10).values == [] and reader.position()[1] == 2


def test_one_subtask_reads_with_ids_and_all_of_them_without():
    with_ids, without = (RabbitQueue(CONFIG, "q", UntilEnd(), ids) for ids in (True, False))
    assert [split.id for split in with_ids.discover_splits(3)] == ["q-0"] and with_ids.discovery_interval_ms is None
    assert [split.id for split in without.discover_splits(3)] == ["q-0", "q-1", "q-2"]
    assert [without.owner(f"q-{n}", 2) for n in range(3)] == [0, 1, 0] and without.discovery_interval_ms is not None
    assert with_ids.ends and not RabbitQueue(CONFIG, "q", SimpleStringSchema(), True).ends
