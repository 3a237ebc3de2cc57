"""What strangers find out about a job on embedded Spark: no port answers them, and no command line shows a setting."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.spark.processes import descendants, listening_sockets, run_driver

CANARY = "canary-" + os.urandom(8).hex()

PROGRAM = """
import os, sys
from ekorn.common import Configuration
from ekorn.datastream import StreamExecutionEnvironment
conf = Configuration()
conf.set_string("spark.hadoop.fs.s3a.secret.key", os.environ["CANARY"])
for setting in sys.argv[1:]:
    conf.set_string(*setting.split("="))
env = StreamExecutionEnvironment.get_execution_environment(conf)
env.set_parallelism(2)
with env.from_collection([1, 2]).key_by(lambda n: n).map(lambda n: n).execute_and_collect() as rows:
    print("ROWS", sorted(rows), flush=True)
    from pyspark import SparkContext
    context = SparkContext._active_spark_context
    print("KNOWN", context.getConf().get("spark.hadoop.fs.s3a.secret.key") == os.environ["CANARY"], flush=True)
    print("READY", flush=True)
    input()
"""

# A request to Spark's RPC without authentication: length of the frame, type 3, number, length of the body, body.
RPC = struct.pack(">qbqi", 8 + 1 + 8 + 4 + 8, 3, 7, 8) + b"\0" * 8
SAYINGS = {"nothing": b"", "garbage": bytes(range(1, 255)), "http": b"GET / HTTP/1.0\r\n\r\n", "rpc": RPC}
SAYINGS["py4j"] = b"m\nd\no0\ne\n"  # a command that Py4J knows: forget an object
REFUSALS = (b"Authentication error", b"Unknown command received", b"SASL", b"SaslMessage")


class Running:
    """A driver whose job has run, with all of its processes; the command lines were watched from the start."""

    def __init__(self, *settings: str) -> None:
        self.driver = run_driver(PROGRAM, *settings, env={"CANARY": CANARY}, stdin=subprocess.PIPE)
        self.command_lines: set[bytes] = set()
        self.output = ""
        assert self.driver.stdout is not None
        os.set_blocking(self.driver.stdout.fileno(), False)
        limit = time.monotonic() + 240
        while "READY" not in self.output:
            assert time.monotonic() < limit and self.driver.poll() is None, self.output
            with contextlib.suppress(BlockingIOError):  # nothing was printed since
                self.output += os.read(self.driver.stdout.fileno(), 65536).decode()
            for pid in self.pids:
                with contextlib.suppress(OSError):  # the process has ended
                    self.command_lines.add(Path(f"/proc/{pid}/cmdline").read_bytes())
            time.sleep(0.02)  # other processes start: there is nothing to wait on

    @property
    def pids(self) -> list[int]:
        return [self.driver.pid, *descendants(self.driver.pid)]

    def stop(self) -> None:
        assert self.driver.stdout is not None
        os.set_blocking(self.driver.stdout.fileno(), True)
        self.driver.communicate("\n", timeout=60)


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    job = Running()
    yield job
    job.stop()


def answer(address: tuple[str, int], said: bytes) -> bytes:
    """Connect and say something; return what comes back within two seconds."""
    heard = b""
    try:
        stranger = socket.create_connection(address, timeout=2)
    except ConnectionRefusedError:
        return b""  # a worker of Spark has ended meanwhile
    with stranger:
        try:
            stranger.sendall(said)
            while part := stranger.recv(65536):
                heard += part
        except OSError:
            pass  # silence, or the connection was closed while we were sending
    return heard


def own_addresses() -> set[str]:
    """Return the addresses of this machine that others can reach."""
    found = set()
    with contextlib.suppress(OSError):  # the machine's name may have no address
        found |= {str(info[4][0]) for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing, but chooses the address
            found.add(probe.getsockname()[0])
        except OSError:
            pass  # there is no network
    return {address for address in found if not address.startswith("127.")}


def test_no_port_is_open_to_other_machines(running: Running) -> None:
    sockets = {found for pid in running.pids for found in listening_sockets(pid)}
    assert sockets
    assert {host for host, _ in sockets} <= {"127.0.0.1", "::1", "::ffff:127.0.0.1"}
    for host in own_addresses():
        for _, port in sockets:
            with pytest.raises(OSError):
                socket.create_connection((host, port), timeout=2).close()


def test_no_port_tells_a_stranger_anything(running: Running) -> None:
    """A stranger is told nothing, a challenge of a slot, or that it is not authenticated."""
    told = []
    for host, port in {found for pid in running.pids for found in listening_sockets(pid)}:
        for name, said in SAYINGS.items():
            heard = answer((host.removeprefix("::ffff:"), port), said)
            refusal = any(word in heard for word in REFUSALS)
            if heard and not refusal and not (heard.startswith(b"ekorn/") and len(heard) <= 72):
                told.append((port, name, heard[:300]))
    assert told == []


def test_spark_settings_are_on_no_command_line(running: Running) -> None:
    assert "KNOWN True" in running.output and "ROWS [1, 2]" in running.output
    assert any(b"org.apache.spark.deploy.SparkSubmit" in line for line in running.command_lines)
    assert [line for line in running.command_lines if CANARY.encode() in line] == []


def test_a_page_that_the_user_asks_for_listens_on_loopback() -> None:
    job = Running("spark.ui.enabled=true", "spark.ui.port=4871")
    try:
        sockets = {found for pid in job.pids for found in listening_sockets(pid)}
        assert any(port >= 4871 and port < 4890 for _, port in sockets)
        assert {host for host, _ in sockets} <= {"127.0.0.1", "::1", "::ffff:127.0.0.1"}
    finally:
        job.stop()
