"""Where the source starts and stops in each partition."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from ekorn.errors import ConfigurationError

__all__ = ["KafkaOffsetResetStrategy", "KafkaOffsetsInitializer", "KafkaTopicPartition"]


@dataclass(frozen=True, slots=True)
class KafkaTopicPartition:
    """A partition of a topic."""

    topic: str
    partition: int

    def __post_init__(self) -> None:
        if not isinstance(self.topic, str) or not self.topic:
            raise TypeError(f"KafkaTopicPartition() takes the name of a topic, got {self.topic!r}")
        if isinstance(self.partition, bool) or not isinstance(self.partition, int) or self.partition < 0:
            raise ValueError(f"KafkaTopicPartition() takes the number of a partition, from 0, got {self.partition!r}")

    def __str__(self) -> str:
        return f"partition {self.partition} of topic {self.topic!r}"


class KafkaOffsetResetStrategy(enum.Enum):
    """The start of a partition whose offset is unknown or out of range at the first start."""

    LATEST = 0
    EARLIEST = 1
    NONE = 2
    """Fail the job."""


class OffsetLookup(Protocol):
    """Looks up offsets of a partition."""

    def first(self, partition: KafkaTopicPartition) -> int:
        """Return the offset of the oldest record."""
        ...

    def end(self, partition: KafkaTopicPartition) -> int:
        """Return the offset that the next record will have."""
        ...

    def committed(self, partition: KafkaTopicPartition) -> int | None:
        """Return the offset that the group committed."""
        ...

    def at_time(self, partition: KafkaTopicPartition, timestamp_ms: int) -> int | None:
        """Return the offset of the first record with that timestamp or a later one."""
        ...


class KafkaOffsetsInitializer(ABC):
    """Chooses the offsets at which a source starts or stops.

    Starting offsets count for the partitions that exist when the job starts without a checkpoint. Partitions that
    appear later are read from their first record.
    """

    @staticmethod
    def earliest() -> KafkaOffsetsInitializer:
        """Use the oldest record."""
        return _Reset(KafkaOffsetResetStrategy.EARLIEST)

    @staticmethod
    def latest() -> KafkaOffsetsInitializer:
        """Use the end of the partition."""
        return _Reset(KafkaOffsetResetStrategy.LATEST)

    @staticmethod
    def committed_offsets(
        offset_reset_strategy: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.NONE,
    ) -> KafkaOffsetsInitializer:
        """Use the offsets that the group committed; the strategy counts for partitions without any."""
        return _Given({}, _checked_strategy("committed_offsets", offset_reset_strategy))

    @staticmethod
    def timestamp(timestamp: int) -> KafkaOffsetsInitializer:
        """Use the first record with this timestamp, in milliseconds, or a later one; without any, the end."""
        if isinstance(timestamp, bool) or not isinstance(timestamp, int) or timestamp < 0:
            raise ValueError(f"timestamp() takes milliseconds since 1970, got {timestamp!r}")
        return _AtTime(timestamp)

    @staticmethod
    def offsets(
        offsets: Mapping[KafkaTopicPartition, int],
        offset_reset_strategy: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.EARLIEST,
    ) -> KafkaOffsetsInitializer:
        """Use these offsets; for other partitions the committed offsets, and for those without any the strategy."""
        for partition, offset in offsets.items():
            if not isinstance(partition, KafkaTopicPartition):
                raise TypeError(f"offsets() takes offsets by KafkaTopicPartition, got {partition!r}")
            if isinstance(offset, bool) or not isinstance(offset, int) or offset < 0:
                raise ValueError(f"offsets() takes offsets from 0, got {offset!r} for {partition}")
        return _Given(dict(offsets), _checked_strategy("offsets", offset_reset_strategy))

    needs_group: bool = False
    """Whether committed offsets may be looked up, which needs a group id."""

    @abstractmethod
    def find(self, partition: KafkaTopicPartition, lookup: OffsetLookup) -> int:
        """Return the offset at which a partition starts."""

    def find_stop(self, partition: KafkaTopicPartition, lookup: OffsetLookup) -> int:
        """Return the offset at which a partition stops, which may be one that no record has yet."""
        return self.find(partition, lookup)


@dataclass(frozen=True)
class _Reset(KafkaOffsetsInitializer):
    strategy: KafkaOffsetResetStrategy

    def find(self, partition: KafkaTopicPartition, lookup: OffsetLookup) -> int:
        return _by_strategy(self.strategy, partition, lookup, "no offset is known")

    def __repr__(self) -> str:
        return f"KafkaOffsetsInitializer.{self.strategy.name.lower()}()"


@dataclass(frozen=True)
class _AtTime(KafkaOffsetsInitializer):
    timestamp_ms: int

    def find(self, partition: KafkaTopicPartition, lookup: OffsetLookup) -> int:
        found = lookup.at_time(partition, self.timestamp_ms)
        return lookup.end(partition) if found is None else found

    def __repr__(self) -> str:
        return f"KafkaOffsetsInitializer.timestamp({self.timestamp_ms})"


@dataclass(frozen=True)
class _Given(KafkaOffsetsInitializer):
    given: Mapping[KafkaTopicPartition, int]
    strategy: KafkaOffsetResetStrategy

    @property
    def needs_group(self) -> bool:  # type: ignore[override]
        return not self.given

    def find(self, partition: KafkaTopicPartition, lookup: OffsetLookup) -> int:
        offset = self.given.get(partition)
        if offset is None:
            offset = lookup.committed(partition)
        if offset is None:
            return _by_strategy(
                self.strategy, partition, lookup, "the group has committed no offset, and none was given"
            )
        first, end = lookup.first(partition), lookup.end(partition)
        if first <= offset <= end:
            return offset
        # Flink: the client applies the strategy to offsets that are out of range, too.
        found = f"offset {offset} is out of range: the partition holds the offsets from {first} up to {end}"
        return _by_strategy(self.strategy, partition, lookup, found)

    def find_stop(self, partition: KafkaTopicPartition, lookup: OffsetLookup) -> int:
        offset = self.given.get(partition)
        return self.find(partition, lookup) if offset is None else offset

    def __repr__(self) -> str:
        if not self.given:
            return f"KafkaOffsetsInitializer.committed_offsets({self.strategy})"
        return f"KafkaOffsetsInitializer.offsets({dict(self.given)!r}, {self.strategy})"


def _by_strategy(
    strategy: KafkaOffsetResetStrategy, partition: KafkaTopicPartition, lookup: OffsetLookup, found: str
) -> int:
    match strategy:
        case KafkaOffsetResetStrategy.EARLIEST:
            return lookup.first(partition)
        case KafkaOffsetResetStrategy.LATEST:
            return lookup.end(partition)
        case KafkaOffsetResetStrategy.NONE:
            raise ConfigurationError(
                f"there is no offset to start from for {partition}: {found}; choose a KafkaOffsetResetStrategy "
                f"other than NONE, or other offsets"
            )


def _checked_strategy(call: str, strategy: KafkaOffsetResetStrategy) -> KafkaOffsetResetStrategy:
    if not isinstance(strategy, KafkaOffsetResetStrategy):
        raise TypeError(f"{call}() takes a KafkaOffsetResetStrategy, got {strategy!r}")
    return strategy
