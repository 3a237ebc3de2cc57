"""A job on a standalone cluster with encrypted links: what passes over the network shows nothing of the program."""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live_jobs import until
from tests.sniffer import sniffing
from tests.spark.processes import listening_sockets, run_driver, slot_processes
from tests.spark.standalone_cluster import Cluster

# The driver sends the program, with this constant in it, to its slots. Nothing of it passes through Spark, which would
# have to encrypt its own connections.
CANARY = b"canary-" + os.urandom(8).hex().encode()
CONTROL = b"control-" + os.urandom(8).hex().encode()  # sent in plain, to show that the search finds something

PROGRAM = """
import os, signal, sys
from collections import Counter
from ekorn.common import Configuration, WatermarkStrategy
from ekorn.common.restart_strategy import RestartStrategies
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy

master, folder, encryption = sys.argv[1:]
conf = Configuration()
for key, value in {"spark.master": master, "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1",
                   "spark.cores.max": "4", "spark.executor.memory": "512m", "spark.ui.enabled": "false",
                   "ekorn.links.encryption": encryption}.items():
    conf.set_string(key, value)
env = StreamExecutionEnvironment.get_execution_environment(conf)
env.set_parallelism(2)
env.enable_checkpointing(300)
env.get_checkpoint_config().set_checkpoint_storage_dir(folder)
env.set_restart_strategy(RestartStrategies.fixed_delay_restart(5, 200))
canary = os.environ["CANARY"]
source = DataGeneratorSource(lambda n: (n % 10, len(canary)), 3000, RateLimiterStrategy.per_second(600))
numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").map(lambda r: (r[0], 1))
counted = numbers.key_by(lambda r: r[0]).reduce(lambda a, b: (a[0], a[1] + b[1])).map(lambda r: (*r, os.getpid()))
results, killed = [], False
with counted.execute_and_collect("encrypted") as rows:
    for digit, count, pid in rows:
        results.append((digit, count))
        if not killed and len(results) > 800:
            os.kill(pid, signal.SIGKILL)
            killed = True
assert Counter(results) == Counter((d, n) for d in range(10) for n in range(1, 301)), len(results)
print("EXACT", killed)
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    started = Cluster(tmp_path)
    yield started
    started.stop()


def greeting(address: tuple[str, int]) -> bytes:
    """Return what a listener says to a peer that says nothing for a second."""
    with socket.create_connection(address, timeout=1) as peer:
        try:
            return peer.recv(100)
        except TimeoutError:
            return b""


def certificate_of(address: tuple[str, int]) -> bytes:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(address, timeout=10) as peer, context.wrap_socket(peer) as encrypted:
        assert encrypted.version() == "TLSv1.3"
        return encrypted.getpeercert(binary_form=True) or b""


def ports_of_slots(driver: subprocess.Popen[str]) -> set[tuple[str, int]]:
    """Wait until the slots of the job listen; return where."""
    limit = time.monotonic() + 150
    while True:
        found = {address for pid in slot_processes() for address in listening_sockets(pid)}
        if len(found) >= 2:
            return found
        assert time.monotonic() < limit and driver.poll() is None, "the slots did not start"
        time.sleep(0.1)  # other processes start: there is nothing to wait on


def send_in_plain(word: bytes) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(word, ("127.0.0.1", 9))


@pytest.mark.soak  # minutes: CI has half an hour for everything
@pytest.mark.timeout(600)  # a cluster of six processes on a machine that may be busy
def test_a_job_with_encrypted_links_is_exact_and_the_network_shows_nothing(cluster: Cluster, tmp_path: Path) -> None:
    with sniffing("lo", CANARY, CONTROL) as sniffer:
        variables = {"CANARY": CANARY.decode()}
        driver = run_driver(PROGRAM, cluster.master, str(tmp_path / "checkpoints"), "required", env=variables)
        try:
            ports = ports_of_slots(driver)
            assert {greeting(port) for port in ports} == {b""}
            (certificate,) = {certificate_of(port) for port in ports}
            assert certificate, "all slots have the certificate of the job"
            output, _ = driver.communicate(timeout=240)
        finally:
            driver.kill()
        assert driver.returncode == 0 and "EXACT True" in output, output[-4000:]
        assert "Spark's own connections are not" in output, output[-4000:]
        send_in_plain(CONTROL)
        until(lambda: sniffer.seen[CONTROL])
        assert sniffer.seen[CANARY] == 0
