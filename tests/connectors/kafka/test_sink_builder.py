"""`KafkaSink.builder()`, the names of transactions and the login of the wire; without a broker."""

import hashlib
import pickle

import cloudpickle
import pytest

from ekorn.clock import ManualClock
from ekorn.common import SimpleStringSchema
from ekorn.connectors.kafka.client_properties import ClientProperties
from ekorn.connectors.kafka.transactions import (
    TransactionAdmin,
    TransactionCommitter,
    WriterName,
    bootstrap_addresses,
    writer_of,
)
from ekorn.connectors.kafka.wire import ErrorCode, TransactionState
from ekorn.connectors.kafka.wire_login import Login, Scram
from ekorn.datastream.connectors.base import DeliveryGuarantee
from ekorn.datastream.connectors.kafka import KafkaRecordSerializationSchema, KafkaSink, KafkaTopicSelector
from ekorn.errors import ConfigurationError, KafkaError, KafkaTransactionLost

EXACTLY_ONCE = DeliveryGuarantee.EXACTLY_ONCE


def serializer():
    builder = KafkaRecordSerializationSchema.builder().set_topic("out")
    return builder.set_value_serialization_schema(SimpleStringSchema()).build()


def builder():
    return KafkaSink.builder().set_bootstrap_servers("127.0.0.1:1").set_record_serializer(serializer())


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda b: b.set_delivery_guarantee(EXACTLY_ONCE), r"needs set_transactional_id_prefix\(\)"),
        (lambda b: b.set_property("transactional.id", "x"), r"call set_transactional_id_prefix\(\)"),
        (lambda b: b.set_property("transaction.timeout.ms", "soon"), "number of milliseconds"),
        (lambda b: b.set_property("no.such", "1"), "no.such"),
        (lambda b: b.set_property("acks", "7777777"), "acks"),
        (lambda b: b.set_bootstrap_servers("nowhere"), "host:port"),
        (
            lambda b: (
                b.set_delivery_guarantee(EXACTLY_ONCE)
                .set_transactional_id_prefix("p")
                .set_property("security.protocol", "SASL_SSL")
                .set_property("sasl.mechanism", "OAUTHBEARER")
            ),
            "cannot log in with the SASL mechanism OAUTHBEARER: use PLAIN",
        ),
    ],
)
def test_a_builder_refuses_what_cannot_be(change, says):
    with pytest.raises(ConfigurationError, match=says):
        change(builder()).build()


def test_servers_and_a_serializer_are_needed():
    with pytest.raises(ConfigurationError, match="set_record_serializer"):
        KafkaSink.builder().build()
    with pytest.raises(ConfigurationError, match="set_bootstrap_servers"):
        KafkaSink.builder().set_record_serializer(serializer()).build()
    with pytest.raises(ConfigurationError, match="set_topic"):
        KafkaRecordSerializationSchema.builder().set_value_serialization_schema(SimpleStringSchema()).build()
    with pytest.raises(ConfigurationError, match="set_value_serialization_schema"):
        KafkaRecordSerializationSchema.builder().set_topic("out").build()
    with pytest.raises(ConfigurationError, match="once"):
        KafkaRecordSerializationSchema.builder().set_topic("a").set_topic_selector(str)


def test_a_sink_shows_no_secrets_and_travels_to_slots():
    sink = builder().set_property("sasl.password", "hush").build()
    assert "hush" not in repr(sink)
    assert pickle.loads(cloudpickle.dumps(sink)).properties == sink.properties


class ByLength(KafkaTopicSelector):
    def apply(self, data):
        return f"t{len(data)}"


def sent(schema, record, timestamp=None):
    calls = []
    send = schema.sender(lambda topic: [0, 1, 2])
    send(lambda topic, value, key, **more: calls.append((topic, value, key, more)), record, timestamp)
    return calls


def test_a_selector_chooses_topics_and_must_return_a_name():
    begun = KafkaRecordSerializationSchema.builder().set_value_serialization_schema(SimpleStringSchema())
    assert sent(begun.set_topic_selector(ByLength()).build(), "abc", 5) == [("t3", b"abc", None, {"timestamp": 5})]
    begun = KafkaRecordSerializationSchema.builder().set_value_serialization_schema(SimpleStringSchema())
    with pytest.raises(KafkaError, match="the selector returned None for 'abc'"):
        sent(begun.set_topic_selector(lambda record: None).build(), "abc")  # type: ignore[arg-type, return-value]


def test_a_partition_that_does_not_exist_is_refused():
    begun = KafkaRecordSerializationSchema.builder().set_topic("t").set_partitioner(lambda *message: 3)
    with pytest.raises(KafkaError, match="the partitioner returned 3 for 'abc'; topic 't' has 3 partitions"):
        sent(begun.set_value_serialization_schema(SimpleStringSchema()).build(), "abc")


# -------------------------------------------------------------------------------------------------- transactions


def test_transactions_are_named_by_prefix_subtask_and_writer():
    writer = WriterName("my-sink-1", 3, "0123456789ab")
    assert writer.transaction(7) == "my-sink-1-3-0123456789ab-7"
    assert writer_of("my-sink-1", writer.transaction(7)) == writer


@pytest.mark.parametrize("other", ["my-sink-3-0123456789ab-7", "my-sink-1-3-0123456789ab", "my-sink-1-x", "other"])
def test_transactions_of_other_prefixes_belong_to_others(other):
    assert writer_of("my-sink-1", other) is None


class Answers(TransactionAdmin):
    """Coordinators that refuse a commit."""

    def __init__(self, error, state):
        self._error, self._state = error, state

    def commit(self, transaction):
        return self._error

    def describe(self, transactional_id):
        return self._state


@pytest.mark.parametrize(
    ("state", "says"),
    [
        (
            TransactionState(ErrorCode(0), "CompleteAbort", 5, 1),
            "PRODUCER_FENCED; its state is CompleteAbort, at epoch 1",
        ),
        (TransactionState(ErrorCode(105), "", -1, -1), "the brokers do not know it, or no longer know it"),
    ],
)
def test_a_commit_that_is_refused_is_a_lost_transaction(state, says):
    clock = ManualClock(now_ms=10_000)
    prepared = {"id": "t", "producer_id": 5, "epoch": 0, "begun_ms": 4_000}
    committer = TransactionCommitter(Answers(ErrorCode(90), state), clock, 5_000, ignores_late_failures=False)
    with pytest.raises(KafkaTransactionLost, match=says) as caught:
        committer.commit([prepared])  # type: ignore[list-item]
    assert "It was begun 6 s ago." in str(caught.value)
    assert not caught.value.retryable
    TransactionCommitter(Answers(ErrorCode(90), state), clock, 5_000, ignores_late_failures=True).commit([prepared])  # type: ignore[list-item]
    with pytest.raises(KafkaTransactionLost):  # within the timeout there is another reason, which is not to be ignored
        TransactionCommitter(Answers(ErrorCode(90), state), clock, 7_000, ignores_late_failures=True).commit([prepared])  # type: ignore[list-item]


def test_an_admin_gives_up_on_brokers_that_are_away_and_says_so():
    admin = TransactionAdmin(ClientProperties({"bootstrap.servers": "127.0.0.1:1"}), ManualClock())
    with pytest.raises(KafkaError, match=r"transaction 't': no answer within 60 s: .*refused"):
        admin.describe("t")


def test_bootstrap_servers_are_addresses():
    assert bootstrap_addresses("SASL_SSL://a.b:1,c:2") == [("a.b", 1), ("c", 2)]


# --------------------------------------------------------------------------------------------------------- login


def test_scram_answers_as_in_rfc_7677():
    scram = Scram(hashlib.sha256, "user", "pencil", "rOprNGfwEbeRWgbNEkqO")
    assert scram.answer(None) == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    challenge = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    assert scram.answer(challenge) == (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert scram.answer(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=") is None


def test_scram_notices_a_broker_that_does_not_know_the_password():
    scram = Scram(hashlib.sha256, "user", "pencil", "rOprNGfwEbeRWgbNEkqO")
    scram.answer(None)
    scram.answer(b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096")
    with pytest.raises(ConnectionError, match="did not prove that it knows the password"):
        scram.answer(b"v=AAAATRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")


def test_a_login_shows_no_password():
    properties = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "u"}
    login = Login(ClientProperties({**properties, "sasl.password": "hush"}))
    assert "hush" not in repr(login)
    assert login.dialogue().answer(None) == b"\0u\0hush"
