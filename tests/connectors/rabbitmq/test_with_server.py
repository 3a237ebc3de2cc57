"""Source and sink with a real server: kits, kills, lost connections, and jobs whose slots are killed."""

from __future__ import annotations

import logging
import uuid
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest

from ekorn.common import Configuration, RestartStrategies, SimpleStringSchema, Types
from ekorn.connectors.rabbitmq.queue_consumer import QueueConsumer
from ekorn.connectors.rabbitmq.queue_source import RabbitQueue
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.connectors.rabbitmq import RMQConnectionConfig, RMQSink, RMQSource
from ekorn.errors import JobExecutionError, RabbitMQError
from ekorn.functions.sink_contract import WriterContext
from ekorn.functions.source_contract import Boundedness
from ekorn.testing.kits import RefusesBadRecords, SinkCase, SinkJob, SourceCase, SourceKit
from ekorn.testing.local_run import collect_locally, on_local_engine
from ekorn.testing.process_engine import on_process_engine
from tests.live_jobs import until
from tests.servers.rabbitmq import PASSWORD, Queue

pytestmark = pytest.mark.heavy
END = "end"


class UntilEnd(SimpleStringSchema):
    """Ends the queue at a message."""

    def is_end_of_stream(self, next_element):
        return next_element == END


# ------------------------------------------------------------------------------------------------- the kits

_OF_LOST_PROCESSES: list[Any] = []


@dataclass(frozen=True)
class EndedQueue(RabbitQueue):
    """A queue that ends. The process that read it before is gone, and its connection with it."""

    @property
    def boundedness(self):
        return Boundedness.BOUNDED

    def create_reader(self, split, position):
        while _OF_LOST_PROCESSES:
            _OF_LOST_PROCESSES.pop().close()
        _OF_LOST_PROCESSES.append(super().create_reader(split, position))
        return _OF_LOST_PROCESSES[-1]


class QueueCase(SourceCase):
    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        queue.publish(*self.records, END)

    def bounded(self):
        return EndedQueue(self.queue.server.config(), self.queue.name, UntilEnd(), True)

    @property
    def records(self):
        return [f"record {n}" for n in range(12)]


class TestSource(SourceKit):
    step = 3

    @pytest.fixture
    def case(self, queue):
        yield QueueCase(queue)
        while _OF_LOST_PROCESSES:
            _OF_LOST_PROCESSES.pop().close()


class Upper(SimpleStringSchema):
    def serialize(self, value: Any) -> bytes:
        return value.upper().encode()


class SinkQueueCase(SinkCase):
    def __init__(self, queue: Queue) -> None:
        self.queue = queue

    def sink(self):
        return RMQSink(self.queue.server.config(), self.queue.name, Upper()).as_sink()

    def record(self, number):
        return f"RECORD {number}"

    def visible(self):
        return self.queue.take()

    def spoil(self):
        return 5, AttributeError, "'int' object has no attribute 'upper'"


class TestSink(RefusesBadRecords):
    @pytest.fixture
    def make_case(self, queue):
        return lambda: SinkQueueCase(queue)


def test_a_checkpoint_waits_until_the_server_has_all_records(queue):
    case = SinkQueueCase(queue)
    job = SinkJob(case.sink(), 2)
    for number in range(2_500):
        job.write(number, case.record(number))
    job.begin_checkpoint()
    assert sorted(case.visible()) == sorted(job.written)
    job.crash(1)
    job.write(0, "AFTER")
    job.finish()
    assert case.visible() == ["AFTER"]


def test_a_schema_that_makes_no_bytes_is_refused(queue):
    class Nothing(SimpleStringSchema):
        def serialize(self, value: Any) -> Any:
            return None

    sink = RMQSink(queue.server.config(), queue.name, Nothing()).as_sink()
    job = SinkJob(sink, 1)
    with pytest.raises(TypeError, match="made None of 'a', where bytes are expected"):
        job.write(0, "a")
    job.subtasks[0].close()


# --------------------------------------------------------------------------------------------------- connections


def test_messages_of_a_lost_connection_are_neither_lost_nor_doubled(queue, caplog):
    """Close the connection from the server's side, as a restart of the server does."""
    queue.publish(*map(str, range(50)))
    source = RMQSource(queue.server.config(), queue.name, True, SimpleStringSchema()).as_source()
    connection = source.connect(0)
    (split,) = connection.discover_splits(1, first=True)
    reader = connection.create_reader(split, None)
    consumer = reader.consumer  # type: ignore[attr-defined]
    found: list[str] = []
    until(lambda: found.extend(reader.read(20).values) or len(found) >= 20)
    with caplog.at_level(logging.INFO):
        consumer.order(lambda channel: channel.basic_ack(999_999))  # the server closes the channel for it
        queue.publish("50")
        until(lambda: found.extend(reader.read(100).values) or "50" in found)
        until(lambda: len(found) >= 51)
    assert Counter(found) == Counter(map(str, range(51)))
    lines = [record.getMessage() for record in caplog.records if "reading queue" in record.getMessage()]
    assert len(lines) == 2 and "PRECONDITION_FAILED" in lines[0] and "connected again" in lines[1]
    position = reader.position()
    connection.checkpoint_completed({split.id: position})
    until(lambda: not reader.position()[2])
    connection.close()
    assert queue.count() == 0


def test_a_sink_writes_again_what_a_lost_connection_had_not_confirmed(queue):
    writer = (
        RMQSink(queue.server.config(), queue.name, SimpleStringSchema())
        .as_sink()
        .create_writer(WriterContext(0, 1, 0, "j", "o"), ())
    )
    for number in range(100):
        writer.write(str(number), None)
        if number == 50:
            writer.publisher.order(lambda channel: channel.basic_ack(999_999))
    writer.prepare_commit()
    writer.close()
    found = Counter(queue.take())
    assert found.keys() == set(map(str, range(100)))


@pytest.mark.parametrize("kind", ["source", "sink"])
def test_without_recovery_a_lost_connection_fails_the_job(queue, kind):
    config = queue.server.config(automatic_recovery=False)
    if kind == "source":
        connection = RMQSource(config, queue.name, True, SimpleStringSchema()).as_source().connect(0)
        (split,) = connection.discover_splits(1, first=True)
        reader = connection.create_reader(split, None)
        reader.consumer.order(lambda channel: channel.basic_ack(7))  # type: ignore[attr-defined]
        with pytest.raises(RabbitMQError, match=rf"reading queue '{queue.name}' of RabbitMQ .*PRECONDITION"):
            until(lambda: reader.read(1).values)
        connection.close()
    else:
        context = WriterContext(0, 1, 0, "j", "o")
        writer = RMQSink(config, queue.name, SimpleStringSchema()).as_sink().create_writer(context, ())
        writer.publisher.order(lambda channel: channel.basic_ack(7))
        with pytest.raises(RabbitMQError, match=r"writing to queue .*PRECONDITION"):
            until(lambda: writer.write("a", None) or writer.prepare_commit())
        writer.close()


@pytest.mark.parametrize("confirms", [True, False])
def test_a_consumer_that_is_not_read_stops_to_receive_and_goes_on_later(queue, confirms):
    queue.publish(*map(str, range(100)))
    consumer = QueueConsumer(queue.server.config(), queue.name, confirms=confirms, most_waiting=10)
    consumer.start()
    until(lambda: queue.consumers() == 0)
    found: list[bytes] = []
    until(lambda: (consumer.waiting and found.append(consumer.waiting.popleft().body)) or len(found) == 100)
    assert Counter(found) == Counter(str(number).encode() for number in range(100))
    consumer.close()
    assert queue.count() == 100


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda builder: builder.set_password("wrong"), "ProbableAuthenticationError|AuthenticationError"),
        (lambda builder: builder.set_virtual_host("none"), "vhost none not found|ProbableAccessDenied"),
        (lambda builder: builder.set_port(1), "Connection refused|AMQPConnector|ConnectionRefusedError"),
    ],
)
def test_a_server_that_refuses_is_an_error_that_says_so(queue, change, says):
    known = queue.server.config()
    builder = RMQConnectionConfig.Builder().set_host(known.host).set_port(known.port)
    config = change(builder.set_user_name(known.user_name).set_password(known.password)).build()
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    stream = env.add_source(RMQSource(config, queue.name, False, SimpleStringSchema()))
    with pytest.raises(JobExecutionError) as failed:
        collect_locally(stream)
    message = str(failed.value)
    assert f"reading queue '{queue.name}' of RabbitMQ at 127.0.0.1" in message
    assert PASSWORD not in message and any(each in message for each in says.split("|")), message


def test_a_queue_that_exists_keeps_its_properties_and_a_missing_one_is_made(queue):
    name = f"other-{uuid.uuid4().hex[:8]}"
    with queue.server.channel() as channel:
        channel.queue_declare(name, durable=False, auto_delete=False, arguments={"x-max-length": 100})
    for each in (name, f"{name}-new"):
        sink = RMQSink(queue.server.config(), each, SimpleStringSchema()).as_sink()
        job = SinkJob(sink, 1)
        job.write(0, "a")
        job.finish()
        with queue.server.channel() as channel:
            assert channel.queue_declare(each, passive=True).method.message_count == 1
            channel.queue_delete(each)


# ----------------------------------------------------------------------------------------------------------- jobs


def environment(tmp_path, *, parallelism=1, checkpoints=True):
    env = StreamExecutionEnvironment.get_execution_environment(Configuration()).set_parallelism(parallelism)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(10, 0))
    if checkpoints:
        env.enable_checkpointing(20).get_checkpoint_config().set_checkpoint_storage_dir(str(tmp_path / "checkpoints"))
    return env


def copy(env, source: Queue, target: Queue, *, ids: bool) -> None:
    """Draw a job from one queue to another, which ends at a message."""
    config = source.server.config()
    stream = env.add_source(RMQSource(config, source.name, ids, UntilEnd()), "in").map(lambda t: t, Types.STRING())
    stream.add_sink(RMQSink(config, target.name, SimpleStringSchema()))


@pytest.fixture
def other(rabbitmq_server):
    made = Queue(rabbitmq_server)
    yield made
    with rabbitmq_server.channel() as channel:
        channel.queue_delete(made.name)


def test_without_checkpoints_what_was_read_is_acknowledged(queue, other, tmp_path):
    queue.publish(*map(str, range(100)), END, "behind the end")
    env = environment(tmp_path, checkpoints=False)
    copy(env, queue, other, ids=False)
    with on_local_engine():
        env.execute()
    assert other.take() == list(map(str, range(100)))
    assert queue.take() == ["behind the end"]


def test_with_checkpoints_what_was_processed_is_acknowledged_and_the_rest_stays(queue, other, tmp_path):
    queue.publish(*map(str, range(100)), END, "behind the end")
    env = environment(tmp_path)
    copy(env, queue, other, ids=True)
    with on_local_engine():
        env.execute()
    assert other.take() == list(map(str, range(100)))
    assert queue.take() == ["behind the end"]


def test_a_slot_killed_before_an_acknowledgement_loses_nothing(queue, tmp_path, monkeypatch):
    """`tests/spark/test_rabbitmq.py` has the same with correlation ids, where nothing is doubled either."""
    (tmp_path / "faults").mkdir()
    faults = ["rabbitmq-acknowledge:*:2:kill"]
    monkeypatch.setenv("EKORN_FAULT", ",".join(faults))
    monkeypatch.setenv("EKORN_FAULT_DIR", str(tmp_path / "faults"))
    env = environment(tmp_path)
    config = queue.server.config(prefetch_count=40)
    stream = env.add_source(RMQSource(config, queue.name, False, UntilEnd()), "in")
    queue.publish(*map(str, range(150)), END)
    with on_process_engine(), stream.execute_and_collect() as records:
        found = set(records)
    assert len(list((tmp_path / "faults").iterdir())) == len(faults), "the slot was killed where it should be"
    assert found == set(map(str, range(150)))
    assert queue.count() == 0
