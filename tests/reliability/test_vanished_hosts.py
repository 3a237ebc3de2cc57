"""A host that vanishes from the network: no connection is closed, and nobody hears anything any more.

A slot runs in a network namespace of its own, which is another host to it. Then its link goes down.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tamias.engine.slots.registering_pool import RegisteringSlotPool
from tamias.engine.slots.slot_handle import Heartbeat
from tamias.engine.spark.task_side.launch_slots import launch_slots
from tamias.slot.slot_config import DriverContact
from tamias.testing.process_engine import ProcessEngine
from tests.live_jobs import engines, environment, expected_tally, generated, is_running, tallied, until

KEYS = 7
RECORDS = 3_000
HERE, THERE = "10.213.7.1", "10.213.7.2"

LAUNCH = """
import pickle, sys
from tamias.engine.spark.task_side.launch_slots import launch_slots
for _ in launch_slots(*pickle.load(sys.stdin.buffer)):
    pass
"""


class OtherHost:
    """A network namespace with one link to this one."""

    def __init__(self) -> None:
        self.name = f"tamias-{os.getpid()}"
        self._link = f"tam-{os.getpid()}"[:15]

    def start(self) -> None:
        inside = ("ip", "netns", "exec", self.name, "ip")
        for command in [
            ("ip", "netns", "add", self.name),
            ("ip", "link", "add", self._link, "type", "veth", "peer", "name", "driver", "netns", self.name),
            ("ip", "addr", "add", f"{HERE}/30", "dev", self._link),
            ("ip", "link", "set", self._link, "up"),
            (*inside, "addr", "add", f"{THERE}/30", "dev", "driver"),
            (*inside, "link", "set", "driver", "up"),
            (*inside, "link", "set", "lo", "up"),
        ]:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                pytest.skip(f"this machine permits no network namespaces: {' '.join(command)}: {done.stderr.strip()}")

    def launch(self, driver: DriverContact, numbers: list[int]) -> None:
        """Start slots in the namespace."""
        subprocess.run(
            ["ip", "netns", "exec", self.name, sys.executable, "-c", LAUNCH],
            input=pickle.dumps((driver, numbers)),
            env=os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
            check=True,
        )

    def vanish(self) -> None:
        """Take the link away."""
        subprocess.run(["ip", "link", "set", self._link, "down"], check=True)

    def stop(self) -> None:
        subprocess.run(["ip", "link", "del", self._link], capture_output=True, check=False)
        subprocess.run(["ip", "netns", "del", self.name], capture_output=True, check=False)


@pytest.fixture
def other_host() -> Iterator[OtherHost]:
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need root and the ip command")
    host = OtherHost()
    try:
        host.start()
        yield host
    finally:
        host.stop()


def test_a_job_whose_slots_vanish_with_their_host_is_exact_and_the_slots_end(
    other_host: OtherHost, tmp_path: Path
) -> None:
    starts: list[list[int]] = []

    def launch(driver: DriverContact, numbers: list[int]) -> None:
        """Start slot 1 on the other host, and its replacement here."""
        starts.append(numbers)
        there = [number for number in numbers if len(starts) == 1 and number == 1]
        if there:
            other_host.launch(driver, there)
        for _ in launch_slots(driver, [number for number in numbers if number not in there]):
            pass

    heartbeat = Heartbeat(interval_s=0.2, timeout_s=3.0)
    env = environment(tmp_path / "checkpoints", parallelism=2, restarts=20)
    stream = tallied(generated(env, RECORDS, per_second=500), KEYS)
    with engines(
        lambda graph: ProcessEngine(graph, heartbeat, pool=RegisteringSlotPool(2, HERE, launch, heartbeat))
    ) as made:
        collected = stream.execute_and_collect()
        client = collected.job_client
        until(lambda: client.get_progress().checkpoints_completed > 1)
        lost = made[0].slot_pids[1]
        try:
            assert is_running(lost)
            other_host.vanish()
            found = list(collected)
            until(lambda: not is_running(lost), 20)  # nobody can tell it to end
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(lost, signal.SIGKILL)
    assert sorted(found) == sorted(expected_tally(RECORDS, KEYS))
    assert starts == [[0, 1], [1]]
    failure = client.get_progress().last_failure
    assert failure is not None and "slot 1" in failure and "heartbeat" in failure
