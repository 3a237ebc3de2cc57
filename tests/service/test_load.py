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

from tamias.service.service_client import ServiceClient
from tests.live_jobs import parent_of, until
from tests.service.cluster import Node

pytestmark = pytest.mark.long

BOUNDED = """
import sys
from tamias.datastream import StreamExecutionEnvironment
from tamias.testing.local_run import on_local_engine

env = StreamExecutionEnvironment.get_execution_environment()
env.from_collection([1, 2, 3]).map(lambda n: n * int(sys.argv[1])).print()
with on_local_engine():
    env.execute("bounded")
"""
ROUNDS = 3


class Open(NamedTuple):
    """What a process has open."""

    threads: int
    descriptors: int
    children: int


def open_in(pid: int) -> Open:
    children = sum(parent_of(int(entry.name)) == pid for entry in Path("/proc").glob("[0-9]*"))
    return Open(len(os.listdir(f"/proc/{pid}/task")), len(os.listdir(f"/proc/{pid}/fd")), children)


@pytest.fixture
def node(tmp_path: Path, desk_folder: Path) -> Iterator[Node]:
    found = Node("one", tmp_path / "one", {"rest.port": "0", "taskmanager.numberOfTaskSlots": "8"})
    found.start()
    yield found
    if found.is_up:
        found.signal(signal.SIGTERM)


@pytest.mark.parametrize(
    ("jobs", "clients"), [pytest.param(8, 50), pytest.param(50, 200, marks=pytest.mark.soak, id="soak")]
)
def test_many_clients_and_jobs_lose_nothing_and_leave_nothing_open(
    node: Node, tmp_path: Path, jobs: int, clients: int
) -> None:
    assert node.process is not None
    script = tmp_path / "bounded.py"
    script.write_text(BOUNDED)
    token_file = str(node.folder / "token")
    ServiceClient(node.address, token_file).jobs()  # what is opened once is open now
    before = open_in(node.process.pid)

    def submit(number: int) -> str:
        client = ServiceClient(node.address, token_file)
        return str(client.submit(script, arguments=[str(number)]).get_job_id())

    def look(ids: list[str]) -> Counter[int]:
        statuses: Counter[int] = Counter()
        for turn in range(ROUNDS):
            job = ids[turn % len(ids)]
            for path in ("/overview", "/jobs/overview", "/service/jobs", f"/jobs/{job}/status", f"/jobs/{job}"):
                status = node.web().ask("GET", path).status
                # Details of a job that waits, starts or ends at this moment are refused with the reason.
                statuses[200 if path == f"/jobs/{job}" and status in (404, 409, 410) else status] += 1
        return statuses

    with ThreadPoolExecutor(clients) as several:
        ids = list(several.map(submit, range(jobs)))
        looks = several.map(look, [ids[number % jobs :] + ids for number in range(clients)])
        statuses = sum(looks, Counter[int]())
    assert statuses == {200: clients * ROUNDS * 5}
    assert len(set(ids)) == jobs

    client = ServiceClient(node.address, token_file)
    until(lambda: all(job["phase"] == "ENDED" for job in client.jobs()), 600)
    assert {job["id"]: job["state"] for job in client.jobs()} == dict.fromkeys(ids, "FINISHED")
    for number, job in enumerate(ids):
        log = (node.folder / "jobs" / job / "driver.log").read_text().splitlines()
        assert log[-3:] == [str(n * number) for n in (1, 2, 3)]
    until(lambda: open_in(node.process.pid if node.process else 0) <= before)
