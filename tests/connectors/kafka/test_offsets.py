"""Where a source starts and stops, by initializer; without a broker."""

import pickle

import pytest

from ekorn.datastream.connectors.kafka import KafkaOffsetResetStrategy, KafkaOffsetsInitializer, KafkaTopicPartition
from ekorn.errors import ConfigurationError

P = KafkaTopicPartition("t", 1)
EARLIEST, LATEST, NONE = (
    KafkaOffsetResetStrategy.EARLIEST,
    KafkaOffsetResetStrategy.LATEST,
    KafkaOffsetResetStrategy.NONE,
)


class Lookup:
    """A partition with the offsets 10 to 19, and a group that committed one offset, or none."""

    def __init__(self, committed=None):
        self._committed = committed

    def first(self, partition):
        return 10

    def end(self, partition):
        return 20

    def committed(self, partition):
        return self._committed

    def at_time(self, partition, timestamp_ms):
        return 15 if timestamp_ms <= 500 else None


@pytest.mark.parametrize(
    ("initializer", "committed", "expected"),
    [
        (KafkaOffsetsInitializer.earliest(), 15, 10),
        (KafkaOffsetsInitializer.latest(), 15, 20),
        (KafkaOffsetsInitializer.timestamp(500), None, 15),
        (KafkaOffsetsInitializer.timestamp(501), None, 20),
        (KafkaOffsetsInitializer.committed_offsets(), 15, 15),
        (KafkaOffsetsInitializer.committed_offsets(EARLIEST), None, 10),
        (KafkaOffsetsInitializer.committed_offsets(LATEST), None, 20),
        (KafkaOffsetsInitializer.committed_offsets(LATEST), 9, 20),  # aged out
        (KafkaOffsetsInitializer.offsets({P: 12}), 15, 12),
        (KafkaOffsetsInitializer.offsets({P: 20}), 15, 20),
        (KafkaOffsetsInitializer.offsets({P: 21}), 15, 10),
        (KafkaOffsetsInitializer.offsets({P: 3}, LATEST), 15, 20),
        (KafkaOffsetsInitializer.offsets({KafkaTopicPartition("t", 0): 12}), 15, 15),
        (KafkaOffsetsInitializer.offsets({KafkaTopicPartition("t", 0): 12}), None, 10),
    ],
)
def test_the_offset_of_a_partition(initializer, committed, expected):
    assert initializer.find(P, Lookup(committed)) == expected
    assert pickle.loads(pickle.dumps(initializer)) == initializer


def test_a_given_offset_to_stop_at_may_lie_in_the_future():
    assert KafkaOffsetsInitializer.offsets({P: 25}).find_stop(P, Lookup()) == 25
    assert KafkaOffsetsInitializer.latest().find_stop(P, Lookup()) == 20


@pytest.mark.parametrize(
    ("initializer", "committed", "says"),
    [
        (KafkaOffsetsInitializer.committed_offsets(), None, "the group has committed no offset"),
        (KafkaOffsetsInitializer.committed_offsets(), 9, "offset 9 is out of range: .* from 10 up to 20"),
        (KafkaOffsetsInitializer.offsets({P: 25}, NONE), None, "partition 1 of topic 't': offset 25 is out of range"),
    ],
)
def test_without_a_reset_strategy_a_missing_offset_is_an_error(initializer, committed, says):
    with pytest.raises(ConfigurationError, match=says):
        initializer.find(P, Lookup(committed))


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: KafkaOffsetsInitializer.timestamp(-1), ValueError),
        (lambda: KafkaOffsetsInitializer.timestamp("now"), ValueError),  # type: ignore[arg-type]
        (lambda: KafkaOffsetsInitializer.committed_offsets("earliest"), TypeError),  # type: ignore[arg-type]
        (lambda: KafkaOffsetsInitializer.offsets({("t", 0): 1}), TypeError),  # type: ignore[dict-item]
        (lambda: KafkaOffsetsInitializer.offsets({P: -1}), ValueError),
        (lambda: KafkaTopicPartition("t", -1), ValueError),
        (lambda: KafkaTopicPartition("", 0), TypeError),
    ],
)
def test_wrong_arguments_are_refused_at_the_call(call, error):
    with pytest.raises(error):
        call()
