"""`KafkaSource.builder()`: what it refuses, and how partitions and positions are kept; without a broker."""

import pytest

from ekorn.common import SimpleStringSchema, Types
from ekorn.connectors.kafka.consuming import Position
from ekorn.connectors.kafka.offsets import KafkaTopicPartition
from ekorn.connectors.kafka.topic_partitions import GivenPartitions, NamedTopics, TopicPattern, Topics
from ekorn.datastream.connectors.kafka import KafkaOffsetsInitializer, KafkaSource
from ekorn.errors import ConfigurationError, KafkaError, KafkaOffsetsLost, KafkaPartitionLost, ProgramWarning
from ekorn.functions.source_contract import Boundedness


def builder():
    return (
        KafkaSource.builder()
        .set_bootstrap_servers("127.0.0.1:1")
        .set_topics("in")
        .set_value_only_deserializer(SimpleStringSchema())
    )


def test_a_source_has_no_end_unless_it_is_given_one():
    source = builder().build()
    assert source.boundedness is Boundedness.CONTINUOUS_UNBOUNDED
    assert (source.ends, source.discovery_interval_ms) == (False, 300_000)
    source = builder().set_bounded(KafkaOffsetsInitializer.latest()).build()
    assert source.boundedness is Boundedness.BOUNDED
    assert (source.ends, source.discovery_interval_ms) == (True, None)
    source = builder().set_unbounded(KafkaOffsetsInitializer.latest()).build()
    assert source.boundedness is Boundedness.CONTINUOUS_UNBOUNDED
    assert (source.ends, source.discovery_interval_ms) == (True, None)
    assert source.get_produced_type() == Types.STRING()


def test_the_interval_of_discovery_is_a_property():
    assert builder().set_property("partition.discovery.interval.ms", "1000").build().discovery_interval_ms == 1000
    assert builder().set_property("partition.discovery.interval.ms", "-1").build().discovery_interval_ms is None


def test_a_bounded_source_turns_discovery_off_and_says_so():
    bounded = builder().set_bounded(KafkaOffsetsInitializer.latest())
    with pytest.warns(ProgramWarning, match=r"partition\.discovery\.interval\.ms=5 has no effect on a bounded Kafka"):
        source = bounded.set_property("partition.discovery.interval.ms", "5").build()
    assert source.discovery_interval_ms is None


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda b: b.set_property("enable.auto.commit", "true"), "offsets are committed when a checkpoint completes"),
        (lambda b: b.set_starting_offsets(KafkaOffsetsInitializer.committed_offsets()), "call set_group_id"),
        (lambda b: b.set_topic_pattern("in.*"), "call only one of"),
        (lambda b: b.set_property("partition.discovery.interval.ms", "soon"), "in milliseconds"),
        (lambda b: b.set_property("no.such", "1"), "no.such"),
        (
            lambda b: b.set_property("partition.discovery.interval.ms", "5").set_unbounded(
                KafkaOffsetsInitializer.latest()
            ),
            "stopping offsets",
        ),
    ],
)
def test_a_builder_refuses_what_cannot_be(change, says):
    with pytest.raises(ConfigurationError, match=says):
        change(builder()).build()


def test_servers_topics_and_a_deserializer_are_needed():
    with pytest.raises(ConfigurationError, match="set_topics"):
        KafkaSource.builder().build()
    with pytest.raises(ConfigurationError, match="set_value_only_deserializer"):
        KafkaSource.builder().set_topics("in").build()
    with pytest.raises(ConfigurationError, match="set_bootstrap_servers"):
        KafkaSource.builder().set_topics("in").set_value_only_deserializer(SimpleStringSchema()).build()


def test_a_property_without_effect_is_warned_of():
    with pytest.warns(ProgramWarning, match="auto.offset.reset has no effect"):
        builder().set_property("auto.offset.reset", "earliest").build()


def test_a_source_shows_no_secrets():
    source = builder().set_property("sasl.password", "hush").build()
    assert "hush" not in repr(source)
    assert "'sasl.password': '******'" in repr(source)


@pytest.mark.parametrize("parallelism", [1, 2, 3, 5])
def test_the_partitions_of_a_topic_are_spread_evenly(parallelism):
    source = builder().build()
    owners = [source.owner(f"a-b-{number}", parallelism) for number in range(parallelism * 4)]
    assert sorted(owners) == sorted(list(range(parallelism)) * 4)


def test_positions_have_the_form_that_checkpoints_hold():
    assert tuple(Position(5, None)) == (5, None)
    assert Position(*(5, 9)) == Position(next_offset=5, stop_offset=9)


def test_partitions_are_chosen_among_those_that_exist():
    topics = Topics({"a": 2, "ab": 1, "c": 1}, None)
    chosen = [(p.topic, p.partition) for p in TopicPattern("a.*").partitions(topics)]
    assert chosen == [("a", 0), ("a", 1), ("ab", 0)]
    assert [p.topic for p in NamedTopics(("c", "a")).partitions(topics)] == ["c", "a", "a"]
    with pytest.raises(KafkaError, match="cannot read topic 'x': it does not exist"):
        NamedTopics(("a", "x")).partitions(topics)
    with pytest.raises(KafkaError, match="cannot read partition 2 of topic 'a': it does not exist"):
        GivenPartitions((KafkaTopicPartition("a", 2),)).partitions(topics)


def test_a_partition_that_is_gone_is_told_from_one_that_was_not_asked_about():
    with pytest.raises(KafkaPartitionLost, match="the topic was deleted"):
        Topics({}, ["a"]).check_present(KafkaTopicPartition("a", 0))
    with pytest.raises(KafkaPartitionLost, match="the topic has 1 partitions now"):
        Topics({"a": 1}, None).check_present(KafkaTopicPartition("a", 1))
    Topics({}, ["b"]).check_present(KafkaTopicPartition("a", 0))


def test_lost_offsets_are_told_with_the_range_that_is_left():
    assert "2 records were deleted by retention" in str(KafkaOffsetsLost("a", 0, 3, 5, 10))
    assert "it holds the offsets from 5 up to 10." in str(KafkaOffsetsLost("a", 0, 12, 5, 10))
