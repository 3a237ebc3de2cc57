"""`FlinkKafkaConsumer` and `FlinkKafkaProducer` are spellings of `KafkaSource` and `KafkaSink`; without a broker."""

import pytest

from ekorn.clock import ManualClock
from ekorn.common import SimpleStringSchema
from ekorn.datastream import AscendingTimestampExtractor, StreamExecutionEnvironment
from ekorn.datastream.connectors.base import DeliveryGuarantee
from ekorn.datastream.connectors.kafka import (
    FlinkKafkaConsumer,
    FlinkKafkaConsumer010,
    FlinkKafkaConsumer011,
    FlinkKafkaConsumer09,
    FlinkKafkaProducer,
    Semantic,
)
from ekorn.errors import ConfigurationError, ProgramWarning
from ekorn.functions.source_contract import Batch
from ekorn.operators.time.watermarks import SplitWatermarks

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
SERVERS = {"bootstrap.servers": "127.0.0.1:1"}


def consumer(**properties):
    return FlinkKafkaConsumer("in", SimpleStringSchema(), SERVERS | {"group.id": "g"} | properties)


def test_a_consumer_starts_from_the_offsets_of_its_group():
    assert "committed_offsets(KafkaOffsetResetStrategy.LATEST)" in repr(consumer().as_source())
    source = consumer(**{"auto.offset.reset": "earliest"}).as_source()
    assert "committed_offsets(KafkaOffsetResetStrategy.EARLIEST)" in repr(source)
    with pytest.raises(ConfigurationError, match=r"set group\.id, or where to start"):
        FlinkKafkaConsumer(["in"], SimpleStringSchema(), SERVERS).as_source()
    with pytest.raises(ConfigurationError, match="earliest, latest or none"):
        consumer(**{"auto.offset.reset": "soonest"})


@pytest.mark.parametrize("named", [FlinkKafkaConsumer09, FlinkKafkaConsumer010, FlinkKafkaConsumer011])
def test_consumers_for_single_versions_of_kafka_are_the_same(named):
    assert "earliest()" in repr(named("in", SimpleStringSchema(), SERVERS).set_start_from_earliest().as_source())


def test_a_consumer_starts_where_it_is_told_to():
    assert "earliest()" in repr(consumer().set_start_from_earliest().as_source())
    assert "latest()" in repr(consumer().set_start_from_latest().as_source())
    assert "timestamp(5)" in repr(consumer().set_start_from_timestamp(5).as_source())
    assert "committed" in repr(consumer().set_start_from_latest().set_start_from_group_offsets().as_source())


def test_a_consumer_looks_for_new_partitions_only_if_it_is_told_to():
    assert consumer().as_source().discovery_interval_ms is None
    source = consumer(**{"flink.partition-discovery.interval-millis": "700"}).as_source()
    assert source.discovery_interval_ms == 700


def test_automatic_commits_are_warned_of():
    with pytest.warns(ProgramWarning, match=r"enable\.auto\.commit has no effect"):
        consumer(**{"enable.auto.commit": "true"})


@pytest.mark.parametrize("semantic", Semantic)
def test_the_semantic_of_a_producer_is_the_guarantee_of_the_sink(semantic):
    sink = FlinkKafkaProducer("out", SimpleStringSchema(), SERVERS, semantic=semantic).as_sink()
    assert sink.guarantee is DeliveryGuarantee[semantic.name]
    assert (sink.transactional_id_prefix, sink.serializer.writes_timestamps) == (None, False)


def test_the_settings_of_a_producer_reach_the_sink():
    producer = FlinkKafkaProducer("out", SimpleStringSchema(), SERVERS | {"acks": "1"})
    producer.ignore_failures_after_transaction_timeout().set_write_timestamp_to_kafka(True)
    sink = producer.set_flush_on_checkpoint(False).as_sink()
    assert sink.ignores_late_failures
    assert sink.serializer.writes_timestamps
    assert sink.guarantee is DeliveryGuarantee.NONE
    assert sink.properties["acks"] == "1"
    with pytest.warns(ProgramWarning, match="kafka_producer_pool_size has no effect"):
        FlinkKafkaProducer("out", SimpleStringSchema(), SERVERS, kafka_producer_pool_size=7)


def test_messages_without_the_timestamps_of_records_have_the_time_of_writing():
    sink = FlinkKafkaProducer("out", SimpleStringSchema(), SERVERS).as_sink()
    calls = []

    def produce(topic, value, key, partition=-1, callback=None, on_delivery=None, timestamp=0):  # noqa: PLR0917 - its order
        calls.append((topic, value, key, partition, timestamp))

    sink.serializer.sender(lambda topic: [0])(produce, "a", 5)
    assert calls == [("out", "a", None, -1, 0)]


def test_programs_add_them_as_source_and_sink():
    env = StreamExecutionEnvironment.get_execution_environment()
    stream = env.add_source(consumer().set_start_from_earliest(), "kafka")
    stream.add_sink(FlinkKafkaProducer("out", SimpleStringSchema(), SERVERS)).name("to kafka")
    assert "kafka" in env.get_execution_plan()


class BySecondField(AscendingTimestampExtractor):
    def extract_ascending_timestamp(self, element):
        return element[1]


def test_an_assigner_of_a_consumer_remembers_the_timestamps_of_each_partition_apart():
    told = consumer().set_start_from_earliest().assign_timestamps_and_watermarks(BySecondField())
    watermarks = SplitWatermarks(told.watermark_strategy, ManualClock(0), batch=False, periodic=True)
    for split, at_ms in (("in-0", 100), ("in-1", 10)):
        watermarks.add(split)
        (stamped,) = watermarks.stamp(split, Batch([("record", at_ms)]))
        assert isinstance(stamped, Batch) and stamped.timestamps == [at_ms]
    assert [event.watermark_ms for event in watermarks.emit_periodic()] == [9]
    assert watermarks.by_split() == {"in-0": 99, "in-1": 9}


def test_what_is_no_strategy_is_refused_by_a_consumer():
    with pytest.raises(TypeError, match="needs a WatermarkStrategy, or an assigner"):
        consumer().assign_timestamps_and_watermarks(lambda record: 0)
