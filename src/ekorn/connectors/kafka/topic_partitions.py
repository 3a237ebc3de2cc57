"""The partitions that a source reads: of named topics, of topics by pattern, or given one by one."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ekorn.connectors.kafka.offsets import KafkaTopicPartition
from ekorn.errors import KafkaError, KafkaPartitionLost


@dataclass(frozen=True)
class Topics:
    """Topics that exist, each with the number of its partitions, and the topics that were asked about."""

    partition_counts: Mapping[str, int]
    asked: Sequence[str] | None  # None: all topics were asked about

    def check_present(self, partition: KafkaTopicPartition) -> None:
        """Raise if a partition no longer exists. Topics that were not asked about are not checked."""
        if self.asked is not None and partition.topic not in self.asked:
            return
        count = self.partition_counts.get(partition.topic)
        if count is None or partition.partition >= count:
            raise KafkaPartitionLost(partition.topic, partition.partition, count)


def describe(consumer: Any, names: Sequence[str] | None, *, timeout: float) -> Topics:
    """Ask the brokers for topics by name, or for all."""
    found: dict[str, int] = {}
    for answer in (
        [consumer.list_topics(name, timeout=timeout) for name in names]
        if names is not None
        else [consumer.list_topics(timeout=timeout)]
    ):
        for name, topic in answer.topics.items():
            if topic.error is None:
                found[name] = len(topic.partitions)
            elif topic.error.name() not in ("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC"):
                raise KafkaError(f"cannot read topic {name!r}", topic.error.str())
    return Topics(found, names)


class PartitionChoice(ABC):
    """Chooses partitions among those that exist."""

    @abstractmethod
    def topics_now(self, consumer: Any, *, timeout: float) -> Topics:
        """Ask the brokers for the topics of this choice."""

    @abstractmethod
    def partitions(self, topics: Topics) -> list[KafkaTopicPartition]:
        """Return the partitions, in the order of topics and numbers."""


@dataclass(frozen=True)
class NamedTopics(PartitionChoice):
    """All partitions of named topics, which must exist."""

    names: tuple[str, ...]

    def topics_now(self, consumer: Any, *, timeout: float) -> Topics:
        return describe(consumer, self.names, timeout=timeout)

    def partitions(self, topics: Topics) -> list[KafkaTopicPartition]:
        missing = [name for name in self.names if name not in topics.partition_counts]
        if missing:
            raise KafkaError(f"cannot read topic {missing[0]!r}", "it does not exist; create it before the job starts")
        return _all_of(topics, self.names)


@dataclass(frozen=True)
class TopicPattern(PartitionChoice):
    """All partitions of the topics whose whole name matches a pattern."""

    pattern: str

    def topics_now(self, consumer: Any, *, timeout: float) -> Topics:
        return describe(consumer, None, timeout=timeout)

    def partitions(self, topics: Topics) -> list[KafkaTopicPartition]:
        return _all_of(topics, sorted(name for name in topics.partition_counts if re.fullmatch(self.pattern, name)))


@dataclass(frozen=True)
class GivenPartitions(PartitionChoice):
    """Partitions given one by one, which must exist."""

    given: tuple[KafkaTopicPartition, ...]

    def topics_now(self, consumer: Any, *, timeout: float) -> Topics:
        return describe(consumer, sorted({each.topic for each in self.given}), timeout=timeout)

    def partitions(self, topics: Topics) -> list[KafkaTopicPartition]:
        for each in self.given:
            if each.partition >= topics.partition_counts.get(each.topic, 0):
                raise KafkaError(f"cannot read {each}", "it does not exist; create it before the job starts")
        return sorted(self.given, key=lambda each: (each.topic, each.partition))


def _all_of(topics: Topics, names: Sequence[str]) -> list[KafkaTopicPartition]:
    counts = topics.partition_counts
    return [KafkaTopicPartition(name, number) for name in names for number in range(counts[name])]
