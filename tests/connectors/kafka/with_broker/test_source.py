"""`KafkaSource` against a real broker: the contract of all sources, and what only Kafka does."""

import threading
import time
from contextlib import contextmanager

import pytest
from confluent_kafka import Producer

from ekorn.common import Duration, SimpleStringSchema, WatermarkStrategy
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.connectors.kafka import (
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaRecordDeserializationSchema,
    KafkaSource,
    KafkaTopicPartition,
)
from ekorn.datastream.functions import ProcessFunction
from ekorn.errors import ConfigurationError, KafkaError, KafkaOffsetsLost, KafkaPartitionLost
from ekorn.testing.kits import FindsNewInput, RefusesBadInput, SourceCase, SourceJob
from ekorn.testing.local_run import collect_locally, on_local_engine
from tests.servers.kafka.broker import PASSWORD, USER
from tests.servers.kafka.topics import (
    add_partitions,
    committed_offset,
    delete_records,
    delete_topic,
    new_topic,
    produce,
)

LATEST = KafkaOffsetsInitializer.latest()


def reading(kafka, *topics):
    return (
        KafkaSource.builder()
        .set_bootstrap_servers(kafka.servers)
        .set_topics(*topics)
        .set_value_only_deserializer(SimpleStringSchema())
    )


class TopicCase(SourceCase):
    """A topic of three partitions, one of them empty."""

    records = [f"{part}-{number}" for part, count in ((0, 25), (2, 40)) for number in range(count)]

    def __init__(self, kafka):
        self._kafka = kafka
        self._topic = new_topic(kafka, 3)
        for part in (0, 2):
            produce(kafka, self._topic, [r for r in self.records if r.startswith(f"{part}-")], part)

    def bounded(self):
        return reading(self._kafka, self._topic).set_bounded(LATEST).build()

    def unbounded(self):
        return reading(self._kafka, self._topic).build()

    def add_input(self):
        add_partitions(self._kafka, self._topic, 4)
        produce(self._kafka, self._topic, ["new 1", "new 2"], 3)
        produce(self._kafka, self._topic, ["new 3"], 0)
        return ["new 1", "new 2", "new 3"]

    def spoil(self):
        produce(self._kafka, self._topic, [None], 1, key="k")
        return KafkaError, "offset 0 of partition 1 of topic '.*': it is a tombstone"


class TestTopic(FindsNewInput, RefusesBadInput):
    step = 10

    @pytest.fixture
    def case(self, kafka):
        return TopicCase(kafka)


# ------------------------------------------------------------------------------------- where reading starts and stops


def read_all(source):
    return SourceJob(source, 1).read_all()


def test_starting_offsets_are_looked_up_at_the_broker(kafka):
    topic = new_topic(kafka)
    for number in range(6):
        produce(kafka, topic, [str(number)], timestamp=1_700_000_000_000 + number * 1000)
    group = f"g-{topic}"

    def from_(initializer):
        source = reading(kafka, topic).set_group_id(group).set_starting_offsets(initializer).set_bounded(LATEST).build()
        return read_all(source)

    assert from_(KafkaOffsetsInitializer.timestamp(1_700_000_003_000)) == ["3", "4", "5"]
    assert from_(KafkaOffsetsInitializer.timestamp(1_800_000_000_000)) == []
    assert from_(KafkaOffsetsInitializer.offsets({KafkaTopicPartition(topic, 0): 5})) == ["5"]
    assert from_(KafkaOffsetsInitializer.committed_offsets(KafkaOffsetResetStrategy.LATEST)) == []
    with pytest.raises(ConfigurationError, match="the group has committed no offset"):
        from_(KafkaOffsetsInitializer.committed_offsets())


def test_latest_waits_for_new_records_and_new_topics_of_a_pattern_are_read_from_their_first(kafka):
    prefix = new_topic(kafka)  # a name of this test's own
    topic = new_topic(kafka, prefix=prefix)
    produce(kafka, topic, ["old"])
    source = (
        KafkaSource.builder()
        .set_bootstrap_servers(kafka.servers)
        .set_topic_pattern(f"{prefix}-.+")
        .set_starting_offsets(LATEST)
        .set_value_only_deserializer(SimpleStringSchema())
        .build()
    )
    connection = source.connect(0)
    readers = [connection.create_reader(split, None) for split in connection.discover_splits(1, first=True)]
    later = new_topic(kafka, prefix=prefix)
    produce(kafka, later, ["first of a new topic"])
    produce(kafka, topic, ["new"])
    found = connection.discover_splits(1, first=False)
    assert [split.id for split in found] == sorted([f"{topic}-0", f"{later}-0"])
    readers += [connection.create_reader(split, None) for split in found if split.what[0] == later]
    records = read_until(readers, 2)
    connection.close()
    assert sorted(records) == ["first of a new topic", "new"]


def test_partitions_that_stop_early_leave_the_others_of_their_consumer_alone(kafka):
    topic = new_topic(kafka, 3)
    for partition in range(3):
        produce(kafka, topic, [f"{partition}-{number}" for number in range(3000)], partition)
    stops = {KafkaTopicPartition(topic, partition): stop for partition, stop in enumerate((10, 1500, 3000))}
    source = reading(kafka, topic).set_bounded(KafkaOffsetsInitializer.offsets(stops)).build()
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    records = collect_locally(env.from_source(source, WatermarkStrategy.no_watermarks(), "kafka"))
    expected = [f"{place.partition}-{number}" for place, stop in stops.items() for number in range(stop)]
    assert sorted(records) == sorted(expected)


def read_until(readers, count):
    records, deadline = [], time.monotonic() + 60
    while len(records) < count:
        records += [value for reader in readers for value in reader.read(100).values]
        assert time.monotonic() < deadline, records
    return records


def test_a_bounded_source_ends_behind_aborted_records_and_marks_of_transactions(kafka):
    topic = new_topic(kafka)
    producer = Producer({"bootstrap.servers": kafka.servers, "transactional.id": topic})
    producer.init_transactions(30)
    for value, ends in (("committed", producer.commit_transaction), ("aborted", producer.abort_transaction)):
        producer.begin_transaction()
        producer.produce(topic, value)
        producer.flush(30)
        ends(30)
    committed = reading(kafka, topic).set_property("isolation.level", "read_committed").set_bounded(LATEST).build()
    assert read_all(committed) == ["committed"]
    assert read_all(reading(kafka, topic).set_bounded(LATEST).build()) == ["committed", "aborted"]


class Whole(KafkaRecordDeserializationSchema):
    def deserialize(self, record):
        return None if record.value == b"skip" else record


def test_a_schema_of_records_gets_key_headers_timestamp_and_offset(kafka):
    topic = new_topic(kafka)
    produce(kafka, topic, [b"skip"])
    produce(kafka, topic, [b"v"], key=b"k", headers=[("h", b"1"), ("h", None)], timestamp=1234)
    produce(kafka, topic, [None], key=b"gone", timestamp=5)
    source = reading(kafka, topic).set_deserializer(Whole()).set_bounded(LATEST).build()
    assert read_all(source) == [
        (topic, 0, 1, 1234, b"k", b"v", (("h", b"1"), ("h", None))),
        (topic, 0, 2, 5, b"gone", None, ()),
    ]


# ------------------------------------------------------------------------------------------------ what goes wrong


def test_offsets_that_aged_out_before_a_restore_are_an_error_with_the_range_that_is_left(kafka):
    topic = new_topic(kafka)
    produce(kafka, topic, ["0", "1", "2", "3"])
    job = SourceJob(reading(kafka, topic).build(), 1)
    assert job.read(0, 1) == ["0"]
    delete_records(kafka, topic, 0, before=3)
    with pytest.raises(KafkaOffsetsLost, match=r"at offset 1: it holds the offsets from 3 up to 4; 2 records"):
        SourceJob(job.source, 1, job.snapshot())


def test_offsets_that_age_out_before_a_slow_reader_gets_to_them_are_an_error_and_not_a_jump(kafka):
    topic = new_topic(kafka)
    for number in range(12):  # each in a batch of its own
        produce(kafka, topic, [f"{number}".rjust(1000)])
    # The client fetches next to nothing ahead.
    little = {"queued.max.messages.kbytes": "1", "queued.min.messages": "1", "fetch.message.max.bytes": "1100"}
    job = SourceJob(reading(kafka, topic).set_properties(little).build(), 1)
    records = job.read(0, 1)
    delete_records(kafka, topic, 0, before=11)
    with pytest.raises(KafkaOffsetsLost, match=r"it holds the offsets from 11 up to 12; \d+ records were del"):
        for _ in range(100):
            records += job.read(0, 10)
    assert [int(record) for record in records] == list(range(len(records)))


def test_a_deleted_topic_is_an_error(kafka):
    topic = new_topic(kafka)
    produce(kafka, topic, ["0"])
    source = reading(kafka, topic).set_property("topic.metadata.propagation.max.ms", "100").build()
    connection = source.connect(0)
    (split,) = connection.discover_splits(1, first=True)
    reader = connection.create_reader(split, None)
    assert read_until([reader], 1) == ["0"]
    delete_topic(kafka, topic)
    with pytest.raises(KafkaPartitionLost, match="the topic was deleted"):
        read_until([reader], 1)
    with pytest.raises(KafkaPartitionLost, match="the topic was deleted"):
        source.create_reader(split, reader.position())
    connection.close()


def test_a_broker_that_is_away_for_a_while_is_waited_for(kafka):
    topic = new_topic(kafka)
    produce(kafka, topic, ["0"])
    connection = reading(kafka, topic).build().connect(0)
    (split,) = connection.discover_splits(1, first=True)
    reader = connection.create_reader(split, None)
    assert read_until([reader], 1) == ["0"]
    kafka.kill()
    for _ in range(20):
        assert reader.read(10).values == []
    assert connection.discover_splits(1, first=False) == []  # asked again at the next interval
    kafka.start()
    produce(kafka, topic, ["1"])
    assert read_until([reader], 1) == ["1"]
    connection.close()


def test_a_refused_login_fails_the_job_without_showing_the_password(kafka):
    topic = new_topic(kafka)
    source = secured(kafka, topic, "PLAIN", password="wrong-canary").set_bounded(LATEST).build()
    with pytest.raises(KafkaError, match="_AUTHENTICATION") as caught:
        read_all(source)
    assert "wrong-canary" not in str(caught.value)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_topics_are_read_over_tls_with_a_login(kafka, mechanism):
    topic = new_topic(kafka)
    produce(kafka, topic, ["secured"])
    assert read_all(secured(kafka, topic, mechanism).set_bounded(LATEST).build()) == ["secured"]


def test_topics_are_read_with_a_client_certificate(kafka):
    topic = new_topic(kafka)
    produce(kafka, topic, ["certified"])
    builder = reading(kafka, topic).set_bootstrap_servers(kafka.certified).set_property("security.protocol", "SSL")
    for store, pem in (("truststore", kafka.certificate), ("keystore", kafka.client_certificate)):
        builder.set_property(f"ssl.{store}.type", "PEM").set_property(f"ssl.{store}.location", str(pem))
    assert read_all(builder.set_bounded(LATEST).build()) == ["certified"]


def secured(kafka, topic, mechanism, password=PASSWORD):
    """Build a source with the properties of Java's client."""
    module = "plain.Plain" if mechanism == "PLAIN" else "scram.Scram"
    return (
        reading(kafka, topic)
        .set_bootstrap_servers(kafka.secured)
        .set_property("security.protocol", "SASL_SSL")
        .set_property("sasl.mechanism", mechanism)
        .set_property(
            "sasl.jaas.config",
            f'org.apache.kafka.common.security.{module}LoginModule required username="{USER}" password="{password}";',
        )
        .set_property("ssl.truststore.type", "PEM")
        .set_property("ssl.truststore.location", str(kafka.certificate))
    )


# --------------------------------------------------------------------------------------------------------- in jobs


class Stamps(ProcessFunction):
    def process_element(self, value, ctx):
        yield value, ctx.timestamp()


def test_the_timestamps_of_messages_are_those_of_records(kafka):
    topic = new_topic(kafka)
    produce(kafka, topic, ["a"], timestamp=1000)
    produce(kafka, topic, ["b"], timestamp=2000)
    env = StreamExecutionEnvironment.get_execution_environment()
    source = reading(kafka, topic).set_bounded(LATEST).build()
    stream = env.from_source(source, WatermarkStrategy.for_monotonous_timestamps(), "kafka").process(Stamps())
    assert collect_locally(stream) == [("a", 1000), ("b", 2000)]


def test_offsets_are_committed_to_the_group_only_after_a_checkpoint(kafka):
    topic = new_topic(kafka, 2)
    produce(kafka, topic, ["a", "b", "c"])
    produce(kafka, topic, ["d"], 1)
    group = f"g-{topic}"
    source = reading(kafka, topic).set_group_id(group).build()
    connection = source.connect(0)
    readers = {s.id: connection.create_reader(s, None) for s in connection.discover_splits(1, first=True)}
    assert len(read_until(list(readers.values()), 4)) == 4
    assert committed_offset(kafka, group, topic) == -1001
    connection.checkpoint_completed({f"{topic}-0": (3, None), f"{topic}-1": (1, None)})
    wait_until(lambda: committed_offset(kafka, group, topic) == 3 and committed_offset(kafka, group, topic, 1) == 1)
    connection.close()


def wait_until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_job_commits_the_offsets_of_its_checkpoints_and_reads_on_from_them(kafka, tmp_path):
    topic, group = new_topic(kafka, 2), f"g-{tmp_path.name}"
    produce(kafka, topic, [f"a{n}" for n in range(50)])
    produce(kafka, topic, [f"b{n}" for n in range(30)], 1)

    def run():
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(2)
        env.enable_checkpointing(20)
        env.get_checkpoint_config().set_checkpoint_storage_dir(tmp_path.as_uri())
        source = (
            reading(kafka, topic)
            .set_group_id(group)
            .set_starting_offsets(KafkaOffsetsInitializer.committed_offsets(KafkaOffsetResetStrategy.EARLIEST))
            .set_unbounded(LATEST)
            .build()
        )
        strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(5))
        with on_local_engine(), env.from_source(source, strategy, "kafka").execute_and_collect() as records:
            return list(records)

    assert len(run()) == 80
    wait_until(lambda: committed_offset(kafka, group, topic) == 50 and committed_offset(kafka, group, topic, 1) == 30)
    produce(kafka, topic, ["later"])
    assert run() == ["later"]


@contextmanager
def ticking(kafka, topic):
    """Write records to partition 0 all the time: a job that reads it always has a next record."""
    over = threading.Event()

    def tick():
        while not over.wait(0.05):
            produce(kafka, topic, ["tick"])

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_a_job_reads_a_partition_that_is_added_while_it_runs_from_its_first_record(kafka):
    topic = new_topic(kafka)
    builder = reading(kafka, topic).set_starting_offsets(LATEST).set_property("partition.discovery.interval.ms", "50")
    env = StreamExecutionEnvironment.get_execution_environment()
    stream = env.from_source(builder.build(), WatermarkStrategy.no_watermarks(), "kafka")
    with ticking(kafka, topic), on_local_engine(), stream.execute_and_collect() as records:
        assert next(records) == "tick"
        add_partitions(kafka, topic, 2)
        produce(kafka, topic, ["first", "second"], 1)
        seen, deadline = [], time.monotonic() + 60
        while "second" not in seen:
            assert time.monotonic() < deadline, "the new partition is not read"
            seen.append(next(records))
    assert [record for record in seen if record != "tick"] == ["first", "second"]


class Watermarks(ProcessFunction):
    def process_element(self, value, ctx):
        yield value, ctx.timer_service().current_watermark()


def test_the_slowest_partition_holds_the_watermark_back_until_it_is_idle(kafka):
    topic = new_topic(kafka, 2)
    produce(kafka, topic, ["fast"], timestamp=100_000)
    produce(kafka, topic, ["slow"], 1, timestamp=10)

    def results(strategy):
        env = StreamExecutionEnvironment.get_execution_environment()
        stream = env.from_source(reading(kafka, topic).build(), strategy, "kafka").process(Watermarks())
        return stream.execute_and_collect()

    strategy = WatermarkStrategy.for_monotonous_timestamps()
    with on_local_engine(), results(strategy) as records:
        assert {next(records)[0], next(records)[0]} == {"fast", "slow"}
        produce(kafka, topic, ["later"], timestamp=200_000)
        assert next(records) == ("later", 9)
    with on_local_engine(), results(strategy.with_idleness(Duration.of_millis(50))) as records:
        deadline = time.monotonic() + 60
        while next(records)[1] < 199_999:  # partition 1 has nothing more, and is left out after a while
            assert time.monotonic() < deadline
            time.sleep(0.05)
            produce(kafka, topic, ["more"], timestamp=200_000)


def test_a_topic_that_is_ahead_of_its_alignment_group_waits_for_the_others(kafka):
    fast, slow = new_topic(kafka), new_topic(kafka)
    producer = Producer({"bootstrap.servers": kafka.servers})
    for number in range(20_000):
        producer.produce(fast, str(number), partition=0, timestamp=1_000 + number * 10)
    assert producer.flush(60) == 0
    produce(kafka, slow, ["slow"], timestamp=1_000)
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    strategy = strategy.with_watermark_alignment("group", Duration.of_seconds(5), Duration.of_millis(10))
    env = StreamExecutionEnvironment.get_execution_environment()
    first, second = (env.from_source(reading(kafka, topic).build(), strategy, topic) for topic in (fast, slow))
    with on_local_engine(), first.union(second).execute_and_collect() as records:
        assert {next(records) for _ in range(300)} >= {"slow", "0"}
        progress = records.job_client.get_progress
        wait_until(lambda: progress().records_read >= 500)
        before = -1
        while progress().records_read != before:  # until the fast topic waits
            before = progress().records_read
            time.sleep(0.5)
        assert before < 15_000
        produce(kafka, slow, ["slow"], timestamp=1_000_000)
        while next(records) != "19999":
            pass
