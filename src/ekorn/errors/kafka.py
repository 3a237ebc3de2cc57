"""Errors of the Kafka source and sink."""

from __future__ import annotations

from ekorn.errors.base import EkornError, with_fields


class KafkaError(EkornError):
    """Kafka refused something, or did not answer in time: where, and what the client says. It holds no secrets."""

    def __str__(self) -> str:
        where, found = self.args
        return f"{where}: {found}"


@with_fields
class KafkaOffsetsLost(KafkaError):
    """The position of a source in a partition does not exist any more, or not yet."""

    retryable = False

    topic: str
    partition: int
    offset: int
    first: int | None
    end: int | None

    def __str__(self) -> str:
        topic, partition, offset, first, end = self.args
        held = "it does not hold that offset" if first is None else f"it holds the offsets from {first} up to {end}"
        if first is not None and offset < first:
            held += f"; {first - offset} records were deleted by retention before they were read"
        return (
            f"cannot read partition {partition} of topic {topic!r} at offset {offset}: {held}. Keep records longer "
            f"(retention.ms); to continue with what is left, start the source under a new uid, with starting offsets"
        )


@with_fields
class KafkaPartitionLost(KafkaError):
    """A partition that a source was reading is gone."""

    retryable = False

    topic: str
    partition: int
    partition_count: int | None

    def __str__(self) -> str:
        topic, partition, partition_count = self.args
        found = (
            "the topic was deleted" if partition_count is None else f"the topic has {partition_count} partitions now"
        )
        return (
            f"cannot read partition {partition} of topic {topic!r} any more: {found}. To continue with the remaining "
            f"topics, start the source under a new uid, with starting offsets"
        )


@with_fields
class KafkaTransactionLost(KafkaError):
    """A transaction that a checkpoint covers was not committed, and cannot be any more."""

    retryable = False

    transactional_id: str
    found: str
    age_s: int | None
    timeout_ms: int | None

    def __str__(self) -> str:
        transactional_id, found, age_s, timeout_ms = self.args
        age = "" if age_s is None else f" It was begun {age_s} s ago."
        limit = "" if timeout_ms is None else f" (now {timeout_ms} ms)"
        return (
            f"cannot commit the Kafka transaction {transactional_id!r}: {found}.{age} Its records are lost for readers "
            f"of committed records. Set the sink's property transaction.timeout.ms{limit}, and the brokers' "
            f"transaction.max.timeout.ms, above the longest outage plus the checkpoint interval; to write the "
            f"records again, restore an earlier checkpoint or savepoint"
        )
