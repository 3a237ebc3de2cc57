"""A RabbitMQ server on loopback, on a free port, for the length of a test session.

The server is Debian's package `rabbitmq-server`; `make rabbitmq` installs it. Import `rabbitmq_server` and `queue` into
a conftest or a test module. A machine without the server fails the tests, so that no test run passes without it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pika
import pytest

from ekorn.datastream.connectors.rabbitmq import RMQConnectionConfig
from tests.servers.ports import free_ports

USER = "ekorn"
PASSWORD = "canary-Rabbit7-secret"
_COMMAND = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
_PR_SET_PDEATHSIG = 1  # of prctl(2)


class RabbitMQServer:
    """A server with a name server of its own, as Erlang needs one.

    Args:
        folder: Where it keeps its data.
        log: Takes what it prints.
    """

    def __init__(self, folder: Path, log: IO[str]) -> None:
        self.port, self._names_port, self._nodes_port = free_ports(3)
        self._folder = folder
        self._log = log
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """Start the server with the data that it has, and wait until it answers."""
        self._run("epmd", "-port", str(self._names_port))
        self._run(str(_COMMAND))
        self._wait_until_it_answers(self._processes[-1])

    def stop(self) -> None:
        """End the server at once, with all connections."""
        for process in reversed(self._processes):
            process.kill()
            process.wait(30)
        self._processes.clear()

    def config(self, **settings: Any) -> RMQConnectionConfig:
        """Return how a program connects."""
        builder = RMQConnectionConfig.Builder().set_host("127.0.0.1").set_port(self.port).set_virtual_host("/")
        builder.set_user_name(USER).set_password(PASSWORD).set_network_recovery_interval(50)
        for name, value in settings.items():
            getattr(builder, f"set_{name}")(value)
        return builder.build()

    @contextlib.contextmanager
    def channel(self) -> Iterator[Any]:
        """Yield a channel of a connection of its own."""
        connection = pika.BlockingConnection(self.config().parameters())
        try:
            yield connection.channel()
        finally:
            connection.close()

    def _wait_until_it_answers(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + 120
        while True:
            try:
                with self.channel():
                    return
            except (pika.exceptions.AMQPError, OSError) as error:
                if process.poll() is not None or time.monotonic() > deadline:
                    self._log.seek(0)
                    raise RuntimeError(f"the RabbitMQ server does not answer: {error!r}\n{self._log.read()}") from None
                time.sleep(0.05)

    def _run(self, *command: str) -> None:
        process = subprocess.Popen(
            command,
            env=self._environment(),
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            preexec_fn=_end_with_the_tests,  # noqa: PLW1509 - one system call, which takes no lock
        )
        self._processes.append(process)

    def _environment(self) -> dict[str, str]:
        folder = self._folder
        settings = {
            "listeners.tcp.default": f"127.0.0.1:{self.port}",
            "default_user": USER,
            "default_pass": PASSWORD,
            "disk_free_limit.absolute": "1MB",
        }
        (folder / "rabbitmq.conf").write_text("".join(f"{key} = {value}\n" for key, value in settings.items()))
        (folder / "plugins").write_text("[].")
        (folder / "environment").touch()
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),  # the secret of Erlang's nodes is there
            "LANG": "C.UTF-8",
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_EPMD_PORT": str(self._names_port),
            "RABBITMQ_CONF_ENV_FILE": str(folder / "environment"),
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
            "RABBITMQ_MNESIA_BASE": str(folder / "data"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_NODENAME": f"ekorn{self._nodes_port}@localhost",
            "RABBITMQ_DIST_PORT": str(self._nodes_port),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
            "RUNNING_UNDER_SYSTEMD": "1",  # the script becomes the server, without a shell around it
        }


def _end_with_the_tests() -> None:
    """Let the kernel end the server when the test run is killed, which cannot stop it."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


@contextlib.contextmanager
def running_server() -> Iterator[RabbitMQServer]:
    """Run a server in a temporary folder; yield it, and stop it at the end."""
    if not _COMMAND.exists():
        raise RuntimeError(
            "this machine has no RabbitMQ server, which the tests of its connector need; `make rabbitmq` installs "
            "Debian's package rabbitmq-server"
        )
    with (
        tempfile.TemporaryDirectory(prefix="ekorn-rabbitmq-", ignore_cleanup_errors=True) as folder,
        Path(folder, "log-of-the-server").open("a+") as log,
    ):
        server = RabbitMQServer(Path(folder), log)
        try:
            server.start()
            yield server
        finally:
            server.stop()


class Queue:
    """An empty queue of a test's own.

    Args:
        server: The server.
    """

    def __init__(self, server: RabbitMQServer) -> None:
        self.server = server
        self.name = f"test-{uuid.uuid4().hex[:12]}"
        self._published = 0
        with server.channel() as channel:
            channel.queue_declare(self.name, durable=True)

    def publish(self, *bodies: str, ids: bool = True) -> None:
        """Add messages, with correlation ids that count them."""
        with self.server.channel() as channel:
            for body in bodies:
                found = pika.BasicProperties(correlation_id=str(self._published) if ids else None, delivery_mode=2)
                channel.basic_publish("", self.name, body.encode(), found)
                self._published += 1

    def take(self) -> list[str]:
        """Take all messages that no consumer holds."""
        found = []
        with self.server.channel() as channel:
            while (message := channel.basic_get(self.name, auto_ack=True))[0] is not None:
                found.append(message[2].decode())
        return found

    def count(self) -> int:
        """Return the number of messages that no consumer holds."""
        with self.server.channel() as channel:
            return int(channel.queue_declare(self.name, passive=True).method.message_count)

    def consumers(self) -> int:
        """Return the number of consumers."""
        with self.server.channel() as channel:
            return int(channel.queue_declare(self.name, passive=True).method.consumer_count)


@pytest.fixture(scope="session")
def rabbitmq_server() -> Iterator[RabbitMQServer]:
    """Run the session's server."""
    with running_server() as server:
        yield server


@pytest.fixture
def queue(rabbitmq_server: RabbitMQServer) -> Iterator[Queue]:
    """Return an empty queue of this test's own."""
    made = Queue(rabbitmq_server)
    yield made
    with rabbitmq_server.channel() as channel:
        channel.queue_delete(made.name)
