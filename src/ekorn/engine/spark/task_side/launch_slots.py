"""Runs in Spark's Python worker on an executor: starts slot processes there, which then register with the driver.

`testing/slot_processes.py` calls it in the driver, to start slots on one machine as on a cluster.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator

from ekorn.slot_protocol.slot_config import DriverContact, SlotConfig
from ekorn.storage.result_modes import PRIVATE_UMASK, with_users_umask


def launch_slots(driver: DriverContact, numbers: Iterable[int], executor_pid: int | None = None) -> Iterator[int]:
    """Start a process for each slot number. The processes outlive the caller.

    Args:
        driver: Where the slots register.
        numbers: The numbers of the slots.
        executor_pid: The process with which the slots end; by default the executor's JVM above this process.
    """
    executor_pid = executor_pid or jvm_above(os.getpid())
    for number in numbers:
        _launch(driver, number, executor_pid)
        yield number


def _launch(driver: DriverContact, number: int, executor_pid: int | None) -> None:
    config = SlotConfig(
        slot=number,
        address=("", 0),
        secret=driver.secret,
        folder=tempfile.gettempdir(),
        python_path=list(sys.path),
        heartbeat_s=driver.heartbeat_s,
        driver=driver.address,
        generation=driver.generation,
        driver_timeout_s=driver.timeout_s,
        executor_pid=executor_pid,
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "ekorn.slot.slot_main"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=with_users_umask(os.environ) | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        umask=PRIVATE_UMASK,
        start_new_session=True,
    )
    data = pickle.dumps(config)
    assert process.stdin is not None
    process.stdin.write(len(data).to_bytes(8, "little") + data)
    process.stdin.close()


def jvm_above(pid: int) -> int | None:
    """Return the process id of the nearest JVM above a process; None without Linux's /proc, or without a JVM.

    The child of an executor's JVM is the daemon that forks Python workers, or the worker itself without the daemon.
    """
    while pid > 1:
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                before, _, after = file.read().rpartition(b")")  # a process may have a parenthesis in its name
        except OSError:  # no Linux, or the process has just ended
            return None
        if before.partition(b"(")[2] == b"java":
            return pid
        pid = int(after.split()[1])  # the parent
    return None
