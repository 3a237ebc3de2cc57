"""Many clients and jobs at once on one service: every request is answered, every job ends, and nothing is left open."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest

from ekorn.service.client.service_client import ServiceClient
from tests.live_jobs import parent_of, until
from tests.service.cluster import Node

pytestmark = pytest.mark.long

BOUNDED = """
import sys
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.testing.local_run import on_local_engine

env = StreamExecutionEnvironment.get_execution_environment()
env.from_collection([1, 2, 3]).map(lambda n: n * int(sys.argv[1])).print()
with on_local_engine():
    env.execute("bounded")
"""
ROUNDS = 3
ENOUGH_S = 240.0  # fifty drivers that start have both cores: an answer may take long, and must come


class Open(NamedTuple):
    """What a process has open."""

    threads: int
    descriptors: int
    children: int


def open_in(pid: int) -> Open:
    children = sum(parent_of(int(entry.name)) == pid for entry in Path("/proc").glob("[0-9]*"))
    return Open(len(os.listdir(f"/proc/{pid}/task")), len(os.listdir(f"/proc/{pid}/fd")), children)


def resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Load(NamedTuple):
    """How many jobs run at once, for how many clients, and how often."""

    jobs: int
    clients: int
    waves: int


@pytest.fixture
def node(tmp_path: Path, runtime_dir: Path, load: Load) -> Iterator[Node]:
    found = Node("one", tmp_path / "one", {"rest.port": "0", "taskmanager.numberOfTaskSlots": str(load.jobs)})
    found.start()
    yield found
    if found.is_up:
        found.signal(signal.SIGTERM)


@pytest.mark.parametrize(
    "load", [pytest.param(Load(8, 50, 1), id="some"), pytest.param(Load(50, 200, 4), marks=pytest.mark.soak, id="soak")]
)
def test_many_clients_and_jobs_lose_nothing_and_leave_nothing_open(node: Node, tmp_path: Path, load: Load) -> None:
    assert node.process is not None
    pid = node.process.pid
    script = tmp_path / "bounded.py"
    script.write_text(BOUNDED)
    ServiceClient(node.address, str(node.folder / "token")).jobs()  # what is opened once is open now
    before = open_in(pid)
    memory = []
    for wave in range(load.waves):
        play(node, script, load)
        until(lambda: open_in(pid) <= before, 60)
        memory.append(resident_bytes(pid))
        print(f"wave {wave + 1}: {open_in(pid)}, {memory[-1] >> 20} MiB; before {before}")
    full = memory[1:] or memory  # a service remembers a hundred jobs that have ended: two waves of fifty
    assert full[-1] - full[0] < 16 << 20, f"MiB after each wave: {[each >> 20 for each in memory]}"


def play(node: Node, script: Path, load: Load) -> None:
    """Let clients submit jobs and look at them until all have ended; check every answer and the output of every job."""
    token_file = str(node.folder / "token")

    def submit(number: int) -> str:
        client = ServiceClient(node.address, token_file)
        return str(client.submit(script, arguments=[str(number)]).get_job_id())

    def look(ids: list[str]) -> Counter[int]:
        statuses: Counter[int] = Counter()
        for turn in range(ROUNDS):
            job = ids[turn % len(ids)]
            for path in ("/overview", "/jobs/overview", "/service/jobs", f"/jobs/{job}/status", f"/jobs/{job}"):
                status = node.web(timeout_s=ENOUGH_S).ask("GET", path).status
                # Details of a job that waits, starts or ends at this moment are refused with the reason.
                statuses[200 if path == f"/jobs/{job}" and status in (404, 409, 410) else status] += 1
        return statuses

    with ThreadPoolExecutor(load.clients) as several:
        ids = list(several.map(submit, range(load.jobs)))
        looks = several.map(look, [ids[number % load.jobs :] + ids for number in range(load.clients)])
        statuses = sum(looks, Counter[int]())
    assert statuses == {200: load.clients * ROUNDS * 5}
    assert len(set(ids)) == load.jobs

    client = ServiceClient(node.address, token_file)
    until(lambda: all(job["phase"] == "ENDED" for job in client.jobs()), 600)
    states = {job["id"]: job["state"] for job in client.jobs()}
    assert {job: states[job] for job in ids} == dict.fromkeys(ids, "FINISHED")
    for number, job in enumerate(ids):
        log = (node.folder / "jobs" / job / "driver.log").read_text().splitlines()
        assert [line for line in log if line.isdecimal()] == [str(n * number) for n in (1, 2, 3)]
