"""The properties of Kafka's client: Java's names, and secrets that are never shown."""

import pickle

import cloudpickle
import pytest

from ekorn.config.masking import is_secret
from ekorn.connectors.kafka.client_properties import ClientProperties
from ekorn.connectors.kafka.clients import check_properties, start_consumer
from ekorn.errors import ConfigurationError

JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="hush\\"7";'


@pytest.mark.parametrize(
    "name",
    ["sasl.password", "ssl.key.password", "ssl.keystore.key", "ssl.key.pem", "sasl.jaas.config",
     "sasl.oauthbearer.config", "sasl.oauthbearer.client.secret", "ssl.keystore.password", "my.token"],
)  # fmt: skip
def test_secrets_are_recognised(name):
    assert is_secret(name)


@pytest.mark.parametrize(
    "name", ["bootstrap.servers", "group.id", "sasl.username", "ssl.key.location", "sasl.mechanism"]
)
def test_other_properties_are_shown(name):
    assert not is_secret(name)


def test_the_repr_and_the_errors_hide_secrets():
    properties = ClientProperties({"sasl.password": "hush7", "sasl.jaas.config": JAAS, "group.id": "g"})
    assert "hush" not in repr(properties)
    assert properties.hide('login with hush7 or hush"7 failed') == "login with ****** or ****** failed"


def test_a_value_that_the_client_refuses_is_named_but_a_secret_is_not_shown():
    with pytest.raises(ConfigurationError, match=r"isolation\.level") as caught:
        start_consumer(ClientProperties({"group.id": "g", "isolation.level": "none"}), {})
    assert caught.value.__cause__ is None
    with pytest.raises(ConfigurationError) as caught:
        check_properties(ClientProperties({"ssl.key.pem": "hush-key", "security.protocol": "ssl"}), {}, producer=True)
    assert "hush-key" not in str(caught.value)


def test_an_unknown_property_is_refused_by_name():
    with pytest.raises(ConfigurationError, match=r'"no\.such\.property"'):
        check_properties(ClientProperties({"no.such.property": "1"}), {}, producer=True)


def test_java_names_are_translated():
    given = {
        "sasl.jaas.config": JAAS,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": "/ca.pem",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": "/me.pem",
        "buffer.memory": "33554432",
        "value.deserializer": "org.apache.kafka.common.serialization.ByteArrayDeserializer",
        "linger.ms": 5,
        "enable.idempotence": True,
    }
    assert ClientProperties(given).for_librdkafka() == {
        "sasl.username": "alice",
        "sasl.password": 'hush"7',
        "ssl.ca.location": "/ca.pem",
        "ssl.certificate.location": "/me.pem",
        "ssl.key.location": "/me.pem",
        "queue.buffering.max.kbytes": "32768",
        "linger.ms": "5",
        "enable.idempotence": "true",
    }


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("ssl.truststore.location", "/store.jks", "set ssl.ca.location"),
        ("ssl.keystore.location", "/store.jks", "ssl.certificate.location"),
        ("interceptor.classes", "com.example.I", "names Java classes"),
        ("sasl.jaas.config", "com.example.Module required;", "set sasl.username and sasl.password"),
        ("buffer.memory", "much", "whole number"),
    ],
)
def test_what_has_no_counterpart_is_refused_with_what_to_set(name, value, says):
    with pytest.raises(ConfigurationError, match=says):
        ClientProperties({name: value}).for_librdkafka()


def test_properties_are_text_or_numbers():
    with pytest.raises(TypeError, match=r"'group\.id' is text or a number"):
        ClientProperties({"group.id": None})
    with pytest.raises(TypeError, match=r"got \*\*\*\*\*\*"):
        ClientProperties({"sasl.password": ["hush"]})


def test_properties_travel_to_slots():
    properties = ClientProperties({"sasl.password": "hush", "group.id": "g"})
    assert dict(pickle.loads(cloudpickle.dumps(properties))) == dict(properties)
