"""Services that stand by for each other, each in a process of its own, and a job whose output must be complete once."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ekorn.service.client.service_client import ServiceClient
from ekorn.service.jobs.job_process import end_drivers_below
from ekorn.service.service_process import READY_FD
from ekorn.web.http_client import WebClient
from tests.live_jobs import process_state, until

# Numbers from a generator, counted by key, written exactly once; the job ends when all are written.
PROGRAM = """
import sys
from ekorn.common import Types, WatermarkStrategy
from ekorn.common.serialization import Encoder
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from ekorn.datastream.connectors.file_system import FileSink, RollingPolicy
from ekorn.testing.local_run import on_local_engine

out, records, per_second = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
env = StreamExecutionEnvironment.get_execution_environment()
source = DataGeneratorSource(lambda n: n, records, RateLimiterStrategy.per_second(per_second))
numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", Types.LONG()).uid("numbers")
pairs = numbers.map(lambda n: (n % 7, 1)).key_by(lambda pair: pair[0])
sums = pairs.reduce(lambda a, b: (a[0], a[1] + b[1])).uid("sums")
sink = FileSink.for_row_format(out, Encoder.simple_string_encoder())
sink = sink.with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy()).build()
sums.map(lambda pair: f"{pair[0]} {pair[1]}", Types.STRING()).sink_to(sink).uid("lines")
with on_local_engine():
    env.execute("counted")
"""


def misses(out: Path, records: int) -> str:
    """Return what of the job's output is lost or twice; empty if it is right."""
    found = Counter(line for part in out.rglob("part-*") for line in part.read_text().splitlines())
    right = {f"{n % 7} {n // 7 + 1}" for n in range(records)}
    lost, twice = right - set(found), [line for line, count in found.items() if count > 1]
    alien = set(found) - right
    return f"lost {len(lost)}, twice {len(twice)}, alien {len(alien)}" if lost or twice or alien else ""


def committed(out: Path) -> int:
    """Return how many lines are committed."""
    return sum(part.read_text().count("\n") for part in out.rglob("part-*"))


@dataclass
class Node:
    """One service of a cluster."""

    name: str
    folder: Path
    settings: Mapping[str, str]
    process: subprocess.Popen[bytes] | None = None
    address: str = ""

    def start(self) -> None:
        reads, writes = os.pipe()
        with open(self.folder.parent / f"{self.name}.log", "ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "ekorn.service.service_process"],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
                pass_fds=(writes,),
                env={**os.environ, READY_FD: str(writes)},
            )
        os.close(writes)
        assert self.process.stdin is not None
        with self.process.stdin as description:
            description.write(json.dumps({"ekorn.service.dir": str(self.folder), **self.settings}).encode())
        with open(reads, "rb") as ready:
            assert ready.read() == b"ready", (self.folder.parent / f"{self.name}.log").read_text()
        self.address = json.loads((self.folder / "service.json").read_bytes())["address"]

    @property
    def is_up(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def is_awake(self) -> bool:
        return self.process is not None and self.is_up and process_state(self.process.pid) != "T"

    def signal(self, number: int) -> None:
        assert self.process is not None
        os.kill(self.process.pid, number)
        if number == signal.SIGSTOP:
            pid = self.process.pid
            until(lambda: process_state(pid) == "T")
        if number in (signal.SIGKILL, signal.SIGTERM):
            self.process.wait()

    def own_view(self) -> dict[str, object]:
        """What this very service says of the cluster."""
        found: dict[str, object] = self.web().get("/service/cluster")
        return found

    def unfollowed(self, path: str) -> tuple[int, str]:
        """Return the status and the reason with which this very service answers."""
        link = http.client.HTTPConnection(self.address.removeprefix("http://"), timeout=20)
        token = (self.folder / "token").read_text().strip()
        link.request("GET", path, headers={"Authorization": f"Bearer {token}"})
        answer = link.getresponse()
        body = json.loads(answer.read())
        link.close()
        return answer.status, "".join(body.get("errors", []))

    def web(self, patience_s: float = 0.0, timeout_s: float = 20.0) -> WebClient:
        token = (self.folder / "token").read_text().strip()
        return WebClient(self.address, token, timeout_s=timeout_s, patience_s=patience_s)


@dataclass
class Cluster:
    """Services on one storage."""

    folder: Path
    lease_ms: int = 5000
    nodes: list[Node] = field(default_factory=list)
    more: Mapping[str, str] = field(default_factory=dict)

    @property
    def storage(self) -> Path:
        return self.folder / "shared"

    def add(self, name: str) -> Node:
        settings = {
            "rest.port": "0",
            "taskmanager.numberOfTaskSlots": "4",
            "high-availability.type": "storage",
            "high-availability.storageDir": str(self.storage),
            "high-availability.lease": f"{self.lease_ms} ms",
            **self.more,
        }
        node = Node(name, self.folder / name, settings)
        self.nodes.append(node)
        node.start()
        return node

    def client(self) -> ServiceClient:
        up = [node for node in self.nodes if node.is_awake]
        address = ",".join(node.address for node in up)
        return ServiceClient(address, str(up[0].folder / "token"))

    def leader(self, within_s: float = 60.0) -> Node:
        """Return the service that leads, as soon as one does."""
        found: list[Node] = []

        def is_led() -> bool:
            found[:] = [node for node in self.nodes if node.is_awake and _leads(node)]
            return len(found) == 1

        until(is_led, within_s)
        return found[0]

    def close(self) -> None:
        for node in self.nodes:
            if node.is_up:
                node.signal(signal.SIGKILL)
            end_drivers_below(node.folder / "jobs")


def _leads(node: Node) -> bool:
    view = node.own_view()
    me = view["self"]
    assert isinstance(me, dict)
    return bool(me["leads"])


@contextmanager
def cluster_in(folder: Path, names: str = "ab", **more: object) -> Iterator[Cluster]:
    """Run services, one for each letter."""
    cluster = Cluster(folder, **more)  # type: ignore[arg-type]
    try:
        for name in names:
            cluster.add(name)
        yield cluster
    finally:
        cluster.close()


def submit_counted(cluster: Cluster, folder: Path, name: str, *, records: int, per_second: int) -> tuple[str, Path]:
    """Submit the job; return its id and the folder of its output."""
    script = folder / f"{name}.py"
    script.write_text(PROGRAM)
    out = folder / f"out-{name}"
    checkpoints = (folder / "checkpoints").as_uri()
    job = cluster.client().submit(
        script,
        arguments=[str(out), str(records), str(per_second)],
        settings={"execution.checkpointing.interval": "100 ms", "execution.checkpointing.dir": checkpoints},
    )
    return str(job.get_job_id()), out


def lose_disk(cluster: Cluster) -> Path:
    """Take the storage away; return where it is meanwhile."""
    away = cluster.folder / "away"
    os.rename(cluster.storage, away)
    return away


def bring_disk_back(cluster: Cluster, away: Path) -> None:
    shutil.rmtree(cluster.storage, ignore_errors=True)  # what a service may have written to the empty place
    os.rename(away, cluster.storage)
