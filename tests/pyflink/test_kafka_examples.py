"""PyFlink's example programs for Kafka and its formats run as they are, against a real broker.

The programs connect to localhost:9092, where the test hands connections on to its broker, and read without end: the job
is cancelled when everything is printed.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from ekorn.errors import JobCancelledError
from ekorn.pyflink import run_script
from ekorn.testing.local_run import on_local_engine
from tests.driver.submitted_jobs import noted_handles
from tests.servers.kafka.topics import consume

WAIT_S = 60
WORDS = [(1, "hi"), (2, "hello"), (3, "hi"), (4, "hello"), (5, "hi"), (6, "hello"), (6, "hello")]
ROWS = sorted(f"+I[{number},{word}]" for number, word in WORDS)
COUNTRIES = [(1, "USA"), (2, "Canada"), (3, "Germany")]
# What each program prints at last, and its topic.
READING = {
    "kafka_avro_format.py": ("test_avro_topic", ROWS),
    "kafka_csv_format.py": ("test_csv_topic", ROWS),
    "kafka_json_format.py": ("test_json_topic", ROWS),
    "kafka_bytearray_format.py": (
        "test_bytearray_topic",
        sorted(f'{{"id": {number}, "country": "{country}"}}' for number, country in COUNTRIES),
    ),
}
WRITING = "kafka_row_field_extractor_example.py", "row-extractor-example"


@pytest.fixture
def on_port_9092(kafka):
    """Hand connections to localhost:9092 on to the broker; the broker itself then names its own port."""
    try:
        listener = socket.create_server(("127.0.0.1", 9092))
    except OSError as error:
        pytest.skip(f"the examples connect to localhost:9092, which is in use on this machine: {error}")
    host, _, port = kafka.servers.partition(":")

    def serve():
        with contextlib.suppress(OSError):  # closed at the end of the test
            while True:
                client, _ = listener.accept()
                broker = socket.create_connection((host, int(port)))
                for one, other in ((client, broker), (broker, client)):
                    threading.Thread(target=copy, args=(one, other), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    yield kafka
    listener.close()


def copy(from_socket, to_socket):
    with contextlib.suppress(OSError), from_socket, to_socket:  # one side has gone
        while data := from_socket.recv(1 << 16):
            to_socket.sendall(data)


def lines_until_all_are_printed(script, count, capsys):
    """Run a program that writes and then reads without end; cancel it when it has printed so many lines of records."""
    printed, done = [], threading.Event()

    def cancel_when_printed():
        deadline = time.monotonic() + WAIT_S
        while sum(map(is_record, printed)) < count and time.monotonic() < deadline and not done.wait(0.05):
            printed.extend(capsys.readouterr().out.splitlines())
        if handles:
            handles[-1].cancel()

    with on_local_engine(), noted_handles() as handles:
        watcher = threading.Thread(target=cancel_when_printed)
        watcher.start()
        try:
            with contextlib.suppress(JobCancelledError):
                run_script(str(script), ())
        finally:
            done.set()
            watcher.join()
    printed.extend(capsys.readouterr().out.splitlines())
    assert len(handles) == 2, "one job writes, one reads"
    return sorted(filter(is_record, (line.partition("> ")[2] or line for line in printed)))


def is_record(line):
    return "+I[" in line or "country" in line


@pytest.mark.usefixtures("aliased")
@pytest.mark.filterwarnings("ignore:add_jars:UserWarning")
def test_the_kafka_examples_of_pyflink_run_as_they_are(on_port_9092, pyflink_examples, capsys):
    admin = AdminClient({"bootstrap.servers": on_port_9092.servers})
    topics = [topic for topic, _ in READING.values()] + [WRITING[1]]
    for created in admin.create_topics([NewTopic(topic, 1, 1) for topic in topics]).values():
        created.result()
    folder = pyflink_examples / "connectors"
    for script, (_, expected) in READING.items():
        assert lines_until_all_are_printed(folder / script, len(expected), capsys) == expected, script
    with on_local_engine():
        run_script(str(folder / WRITING[0]), ())
    found = [(message.key(), message.value()[:17]) for message in consume(on_port_9092, WRITING[1])]
    assert found == [
        (b"user-001", b'{"type": "purchas'),
        (b"user-002", b'{"type": "view", '),
        (b"user-001", b'{"type": "add_to_'),
        (b"user-003", b'{"type": "purchas'),
    ]
