"""A broker that is away for a while is one line of the log for each client, whatever the client tries meanwhile."""

import logging

import pytest

from ekorn.common import SimpleStringSchema, WatermarkStrategy
from ekorn.connectors.kafka.clients import ClientErrors
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from ekorn.testing import on_local_engine
from tests.live_jobs import until
from tests.servers.kafka.broker import running_broker
from tests.servers.kafka.topics import new_topic, produce, values

PATIENT = {"reconnect.backoff.ms": "10", "reconnect.backoff.max.ms": "50"}


@pytest.fixture
def broker():
    with running_broker() as started:
        yield started


@pytest.fixture
def reports(monkeypatch):
    """List the activities during which the clients report errors."""
    found: list[str] = []
    report = ClientErrors.report

    def noted(self, error):
        found.append(self._what)
        report(self, error)

    monkeypatch.setattr(ClientErrors, "report", noted)
    return found


def test_a_broker_that_is_away_is_logged_once_by_each_client(broker, reports, caplog):
    read, written = new_topic(broker), new_topic(broker)
    produce(broker, read, ["before"])
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    env.enable_checkpointing(200)
    source = KafkaSource.builder().set_bootstrap_servers(broker.servers).set_topics(read).set_properties(PATIENT)
    source.set_value_only_deserializer(SimpleStringSchema())
    source.set_starting_offsets(KafkaOffsetsInitializer.earliest())
    serializer = KafkaRecordSerializationSchema.builder().set_topic(written)
    serializer.set_value_serialization_schema(SimpleStringSchema())
    sink = KafkaSink.builder().set_bootstrap_servers(broker.servers).set_record_serializer(serializer.build())
    for key, value in PATIENT.items():
        sink.set_property(key, value)
    stream = env.from_source(source.build(), WatermarkStrategy.no_watermarks(), "read")
    stream.sink_to(sink.build())
    with on_local_engine(), caplog.at_level(logging.INFO, "ekorn"):
        job = env.execute_async("copy")
        until(lambda: values(broker, written) == ["before"])
        caplog.clear()
        broker.kill()
        until(lambda: len(reports) >= 40 and len(set(reports)) == 2)
        broker.start()
        produce(broker, read, ["after"])
        until(lambda: values(broker, written) == ["before", "after"])
        job.cancel().result()
    said = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    starts = [message.split(":")[0] for message in said]
    assert set(starts) == {"reading from Kafka", "writing to Kafka"}
    assert len(said) <= 4, said  # one each; one more if a client has a last answer after it has lost its broker
