"""Creates, fills and reads topics of the test broker, with confluent-kafka alone: none of the code under test."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from tests.servers.kafka.broker import Broker
from tests.servers.kafka.cluster import Cluster


def new_topic(kafka: Broker | Cluster, partitions: int = 1, prefix: str = "t", **settings: str) -> str:
    """Create a topic with a name of its own."""
    topic = f"{prefix}-{uuid.uuid4().hex[:8]}"
    create_topic(kafka, topic, partitions, **settings)
    return topic


def create_topic(kafka: Broker | Cluster, topic: str, partitions: int = 1, **settings: str) -> None:
    """Create a topic."""
    admin = _admin(kafka)  # in a variable: a client that is collected gives up its requests
    admin.create_topics([NewTopic(topic, partitions, kafka.replicas, config=settings)])[topic].result()


def add_partitions(kafka: Broker | Cluster, topic: str, total: int) -> None:
    admin = _admin(kafka)
    admin.create_partitions([NewPartitions(topic, total)])[topic].result()


def delete_topic(kafka: Broker | Cluster, topic: str) -> None:
    admin = _admin(kafka)
    admin.delete_topics([topic])[topic].result()


def delete_records(kafka: Broker | Cluster, topic: str, partition: int, before: int) -> None:
    """Let the records before an offset age out."""
    admin, place = _admin(kafka), TopicPartition(topic, partition, before)
    admin.delete_records([place])[place].result()


def produce(kafka: Broker | Cluster, topic: str, values: Iterable[Any], partition: int = 0, **more: Any) -> None:
    """Write values; texts are encoded. `more` are arguments of `Producer.produce`."""
    producer = Producer({"bootstrap.servers": kafka.servers, "linger.ms": 1})
    for value in values:
        producer.produce(topic, value, partition=partition, **more)
    assert producer.flush(30) == 0


def consume(kafka: Broker | Cluster, topic: str, isolation: str = "read_committed") -> list[Any]:
    """Return the messages of a topic up to its present end, partition by partition."""
    return _consume(kafka.servers, topic, isolation)


def lines_by_partition(servers: str, topic: str) -> list[list[str]]:
    """Return the committed values of each partition of a topic, as text and in their order."""
    messages = _consume(servers, topic, "read_committed")
    by_partition: dict[int, list[str]] = {}
    for message in messages:
        by_partition.setdefault(message.partition(), []).append(message.value().decode())
    return list(by_partition.values())


def wait_until_nothing_is_open(servers: str, topic: str, within_s: float = 60.0) -> None:
    """Wait until all transactions of a topic have ended. A commit is answered before its records are visible."""
    deadline = time.monotonic() + within_s
    while _ends(servers, topic, "read_committed") != _ends(servers, topic, "read_uncommitted"):
        assert time.monotonic() < deadline, f"an open transaction holds back the readers of {topic}"
        time.sleep(0.05)


def wait_until_the_first_transaction_is_aborted(servers: str, topic: str, within_s: float = 60.0) -> None:
    """Wait until the broker has aborted the transaction that holds the first record of a topic."""
    deadline = time.monotonic() + within_s
    while not any(_ends(servers, topic, "read_committed")):  # an open transaction holds the readers back at offset 0
        assert time.monotonic() < deadline, f"the transaction in {topic} is still open"
        time.sleep(0.05)


def _ends(servers: str, topic: str, isolation: str) -> list[int]:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": uuid.uuid4().hex, "isolation.level": isolation})
    partitions = sorted(consumer.list_topics(topic, timeout=60).topics[topic].partitions)
    ends = [consumer.get_watermark_offsets(TopicPartition(topic, each), timeout=60)[1] for each in partitions]
    consumer.close()
    return ends


def _consume(servers: str, topic: str, isolation: str) -> list[Any]:
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": uuid.uuid4().hex,
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,
        }
    )
    left = set(consumer.list_topics(topic, timeout=60).topics[topic].partitions)
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in left])
    messages = []
    while left:
        message = consumer.poll(60)
        assert message is not None, f"partitions {left} of {topic} do not come to their ends"
        if message.error() is None:
            messages.append(message)
        else:
            assert message.error().name() == "_PARTITION_EOF", message.error()
            left.discard(message.partition())
    consumer.close()
    return sorted(messages, key=lambda each: (each.partition(), each.offset()))


def values(kafka: Broker | Cluster, topic: str, isolation: str = "read_committed") -> list[str]:
    """Return the values of a topic as text."""
    return [message.value().decode() for message in consume(kafka, topic, isolation)]


def committed_offset(kafka: Broker | Cluster, group: str, topic: str, partition: int = 0) -> int:
    """Return the offset that a group committed; -1001 if none."""
    consumer = Consumer({"bootstrap.servers": kafka.servers, "group.id": group})
    (place,) = consumer.committed([TopicPartition(topic, partition)], timeout=60)
    consumer.close()
    return place.offset


def _admin(kafka: Broker | Cluster) -> AdminClient:
    return AdminClient({"bootstrap.servers": kafka.servers})
