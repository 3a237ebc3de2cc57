"""Another host, as the network sees it: a network namespace of this machine. Import `other_host` into a test module."""

from __future__ import annotations

import ipaddress
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Iterator

import pytest

from ekorn.slot_protocol.slot_config import DriverContact

# Tests run in several processes at a time: the link of each has a network of its own, of four addresses.
_NETWORK = ipaddress.ip_network("10.213.0.0/16")[4 * (os.getpid() % (1 << 14))]
HERE, THERE = str(_NETWORK + 1), str(_NETWORK + 2)
NOBODY = "02:00:00:00:00:99"  # a hardware address that no host of the link has

LAUNCH = """
import pickle, sys
from ekorn.engine.spark.task_side.launch_slots import launch_slots
for _ in launch_slots(*pickle.load(sys.stdin.buffer)):
    pass
"""


class OtherHost:
    """A network namespace with one link to this one."""

    def __init__(self) -> None:
        self.name = f"ekorn-{os.getpid()}"
        self.interface = f"tam-{os.getpid()}"[:15]  # this side of the link

    def start(self) -> None:
        inside = ("ip", "netns", "exec", self.name, "ip")
        for command in [
            ("ip", "netns", "add", self.name),
            ("ip", "link", "add", self.interface, "type", "veth", "peer", "name", "driver", "netns", self.name),
            ("ip", "addr", "add", f"{HERE}/30", "dev", self.interface),
            ("ip", "link", "set", self.interface, "up"),
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
        """Lose every packet between the two hosts from now on.

        Both send to a hardware address that the other does not have. The link stays up: without it their routes would
        be gone too, packets would take the default route, and what answers them there would end connections.
        """
        for side, neighbour in self._sides():
            subprocess.run([*side, "replace", *neighbour, "lladdr", NOBODY, "nud", "permanent"], check=True)

    def come_back(self) -> None:
        """Let packets arrive again."""
        for side, neighbour in self._sides():
            subprocess.run([*side, "del", *neighbour], check=True)

    def _sides(self) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
        """Return, for each host, the command for its table of neighbours and the neighbour."""
        here = ("ip", "neigh"), (THERE, "dev", self.interface)
        there = ("ip", "netns", "exec", self.name, "ip", "neigh"), (HERE, "dev", "driver")
        return [here, there]

    def stop(self) -> None:
        subprocess.run(["ip", "link", "del", self.interface], capture_output=True, check=False)
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
