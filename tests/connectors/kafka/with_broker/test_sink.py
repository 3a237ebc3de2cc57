"""`KafkaSink` against a real broker: the contract of all sinks, and what only transactions of Kafka do."""

import threading
import time

import pytest

from ekorn.common import SerializationSchema, SimpleStringSchema
from ekorn.datastream.connectors.kafka import KafkaRecordSerializationSchema, KafkaSink
from ekorn.errors import KafkaError, KafkaTransactionLost
from ekorn.testing.kits import RefusesBadRecords, SinkCase, SinkJob
from tests.connectors.kafka.with_broker.sinks import AT_LEAST_ONCE, NONE, writing
from tests.connectors.sink_contract import SinkContract
from tests.servers.kafka.broker import PASSWORD, USER
from tests.servers.kafka.certificates import KEY_PASSWORD
from tests.servers.kafka.topics import (
    consume,
    new_topic,
    values,
    wait_until_nothing_is_open,
    wait_until_the_first_transaction_is_aborted,
)


class TransactionsCase(SinkCase):
    def __init__(self, kafka, topic):
        self._kafka = kafka
        self._topic = topic

    def sink(self):
        return writing(self._kafka, self._topic).build()

    def record(self, number):
        return f"r{number}"

    def visible(self):
        return values(self._kafka, self._topic)

    def settle(self):
        wait_until_nothing_is_open(self._kafka.servers, self._topic)

    def spoil(self):
        return "x" * 2_000_000, KafkaError, "MSG_SIZE_TOO_LARGE"


class TestTransactions(SinkContract, RefusesBadRecords):
    parallelisms = (3,)  # fewer subtasks than before: see below
    fault_points = ("kafka-flushed", "kafka-prepared")

    @pytest.fixture
    def make_case(self, kafka):
        return lambda: TransactionsCase(kafka, new_topic(kafka))


# ------------------------------------------------------------------------------------------------ open transactions


def test_open_transactions_of_a_killed_job_are_aborted_when_it_restarts_with_fewer_subtasks(kafka):
    topic = new_topic(kafka)
    job = SinkJob(writing(kafka, topic).build(), 3)
    for number in range(6):
        job.write(number, str(number))
    job.checkpoint()
    for number in range(6, 12):
        job.write(number, str(number))
    job.begin_checkpoint()  # prepared, and never completed
    for number in range(12, 15):
        job.write(number, str(number))  # in open transactions
    job.crash(1)
    job.subtasks[0].writer.end_epoch()
    wait_until_nothing_is_open(kafka.servers, topic)
    assert sorted(values(kafka, topic)) == [str(n) for n in range(6)]


def test_a_job_that_restarts_and_ends_in_its_first_epoch_leaves_no_transaction_open(kafka):
    topic = new_topic(kafka)
    job = SinkJob(writing(kafka, topic).build(), 1)
    job.checkpoint()
    job.write(0, "of the killed attempt")
    job.begin_checkpoint()  # prepared, and never completed
    job.crash(1)
    job.write(0, "of the second attempt")
    job.finish()
    wait_until_nothing_is_open(kafka.servers, topic)
    assert values(kafka, topic) == ["of the second attempt"]


def test_transactions_of_other_sinks_are_left_alone(kafka):
    topic = new_topic(kafka)
    other = SinkJob(writing(kafka, topic).set_transactional_id_prefix(f"p-{topic}-0").build(), 1)
    other.write(0, "other")
    other.begin_checkpoint()
    job = SinkJob(writing(kafka, topic).set_transactional_id_prefix(f"p-{topic}").build(), 1)
    job.write(0, "mine")
    job.finish()
    other.complete_checkpoint()
    assert sorted(values(kafka, topic)) == ["mine", "other"]


def test_a_transaction_that_timed_out_before_its_commit_fails_the_job_with_what_to_set(kafka):
    topic = new_topic(kafka)
    job = SinkJob(writing(kafka, topic, transaction_timeout_ms="1000", message_timeout_ms="1000").build(), 1)
    job.write(0, "late")
    job.begin_checkpoint()
    wait_until_the_first_transaction_is_aborted(kafka.servers, topic)
    with pytest.raises(KafkaTransactionLost, match=r"Set the sink's property transaction.timeout.ms \(now 1000 ms\)"):
        job.complete_checkpoint()
    assert values(kafka, topic) == []


def test_a_transaction_that_timed_out_before_its_checkpoint_fails_the_job(kafka):
    topic = new_topic(kafka)
    job = SinkJob(writing(kafka, topic, transaction_timeout_ms="1000", message_timeout_ms="1000").build(), 1)
    job.write(0, "late")
    wait_until_the_first_transaction_is_aborted(kafka.servers, topic)
    with pytest.raises((KafkaTransactionLost, KafkaError)):
        job.begin_checkpoint()


def test_a_transaction_that_timed_out_is_logged_if_such_failures_are_to_be_ignored(kafka, caplog):
    topic = new_topic(kafka)
    builder = writing(kafka, topic, transaction_timeout_ms="1000", message_timeout_ms="1000")
    job = SinkJob(builder.ignore_failures_after_transaction_timeout().build(), 1)
    job.write(0, "late")
    job.begin_checkpoint()
    wait_until_the_first_transaction_is_aborted(kafka.servers, topic)
    job.complete_checkpoint()
    assert "cannot commit the Kafka transaction" in caplog.text


def test_a_timeout_that_brokers_refuse_is_named(kafka):
    job = SinkJob(writing(kafka, new_topic(kafka), transaction_timeout_ms="3600000").build(), 1)
    with pytest.raises(KafkaError, match=r"the brokers refuse transaction.timeout.ms = 3600000"):
        job.write(0, "x")


def test_a_commit_waits_for_a_broker_that_is_away(kafka):
    topic = new_topic(kafka)
    job = SinkJob(writing(kafka, topic).build(), 1)
    job.write(0, "a")
    job.begin_checkpoint()
    with kafka.paused():
        commit = threading.Thread(target=job.complete_checkpoint)
        commit.start()
        commit.join(0.5)
        assert commit.is_alive()
    commit.join(60)
    assert values(kafka, topic) == ["a"]


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_transactions_are_committed_over_tls_with_a_login(kafka, mechanism):
    topic = new_topic(kafka)
    sink = writing(
        kafka,
        topic,
        bootstrap_servers=kafka.secured,
        security_protocol="SASL_SSL",
        sasl_mechanism=mechanism,
        sasl_username=USER,
        sasl_password=PASSWORD,
        ssl_ca_location=str(kafka.certificate),
    ).build()
    assert PASSWORD not in repr(sink)
    job = SinkJob(sink, 1)
    job.write(0, "secured")
    job.finish()
    assert values(kafka, topic) == ["secured"]


def certified(kafka, **more):
    """Return the properties of a client with a certificate, under librdkafka's names."""
    servers = {"bootstrap_servers": kafka.certified, "security_protocol": "SSL"}
    return servers | {"ssl_ca_location": str(kafka.certificate)} | more


def test_transactions_are_committed_with_a_client_certificate(kafka):
    topic, pem = new_topic(kafka), str(kafka.client_certificate)
    of_java = {"ssl_truststore_type": "PEM", "ssl_keystore_type": "PEM", "ssl_keystore_location": pem}
    encrypted = {"ssl_certificate_location": pem, "ssl_key_location": str(kafka.client_key)}
    for number, how in enumerate((of_java, encrypted | {"ssl_key_password": KEY_PASSWORD})):
        sink = (
            writing(kafka, topic, **certified(kafka, **how)).set_transactional_id_prefix(f"p{number}-{topic}").build()
        )
        assert KEY_PASSWORD not in repr(sink)
        job = SinkJob(sink, 1)
        job.write(0, str(number))
        job.finish()
    assert values(kafka, topic) == ["0", "1"]


def test_a_commit_without_a_client_certificate_is_refused_at_once(kafka):
    with_one = certified(kafka, ssl_certificate_location=str(kafka.client_certificate))
    topic = new_topic(kafka)
    job = SinkJob(writing(kafka, topic, **with_one, ssl_key_location=str(kafka.client_certificate)).build(), 1)
    job.write(0, "written with a certificate")
    job.begin_checkpoint()
    committer = writing(kafka, topic, **certified(kafka)).build().create_committer()
    with pytest.raises(KafkaError, match=r"refused the client's certificate: .*CERT"):
        committer.commit([committable for _, committable in job.subtasks[0].waiting])


# --------------------------------------------------------------------------------------------- the other guarantees


@pytest.mark.parametrize("guarantee", [AT_LEAST_ONCE, NONE])
def test_without_transactions_records_are_visible_without_a_commit(kafka, guarantee):
    topic = new_topic(kafka)
    job = SinkJob(writing(kafka, topic, guarantee).build(), 2)
    for number in range(10):
        job.write(number, str(number))
    if guarantee is AT_LEAST_ONCE:
        job.begin_checkpoint()
    else:
        job.finish()
    assert sorted(values(kafka, topic), key=int) == [str(number) for number in range(10)]


def test_at_least_once_waits_until_records_are_delivered_and_says_which_topic_is_missing(kafka):
    job = SinkJob(writing(kafka, "no-such-topic", AT_LEAST_ONCE, message_timeout_ms="300").build(), 1)
    job.write(0, "x")
    with pytest.raises(KafkaError, match="a message to topic 'no-such-topic' was not delivered"):
        job.begin_checkpoint()


def test_messages_have_topic_key_headers_partition_and_timestamp(kafka):
    topics = {"a": new_topic(kafka, 3), "b": new_topic(kafka, 3)}
    serializer = (
        KafkaRecordSerializationSchema.builder()
        .set_topic_selector(lambda record: topics[record[0]])
        .set_key_serialization_schema(SimpleStringSchema())
        .set_value_serialization_schema(SimpleStringSchema())
        .set_header_provider(lambda record: [("first", record[0].encode()), ("none", None)])
        .set_partitioner(lambda record, key, value, topic, partitions: partitions[-1])
        .build()
    )
    sink = KafkaSink.builder().set_bootstrap_servers(kafka.servers).set_record_serializer(serializer).build()
    job = SinkJob(sink, 1)
    job.subtasks[0].writer.write("a1", 1234)
    job.subtasks[0].writer.write("b1", None)
    job.finish()
    (message,) = consume(kafka, topics["a"])
    assert (message.key(), message.value(), message.partition()) == (b"a1", b"a1", 2)
    assert message.headers() == [("first", b"a"), ("none", None)]
    assert message.timestamp()[1] == 1234
    (message,) = consume(kafka, topics["b"])
    assert message.timestamp()[1] > 1_700_000_000_000


class Bytes(SerializationSchema):
    def serialize(self, value):
        return value.encode()


@pytest.mark.parametrize("schema", [SimpleStringSchema(), SimpleStringSchema("latin-1"), Bytes()])
@pytest.mark.parametrize("keyed", [False, True])
def test_messages_of_every_schema_have_value_key_and_timestamp(kafka, schema, keyed):
    topic = new_topic(kafka)
    builder = KafkaRecordSerializationSchema.builder().set_topic(topic).set_value_serialization_schema(schema)
    if keyed:
        builder.set_key_serialization_schema(Bytes())
    sink = KafkaSink.builder().set_bootstrap_servers(kafka.servers).set_record_serializer(builder.build()).build()
    job = SinkJob(sink, 1)
    now = int(time.time() * 1000)
    job.subtasks[0].writer.write("\u00e4\0", 1234)
    job.subtasks[0].writer.write("", None)
    job.finish()
    first, second = consume(kafka, topic)
    charset = "latin-1" if getattr(schema, "charset", "utf-8") == "latin-1" else "utf-8"
    assert (first.value(), first.key()) == ("\u00e4\0".encode(charset), "\u00e4\0".encode() if keyed else None)
    assert (second.value(), second.key()) == (b"", b"" if keyed else None)
    assert first.timestamp()[1] == 1234
    assert second.timestamp()[1] >= now


def test_text_that_is_no_unicode_fails_by_itself(kafka):
    job = SinkJob(writing(kafka, new_topic(kafka)).build(), 1)
    with pytest.raises(UnicodeEncodeError):
        job.write(0, "\ud800")


def test_keys_go_to_the_partitions_that_javas_client_chooses(kafka):
    topic = new_topic(kafka, 6)
    serializer = (
        KafkaRecordSerializationSchema.builder()
        .set_topic(topic)
        .set_key_serialization_schema(SimpleStringSchema())
        .set_value_serialization_schema(SimpleStringSchema())
        .build()
    )
    sink = KafkaSink.builder().set_bootstrap_servers(kafka.servers).set_record_serializer(serializer).build()
    job = SinkJob(sink, 1)
    for key in ("a", "b", "foobar", "kafka"):
        job.write(0, key)
    job.finish()
    # toPositive(murmur2(key)) % 6 of org.apache.kafka.common.utils.Utils
    found = {message.key().decode(): message.partition() for message in consume(kafka, topic)}
    assert found == {key: (murmur2(key.encode()) & 0x7FFFFFFF) % 6 for key in found}
    assert len(set(found.values())) > 1


def murmur2(data):
    """Hash as Kafka's `Utils.murmur2` does."""
    mask, m = 0xFFFFFFFF, 0x5BD1E995
    h = 0x9747B28C ^ len(data)
    whole = len(data) // 4 * 4
    for at in range(0, whole, 4):
        k = int.from_bytes(data[at : at + 4], "little") * m & mask
        k = (k ^ k >> 24) * m & mask
        h = h * m & mask ^ k
    if whole < len(data):
        h = (h ^ int.from_bytes(data[whole:], "little")) * m & mask
    h = (h ^ h >> 13) * m & mask
    return h ^ h >> 15


def test_a_writer_that_was_replaced_while_it_stood_still_writes_nothing_more(kafka):
    topic = new_topic(kafka)
    job = SinkJob(writing(kafka, topic).build(), 1)
    job.write(0, "before")
    zombie = job.subtasks[0]
    zombie.writer.end_epoch()
    time.sleep(0.2)  # the client sends the record, in a transaction
    job.crash(1)
    job.write(0, "after")
    job.finish()
    zombie.writer.write("zombie", None)
    with pytest.raises(KafkaError, match=r"writing to Kafka: .*(fenced|old epoch)"):
        zombie.snapshot(7)
    assert values(kafka, topic) == ["after"]
