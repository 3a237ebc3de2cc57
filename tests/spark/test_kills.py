"""kill -9 at random moments: of a slot, of Spark's Python worker, of the driver. Nothing is lost, nothing twice."""

from __future__ import annotations

import itertools
import os
import random
import signal
import time
from pathlib import Path

import pytest

from tests.spark import allround, every_kind
from tests.spark.conftest import run_driver, slot_processes

JOBS = {"allround": allround, "every_kind": every_kind}
RECORDS = {"allround": 12_000, "every_kind": 4_000}
SECONDS = 4.0  # that the source takes, undisturbed

DRIVER = """
import sys
from importlib import import_module
from pathlib import Path
job, records, per_second, folder, parallelism, restore, backend = sys.argv[1:8]
env = import_module(f"tests.spark.{job}").build(
    int(records),
    float(per_second),
    Path(folder),
    parallelism=int(parallelism),
    restore=restore or None,
    backend=backend,
)
client = env.execute_async(job)
import threading, time
def watch():
    while True:
        p = client.get_progress()
        pids = ",".join(map(str, p.slot_pids))
        print(f"PROGRESS {p.records_read} {p.checkpoints_completed} {p.status.name} {pids}", flush=True)
        time.sleep(0.05)
threading.Thread(target=watch, daemon=True).start()
client.get_job_execution_result().result()
print(f"DONE restarts={client.get_progress().restarts}", flush=True)
"""


class Driver:
    """A driver process and what it says of its progress."""

    def __init__(
        self,
        folder: Path,
        job: str = "allround",
        *,
        parallelism: int = 2,
        restore: str = "",
        backend: str = "hashmap",
    ) -> None:
        records = RECORDS[job]
        self.process = run_driver(
            DRIVER, job, str(records), str(records / SECONDS), str(folder), str(parallelism), restore, backend
        )
        self.read = self.checkpoints = 0
        self.slots: list[int] = []
        self.log: list[str] = []

    def until(self, condition, deadline_s: float = 180.0) -> bool:
        """Read progress until the condition holds; False when the driver ended before."""
        limit = time.monotonic() + deadline_s
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("PROGRESS"):
                _, read, checkpoints, _, slots = [*line.split(), ""][:5]
                self.read, self.checkpoints = int(read), int(checkpoints)
                self.slots = [int(s) for s in slots.split(",") if s]
            else:
                self.log.append(line)
            if condition(self):
                return True
            assert time.monotonic() < limit, "".join(self.log[-30:])
        return False

    def finish(self) -> None:
        """Read to the end; the job must have succeeded."""
        self.until(lambda d: False)
        assert self.process.wait(30) == 0, "".join(self.log[-40:])

    def python_workers(self) -> list[int]:
        """Spark's Python workers that belong to this driver's JVM."""
        return [p for p in descendants(self.process.pid) if b"pyspark.daemon" in command(p) and parent_is_daemon(p)]


def command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def parent_of(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def parent_is_daemon(pid: int) -> bool:
    return b"pyspark.daemon" in command(parent_of(pid))


def descendants(root: int) -> list[int]:
    parents = {int(p.name): parent_of(int(p.name)) for p in Path("/proc").iterdir() if p.name.isdigit()}
    found, queue = [], [root]
    while queue:
        one = queue.pop()
        children = [p for p, parent in parents.items() if parent == one]
        found += children
        queue += children
    return found


def kill(pids: list[int], chance: random.Random) -> int:
    pid = chance.choice(pids)
    os.kill(pid, signal.SIGKILL)
    return pid


def newest_checkpoint(folder: Path) -> str:
    done = [p.parent for p in (folder / "checkpoints").glob("*/chk-*/_metadata")]
    assert done, "the driver was killed after its first checkpoint"
    return str(max(done, key=lambda p: int(p.name.removeprefix("chk-"))))


def run_schedule(job: str, seed: int, folder: Path) -> None:
    """One schedule, reproducible from its seed: what is killed, when, and how the job goes on.

    That is with another parallelism and, every other time, with the other state backend.
    """
    chance = random.Random(seed)
    backends = itertools.cycle(["hashmap", "rocksdb"] if seed % 2 == 0 else ["rocksdb", "hashmap"])
    drivers = [Driver(folder, job, parallelism=chance.choice([1, 2, 3]), backend=next(backends))]
    try:
        for what in chance.choices(["slot", "worker", "driver"], k=chance.randint(1, 3)):
            driver = drivers[-1]
            mark = driver.read + chance.randint(200, RECORDS[job] // 3)
            if not driver.until(lambda d, mark=mark: d.read >= mark and d.checkpoints > 0 and d.slots):
                break
            if what == "slot":
                kill(driver.slots, chance)
            elif what == "worker":
                workers = driver.python_workers()
                if workers:
                    kill(workers, chance)
            else:
                driver.process.kill()
                driver.process.wait()
                assert gone(driver.slots), "slots outlived their driver"
                parallelism, newest = chance.choice([1, 2, 3]), newest_checkpoint(folder)
                drivers.append(Driver(folder, job, parallelism=parallelism, restore=newest, backend=next(backends)))
        drivers[-1].finish()
        assert JOBS[job].verify(RECORDS[job], folder) == [], f"{job}, seed {seed}: " + "".join(drivers[-1].log[-20:])
        assert gone(drivers[-1].slots)
    finally:
        for driver in drivers:
            driver.process.kill()  # one that is left after a failed check; the others have ended


def gone(pids: list[int], within_s: float = 15.0) -> bool:
    """Whether these processes end soon."""
    limit = time.monotonic() + within_s
    while time.monotonic() < limit:
        if not any(b"slot_main" in command(p) for p in pids):
            return True
        time.sleep(0.1)  # polling another process: there is nothing to wait on
    return False


@pytest.mark.parametrize(("job", "seed"), [("allround", 5), ("allround", 9), ("every_kind", 0)])
def test_kills_at_random_moments_change_nothing(job: str, seed: int, tmp_path: Path) -> None:
    run_schedule(job, seed, tmp_path)
    assert slot_processes() == []


@pytest.mark.soak
@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize("seed", range(100, 125))
def test_fifty_more_schedules_of_kills_change_nothing(job: str, seed: int, tmp_path: Path) -> None:
    run_schedule(job, seed, tmp_path)
