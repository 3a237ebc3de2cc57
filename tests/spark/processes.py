"""Processes of a job on this machine: drivers that tests start, and the slots and Python workers below them."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from random import Random

ROOT = Path(__file__).resolve().parents[2]
TEST_RUN = ("EKORN_TEST_RUN", str(os.getpid()))  # a variable that every process of this test run inherits


def run_driver(
    program: str, *arguments: str, env: dict[str, str] | None = None, stdin: int | None = None
) -> subprocess.Popen[str]:
    """Start a driver process that runs a Python program given as text."""
    path = f"{ROOT / 'src'}{os.pathsep}{ROOT}"
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        env=os.environ | {"PYTHONPATH": path, "PYTHONUNBUFFERED": "1"} | (env or {}),
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def slot_processes() -> list[int]:
    """Return the process ids of all slots that descend from this test run."""
    mark = "=".join(TEST_RUN).encode()
    return [pid for pid in _all_pids() if is_slot(pid) and mark in _read(pid, "environ")]


def marked_processes() -> list[tuple[str, bytes]]:
    """Return the command line of every process of this test run, and command line and environment together."""
    mark = "=".join(TEST_RUN).encode()
    processes = [(_read(pid, "cmdline"), _read(pid, "environ")) for pid in _all_pids()]
    return [
        (command.replace(b"\0", b" ").decode(errors="replace"), command + environment)
        for command, environment in processes
        if mark in environment
    ]


def python_workers(driver: int) -> list[int]:
    """Return the process ids of Spark's Python workers below a driver's JVM; their parent is Spark's daemon."""
    return [pid for pid in descendants(driver) if _is_spark_daemon(pid) and _is_spark_daemon(_parent_of(pid))]


def worker_daemons(driver: int) -> list[int]:
    """Return the process ids of the daemons below a driver's JVM that fork Spark's Python workers."""
    return [pid for pid in descendants(driver) if _is_spark_daemon(pid) and not _is_spark_daemon(_parent_of(pid))]


def java_of(driver: int) -> list[int]:
    """Return the process id of a driver's Java process, if it has one."""
    children = [pid for pid in _all_pids() if _parent_of(pid) == driver]
    return [pid for pid in children if _read(pid, "cmdline").split(b"\0")[0].endswith(b"java")]


def with_variable(name: str, value: str) -> list[int]:
    """Return the process ids of all processes that were started with a variable in their environment."""
    mark = f"{name}={value}".encode()
    return [pid for pid in _all_pids() if mark in _read(pid, "environ").split(b"\0")]


def executors(name: str, value: str) -> list[int]:
    """Return the process ids of the executors that were started with a variable in their environment."""
    return [pid for pid in with_variable(name, value) if _is_executor(pid)]


def kill_an_executor() -> list[int]:
    """Kill the JVM of one executor of this test run and the slots that it started; return what was killed."""
    victim, slots = _executor_with_slots()
    for pid in [victim, *slots]:
        os.kill(pid, signal.SIGKILL)
    return [victim, *slots]


def kill_the_jvm_of_an_executor() -> list[int]:
    """Kill the JVM of one executor of this test run; return the slots that it started."""
    victim, slots = _executor_with_slots()
    os.kill(victim, signal.SIGKILL)
    return slots


def _executor_with_slots() -> tuple[int, list[int]]:
    """Return the executor of this test run beside which most slots run, and those slots."""
    started = executors(TEST_RUN[0], os.environ[TEST_RUN[0]])  # a driver inherits the mark of its test run
    slots = {executor: [pid for pid in descendants(executor) if is_slot(pid)] for executor in started}
    victim = max(started, key=lambda executor: len(slots[executor]))
    assert slots[victim], "an executor has slots beside it"
    return victim, slots[victim]


def kill_one(pids: list[int], chance: Random) -> None:
    """Kill one of the processes with `kill -9`, unless it has ended meanwhile."""
    with suppress(ProcessLookupError):
        os.kill(chance.choice(pids), signal.SIGKILL)


def slots_end(pids: list[int], within_s: float = 60.0) -> bool:
    """Wait for the slots among these processes to end; return whether they all did."""
    limit = time.monotonic() + within_s
    while time.monotonic() < limit:
        if not any(is_slot(pid) for pid in pids):
            return True
        time.sleep(0.1)  # processes of another parent: there is nothing to wait on
    return False


def listening_addresses(pid: int) -> set[str]:
    """Return the local addresses, in hexadecimal, of the TCP sockets on which a process listens."""
    descriptors = {os.readlink(link) for link in Path(f"/proc/{pid}/fd").iterdir() if link.is_symlink()}
    rows = [line.split() for file in ("net/tcp", "net/tcp6") for line in _read(pid, file).decode().splitlines()]
    return {row[1].split(":")[0] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in descriptors}


def listening_sockets(pid: int) -> set[tuple[str, int]]:
    """Return host and port of the TCP sockets on which a process listens."""
    try:
        descriptors = {os.readlink(link) for link in Path(f"/proc/{pid}/fd").iterdir()}
    except OSError:  # the process has ended
        return set()
    rows = [line.split() for file in ("net/tcp", "net/tcp6") for line in _read(pid, file).decode().splitlines()]
    found = [row[1].split(":") for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in descriptors]
    return {(_host(address), int(port, 16)) for address, port in found}


def waits_for(pid: int, ports: set[int]) -> bool:
    """Return whether the main thread of a process reads from a TCP connection to one of these ports, and waits."""
    call = _read(pid, "syscall").split()  # its number and its arguments; the first one of `recv` is the descriptor
    if len(call) < 2:
        return False
    try:
        reads_from = os.readlink(f"/proc/{pid}/fd/{int(call[1], 16)}")
    except OSError:  # the first argument of the call was no descriptor
        return False
    rows = [line.split() for file in ("net/tcp", "net/tcp6") for line in _read(pid, file).decode().splitlines()]
    return any(f"socket:[{row[9]}]" == reads_from and int(row[2].split(":")[1], 16) in ports for row in rows[1:])


def _host(address: str) -> str:
    """Return the text of an address that Linux shows as hexadecimal words in the order of the machine's bytes."""
    words = b"".join(bytes.fromhex(address[i : i + 8])[::-1] for i in range(0, len(address), 8))
    return socket.inet_ntop(socket.AF_INET if len(words) == 4 else socket.AF_INET6, words)


def is_slot(pid: int) -> bool:
    """Return whether a process is a running slot."""
    return b"ekorn.slot.slot_main" in _read(pid, "cmdline")


def peak_resident_bytes(pid: int) -> int:
    """Return the most memory that a process has had resident so far; 0 if the process has ended."""
    lines = _read(pid, "status").decode().splitlines()
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), 0)


def _is_executor(pid: int) -> bool:
    command = _read(pid, "cmdline")
    return b"CoarseGrainedExecutorBackend" in command and b"launch" not in command.split(b"\0")[0]


def _is_spark_daemon(pid: int) -> bool:
    return b"pyspark.daemon" in _read(pid, "cmdline")


def descendants(root: int) -> list[int]:
    """Return the process ids of all processes below a process."""
    parents = {pid: _parent_of(pid) for pid in _all_pids()}
    found, queue = [], [root]
    while queue:
        one = queue.pop()
        children = [pid for pid, parent in parents.items() if parent == one]
        found += children
        queue += children
    return found


def _parent_of(pid: int) -> int:
    stat = _read(pid, "stat").rpartition(b")")[2].split()
    return int(stat[1]) if stat else 0


def _all_pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _read(pid: int, file: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{file}").read_bytes()
    except OSError:  # the process has ended
        return b""
