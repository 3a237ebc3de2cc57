"""The search for open transactions, against brokers that answer as they do for a moment while leaders change."""

import socket
import struct
import threading
from contextlib import contextmanager

import pytest

from ekorn.clock import ManualClock
from ekorn.connectors.kafka.client_properties import ClientProperties
from ekorn.connectors.kafka.transactions import TransactionAdmin, TransactionCommitter
from ekorn.errors import KafkaError

LEADERLESS, UNKNOWN_TOPIC, NOT_SHOWN = -1, 3, 29


def text(value):
    return struct.pack(">h", len(value)) + value.encode()


def metadata(port, leader=1, error=0, brokers=1):
    """Make an answer to Metadata: one broker, and one partition of the topic whose leaders coordinate."""
    broker = struct.pack(">i", 1) + text("127.0.0.1") + struct.pack(">i", port) + text("rack")
    partition = struct.pack(">hiiii", 0, 0, leader, 0, 0)
    topic = struct.pack(">h", error) + text("__transaction_state") + b"\1"
    topic += struct.pack(">i", 0 if error else 1) + (b"" if error else partition)
    listed = struct.pack(">i", brokers) + broker * brokers
    return struct.pack(">i", 0) + listed + text("cluster") + struct.pack(">ii", 1, 1) + topic


def transactions(*names, error=0):
    """Make an answer to ListTransactions."""
    listed = b"".join(bytes([len(n) + 1]) + n.encode() + bytes(8) + b"\x08Ongoing" + b"\0" for n in names)
    return b"\0" + struct.pack(">ih", 0, error) + b"\1" + bytes([len(names) + 1]) + listed + b"\0"


@contextmanager
def broker(*answers):
    """Run a broker that gives these answers, each a function of its port; yield an admin that asks it."""
    server = socket.create_server(("127.0.0.1", 0))
    port = server.getsockname()[1]

    def serve():
        connection, _ = server.accept()
        with connection:
            for answer in answers:
                header = connection.recv(4, socket.MSG_WAITALL)
                if not header:
                    return
                (size,) = struct.unpack(">i", header)
                number = connection.recv(size, socket.MSG_WAITALL)[4:8]
                body = number + answer(port)
                connection.sendall(struct.pack(">i", len(body)) + body)

    threading.Thread(target=serve, daemon=True).start()
    admin = TransactionAdmin(ClientProperties({"bootstrap.servers": f"127.0.0.1:{port}"}), ManualClock())
    yield admin
    admin.close()
    server.close()


def test_a_coordinator_without_a_leader_is_waited_for():
    leaderless, led = (lambda port: metadata(port, LEADERLESS)), metadata
    with broker(leaderless, led, lambda _: transactions("a", "b")) as admin:
        assert admin.open_transactions() == ["a", "b"]


def test_a_cluster_that_names_no_broker_is_asked_again():
    with broker(lambda port: metadata(port, brokers=0), metadata, lambda _: transactions("a")) as admin:
        assert admin.open_transactions() == ["a"]


def test_a_coordinator_that_still_loads_is_asked_again():
    loading = 14
    with broker(metadata, lambda _: transactions(error=loading), metadata, lambda _: transactions("a")) as admin:
        assert admin.open_transactions() == ["a"]


def test_a_cluster_without_any_transaction_has_none_open():
    with broker(lambda port: metadata(port, error=UNKNOWN_TOPIC)) as admin:
        assert admin.open_transactions() == []


def test_a_user_who_must_not_see_the_coordinators_asks_every_broker():
    with broker(lambda port: metadata(port, error=NOT_SHOWN), lambda _: transactions("a")) as admin:
        assert admin.open_transactions() == ["a"]


def test_a_closed_committer_leaves_no_connection_open():
    hung_up = threading.Event()
    server = socket.create_server(("127.0.0.1", 0))

    def serve():
        connection, _ = server.accept()
        with connection:
            size = struct.unpack(">i", connection.recv(4, socket.MSG_WAITALL))[0]
            body = connection.recv(size, socket.MSG_WAITALL)[4:8] + metadata(0, error=UNKNOWN_TOPIC)
            connection.sendall(struct.pack(">i", len(body)) + body)
            if connection.recv(1) == b"":
                hung_up.set()

    threading.Thread(target=serve, daemon=True).start()
    servers = f"127.0.0.1:{server.getsockname()[1]}"
    admin = TransactionAdmin(ClientProperties({"bootstrap.servers": servers}), ManualClock())
    committer = TransactionCommitter(admin, ManualClock(), 1_000, ignores_late_failures=False)
    assert admin.open_transactions() == []
    assert not hung_up.is_set()
    committer.close()
    assert hung_up.wait(30)
    server.close()


def test_coordinators_that_stay_without_a_leader_are_an_error_after_a_minute():
    with (
        broker(*[lambda port: metadata(port, LEADERLESS)] * 100) as admin,
        pytest.raises(KafkaError, match="listing transactions: no answer within 60 s: COORDINATOR_NOT_AVAILABLE"),
    ):
        admin.open_transactions()
