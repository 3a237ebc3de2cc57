"""`RMQConnectionConfig` and what the source and the sink refuse where they are written; without a server."""

import pickle

import pytest

from ekorn.common import SimpleStringSchema, Types
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.connectors.rabbitmq import RMQConnectionConfig, RMQSink, RMQSource
from ekorn.errors import ConfigurationError

SECRET = "canary-Rabbit-1"


def builder():
    return RMQConnectionConfig.Builder().set_host("rabbit").set_user_name("me").set_password(SECRET)


def test_the_config_says_what_was_set():
    config = (
        builder()
        .set_port(5673)
        .set_virtual_host("v")
        .set_automatic_recovery(True)
        .set_topology_recovery_enabled(False)
        .set_network_recovery_interval(70)
        .set_connection_timeout(3000)
        .set_requested_heartbeat(20)
        .set_requested_frame_max(8192)
        .set_requested_channel_max(7)
        .set_prefetch_count(9)
        .build()
    )
    assert (config.get_host(), config.get_port(), config.get_virtual_host()) == ("rabbit", 5673, "v")
    assert (config.get_user_name(), config.get_password(), config.get_uri()) == ("me", SECRET, None)
    assert (config.is_automatic_recovery(), config.is_topology_recovery()) == (True, False)
    assert (config.get_network_recovery_interval(), config.get_connection_timeout()) == (70, 3000)
    assert (config.get_requested_heartbeat(), config.get_requested_frame_max()) == (20, 8192)
    assert (config.get_requested_channel_max(), config.get_prefetch_count()) == (7, 9)
    parameters = config.parameters()
    assert (parameters.host, parameters.port, parameters.virtual_host) == ("rabbit", 5673, "v")
    assert (parameters.credentials.username, parameters.credentials.password) == ("me", SECRET)
    assert (parameters.heartbeat, parameters.frame_max, parameters.channel_max) == (20, 8192, 7)
    assert (parameters.socket_timeout, parameters.stack_timeout) == (3.0, 3.0)
    assert pickle.loads(pickle.dumps(config)) == config


def test_defaults():
    config = builder().build()
    assert (config.port, config.virtual_host, config.recovery_s) == (5672, "/", 5.0)
    assert builder().set_automatic_recovery(False).build().recovery_s is None


@pytest.mark.parametrize(
    ("uri", "place", "port"),
    [
        (f"amqp://me:{SECRET}@rabbit:5673/v", "rabbit:5673", 5673),
        (f"amqps://me:{SECRET}@rabbit/v", "rabbit:5671", 5671),
        (f"amqp://me:{SECRET}@rabbit", "rabbit:5672", 5672),
    ],
)
def test_a_uri_says_everything_at_once(uri, place, port):
    config = RMQConnectionConfig.Builder().set_uri(uri).build()
    parameters = config.parameters()
    assert (config.place, parameters.host, parameters.port) == (place, "rabbit", port)
    assert parameters.credentials.password == SECRET
    assert (parameters.ssl_options is not None) == uri.startswith("amqps")


def test_a_config_shows_no_password():
    uri = f"amqp://me:{SECRET}@rabbit:5673/v"
    for config in (builder().build(), RMQConnectionConfig.Builder().set_uri(uri).build()):
        assert SECRET not in f"{config} {config!r} {RMQSource(config, 'q', True, SimpleStringSchema()).as_source()!r}"
    with pytest.raises(ConfigurationError) as refused:
        RMQConnectionConfig.Builder().set_uri(f"http://me:{SECRET}@rabbit/")
    assert "set_uri() takes amqp://" in str(refused.value) and SECRET not in str(refused.value)


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda: RMQConnectionConfig.Builder().set_host("a").build(), r"call set_user_name\(\), set_password\(\), or"),
        (lambda: builder().set_port(70000), r"set_port\(\) takes a whole number from 1 to 65535, got 70000"),
        (lambda: builder().set_prefetch_count(True), "set_prefetch_count"),
        (lambda: builder().set_host(""), "got an empty text"),
        (lambda: RMQConnectionConfig.Builder().set_uri("amqp:///v"), "with a host"),
    ],
)
def test_settings_that_cannot_be_are_refused(call, why):
    with pytest.raises(ConfigurationError, match=why):
        call()


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda c: RMQSource(builder(), "q", True, SimpleStringSchema()), r"call build\(\) of its Builder"),
        (lambda c: RMQSource(c, "", True, SimpleStringSchema()), "the name of a queue, got ''"),
        (lambda c: RMQSource(c, "q", SimpleStringSchema(), False), "takes a DeserializationSchema, got False"),  # type: ignore[arg-type]
        (lambda c: RMQSource(c, "q", 1, SimpleStringSchema()), "use_correlation_id is True or False, got 1"),  # type: ignore[arg-type]
        (lambda c: RMQSink(c, "q", str), "takes a SerializationSchema, got <class 'str'>"),  # type: ignore[arg-type]
    ],
)
def test_wrong_arguments_are_refused(call, why):
    with pytest.raises(TypeError, match=why):
        call(builder().build())


def test_programs_add_them_as_source_and_sink():
    env = StreamExecutionEnvironment.get_execution_environment()
    config = builder().build()
    stream = env.add_source(RMQSource(config, "in", True, SimpleStringSchema()), "rabbit").set_parallelism(1)
    assert stream.get_type() == Types.STRING()
    stream.add_sink(RMQSink(config, "out", SimpleStringSchema())).name("to rabbit")
