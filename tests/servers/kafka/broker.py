"""Kafka brokers on loopback, started from their jars in about three seconds.

A broker listens three times: without security; with TLS and SASL (`secured`), where PLAIN and SCRAM know one user; and
with TLS for clients that have a certificate (`certified`). Most
tests share one broker (`kafka`); `cluster.py` starts several.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from ekorn.testing.kafka.broker import die_with_parent, find_java, new_cluster_id
from ekorn.testing.kafka.jars import download
from tests.live_jobs import until
from tests.servers.kafka.certificates import write_certificates
from tests.servers.kafka.jars import FOLDER
from tests.servers.ports import free_ports

USER = "alice"
PASSWORD = "canary-password-of-alice"
_START_S = 150.0  # three seconds on a machine without other work
QUICK_START = ("-Xms256m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")  # at the price of its speed
AS_SHIPPED = ("-Xms1g", "-Xmx1g", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20")  # by Kafka's own start script
_SETTINGS = """
process.roles=broker,controller
node.id={node}
controller.quorum.voters={voters}
listeners=PLAINTEXT://127.0.0.1:{plain},SECURED://127.0.0.1:{secured},CERTIFIED://127.0.0.1:{certified},\
CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{plain},SECURED://127.0.0.1:{secured},CERTIFIED://127.0.0.1:{certified}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SECURED:SASL_SSL,CERTIFIED:SSL
listener.name.certified.ssl.keystore.type=PEM
listener.name.certified.ssl.keystore.location={folder}/server.pem
listener.name.certified.ssl.truststore.type=PEM
listener.name.certified.ssl.truststore.location={folder}/ca.pem
listener.name.certified.ssl.client.auth=required
listener.name.secured.ssl.keystore.type=PEM
listener.name.secured.ssl.keystore.location={folder}/server.pem
listener.name.secured.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256
listener.name.secured.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \
user_{user}="{password}";
listener.name.secured.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
log.dirs={folder}/data
num.network.threads=2
num.io.threads=4
offsets.topic.num.partitions=1
offsets.topic.replication.factor={replicas}
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor={replicas}
transaction.state.log.min.isr=1
transaction.abort.timed.out.transaction.cleanup.interval.ms=200
broker.session.timeout.ms=2000
broker.heartbeat.interval.ms=200
group.initial.rebalance.delay.ms=0
log.cleaner.dedupe.buffer.size=4194304
auto.create.topics.enable=false
"""


class Ports(NamedTuple):
    """Where one broker listens."""

    plain: int
    secured: int
    certified: int
    controller: int


class Broker:
    """A running broker. It dies with the process that started it.

    Args:
        folder: Where its data, settings and log go. It has the certificates already.
        libraries: Kafka's jars.
        cluster: The id of its cluster.
        ports: The ports of all brokers of the cluster.
        number: Its own place among them, from 0.
        java: The options of its Java.
    """

    replicas = 1  # of a topic that is created here

    def __init__(
        self,
        folder: Path,
        libraries: Path,
        cluster: str,
        ports: Sequence[Ports],
        number: int = 0,
        *,
        java: Sequence[str] = QUICK_START,
    ) -> None:
        own = ports[number]
        self.node = number + 1
        self.servers = f"127.0.0.1:{own.plain}"
        self.secured = f"127.0.0.1:{own.secured}"
        self.certified = f"127.0.0.1:{own.certified}"
        self.certificate = folder / "ca.pem"
        self.client_certificate = folder / "client.pem"  # with its key
        self.client_key = folder / "client-secret.pem"
        self._folder = folder
        self._java = [find_java(), *java, "-cp", f"{libraries}/*"]
        self._settings = folder / "server.properties"
        self._settings.write_text(
            _SETTINGS.format(
                plain=own.plain,
                secured=own.secured,
                certified=own.certified,
                controller=own.controller,
                node=self.node,
                voters=",".join(f"{node}@127.0.0.1:{each.controller}" for node, each in enumerate(ports, 1)),
                replicas=min(2, len(ports)),
                folder=folder,
                user=USER,
                password=PASSWORD,
            )
        )
        user = f"SCRAM-SHA-256=[name={USER},password={PASSWORD}]"
        self._run("kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(self._settings), "--add-scram", user)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the broker with the data that it has, and wait until it answers."""
        self.launch()
        self.wait_until_it_answers()

    def launch(self) -> None:
        """Start the broker's process."""
        log = open(self._folder / "broker.log", "ab")  # noqa: SIM115 - the broker writes to it
        self._process = subprocess.Popen(
            [*self._java, "kafka.Kafka", str(self._settings)],
            stdout=log,
            stderr=log,
            preexec_fn=die_with_parent,  # noqa: PLW1509 - one system call, nothing that a thread could have locked
        )
        log.close()

    def wait_until_it_answers(self) -> None:
        assert self._process is not None, "launch() comes before"
        deadline = time.monotonic() + _START_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the Kafka broker of the tests does not start:\n{self._log_end()}")
            time.sleep(0.1)

    def kill(self) -> None:
        """Kill the broker, as a power loss does, unless it is dead."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop the broker's process, with all its threads; continue it at the end."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        try:
            until(self._is_stopped)  # a thread may answer a request for a moment after the signal
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    def _is_stopped(self) -> bool:
        assert self._process is not None
        threads = Path(f"/proc/{self._process.pid}/task").glob("*/stat")
        return all(thread.read_text().rpartition(")")[2].split()[0] == "T" for thread in threads)

    def _answers(self) -> bool:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        try:
            AdminClient({"bootstrap.servers": self.servers, "log_level": 0}).list_topics(timeout=2)
        except KafkaException:
            return False
        return True

    def _run(self, *command: str) -> None:
        done = subprocess.run([*self._java, *command], capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{command[0]} of Kafka failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")

    def _log_end(self) -> str:
        return (self._folder / "broker.log").read_text(errors="replace")[-3000:]


@contextmanager
def running_broker(java: Sequence[str] = QUICK_START) -> Iterator[Broker]:
    """Run a broker in a folder of its own; remove both at the end."""
    with own_folder() as folder:
        write_certificates(folder)
        broker = Broker(folder, download(FOLDER), new_cluster_id(), ports_of_brokers(1), java=java)
        try:
            broker.start()
            yield broker
        finally:
            broker.kill()


@contextmanager
def own_folder() -> Iterator[Path]:
    """Make a folder for brokers; remove it at the end."""
    folder = Path(tempfile.mkdtemp(prefix="t-kafka-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def kafka() -> Iterator[Broker]:
    """Run the session's broker."""
    with running_broker() as broker:
        yield broker


def ports_of_brokers(count: int) -> list[Ports]:
    """Return the ports for some brokers."""
    free = free_ports(count * 4)
    return [Ports(*free[at : at + 4]) for at in range(0, len(free), 4)]
