"""One Kafka broker on this machine, for tests and first steps. It has no security, and listens on loopback only."""

from __future__ import annotations

import base64
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ekorn.connectors.kafka.clients import library
from ekorn.errors import ConfigurationError, KafkaError
from ekorn.testing.kafka.jars import broker_version, download

START_S = 150.0  # three seconds on a machine without other work
_JAVA = ("-Xms256m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_SETTINGS = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@localhost:{controller}
listeners=PLAINTEXT://localhost:{port},CONTROLLER://localhost:{controller}
advertised.listeners=PLAINTEXT://localhost:{port}
controller.listener.names=CONTROLLER
log.dirs={folder}/data
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
log.cleaner.dedupe.buffer.size=4194304
"""


@contextmanager
def kafka_broker(port: int | None = None, folder: str | Path | None = None) -> Iterator[str]:
    """Run a Kafka broker on this machine; yield its address. It ends with the block, and with this process.

    The broker's jars (43 MB) are downloaded from Maven Central the first time, and kept in the user's cache. It needs
    Java 17 and the extra `kafka`.

    Args:
        port: Where clients reach it; without one, a free port.
        folder: Where its data and its log are. A later broker in the same folder has the same topics. Without one, a
            temporary folder, which is removed at the end.

    Example:
        A test with topics of its own, and a program that reads them::

            with kafka_broker() as address:
                source = KafkaSource.builder().set_bootstrap_servers(address)
    """
    library()  # says what to install, before anything is downloaded
    if port is not None and not _is_free(port):
        raise ConfigurationError(f"port {port} of localhost is in use: end what listens on it, or choose another port")
    own = Path(tempfile.mkdtemp(prefix="ekorn-kafka-")) if folder is None else None
    where = own or Path(folder or "").resolve()
    address = f"localhost:{port or _free_port()}"
    process = None
    try:
        where.mkdir(parents=True, exist_ok=True)
        command = [find_java(), *_JAVA, "-cp", f"{download(_cache())}/*"]
        process = _launch(command, where, address)
        _wait_until_it_answers(process, where, address)
        yield address
    finally:
        if process is not None:
            process.terminate()
            process.wait()
        if own is not None:
            shutil.rmtree(own, ignore_errors=True)


def find_java() -> str:
    """Return the path of Java: that of JAVA_HOME, or the first on the path."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")
    if found is None:
        raise ConfigurationError("Kafka needs Java 17 or newer, as Spark does: install it, or set JAVA_HOME")
    return found


def new_cluster_id() -> str:
    """Return an id as Kafka's tools make it: one that does not begin like an option of a command."""
    while True:
        made = base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
        if not made.startswith("-"):
            return made


def die_with_parent() -> None:
    """Have the kernel kill this process when the one that started it dies (Linux: PR_SET_PDEATHSIG)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def _launch(java: list[str], folder: Path, address: str) -> subprocess.Popen[bytes]:
    settings = folder / "server.properties"
    port = address.rpartition(":")[2]
    settings.write_text(_SETTINGS.format(port=port, controller=_free_port(), folder=folder), encoding="utf-8")
    if not (folder / "data" / "meta.properties").exists():
        _format(java, folder, settings)
    with open(folder / "broker.log", "ab") as log:
        return subprocess.Popen(
            [*java, "kafka.Kafka", str(settings)],
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C reaches this process, which ends the broker when its block has ended
            preexec_fn=die_with_parent,  # noqa: PLW1509 - one system call, nothing that a thread could have locked
        )


def _format(java: list[str], folder: Path, settings: Path) -> None:
    command = [*java, "kafka.tools.StorageTool", "format", "-t", new_cluster_id(), "-c", str(settings)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise KafkaError(f"Kafka cannot keep its data in {folder}", (done.stdout + done.stderr)[-2000:])


def _wait_until_it_answers(process: subprocess.Popen[bytes], folder: Path, address: str) -> None:
    limit = time.monotonic() + START_S
    while not _answers(address):
        if process.poll() is not None or time.monotonic() > limit:
            log = (folder / "broker.log").read_text(encoding="utf-8", errors="replace")
            raise KafkaError(f"the broker of Kafka {broker_version()} did not start; the end of its log", log[-3000:])
        time.sleep(0.1)


def _answers(address: str) -> bool:
    client: Any = library()
    from confluent_kafka.admin import AdminClient

    try:
        AdminClient({"bootstrap.servers": address, "log_level": 0}).list_topics(timeout=2)
    except client.KafkaException:
        return False
    return True


def _cache() -> Path:
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches) / "ekorn" / f"kafka-{broker_version()}"


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as Kafka's own listener
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
