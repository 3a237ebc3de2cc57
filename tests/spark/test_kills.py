"""`kill -9` of a slot, of Spark's Python worker, of the driver at random moments: nothing is lost, nothing doubled."""

from __future__ import annotations

import itertools
import random
import time
from functools import partial
from pathlib import Path

import pytest

from tests.spark import every_kind, reminders, tally
from tests.spark.processes import kill_one, python_workers, run_driver, slot_processes, slots_end

JOBS = {"tally": tally, "every_kind": every_kind}
RECORDS = {"tally": 12_000, "every_kind": 4_000, "reminders": 12_000}
SECONDS = 4.0  # that the source takes without a fault

DRIVER = """
import sys
from importlib import import_module
from pathlib import Path
job, records, per_second, folder, parallelism, restore, backend, execution = sys.argv[1:9]
env = import_module(f"tests.spark.{job}").build(
    int(records),
    float(per_second),
    Path(folder),
    parallelism=int(parallelism),
    restore=restore or None,
    backend=backend,
    execution=execution,
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
    """A driver process and the progress it has printed."""

    def __init__(
        self,
        folder: Path,
        job: str = "tally",
        *,
        parallelism: int = 2,
        restore: str = "",
        backend: str = "hashmap",
        execution: str = "epochs",
    ) -> None:
        records = RECORDS[job]
        rate, width = str(records / SECONDS), str(parallelism)
        self.process = run_driver(DRIVER, job, str(records), rate, str(folder), width, restore, backend, execution)
        self.read = self.checkpoints = 0
        self.slots: list[int] = []
        self.log: list[str] = []

    def until(self, condition, deadline_s: float = 180.0) -> bool:
        """Read progress until the condition holds; return False if the driver ends before."""
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
        """Read to the end, and check that the job succeeded."""
        self.until(lambda d: False)
        assert self.process.wait(30) == 0, "".join(self.log[-40:])


def newest_checkpoint(folder: Path) -> str:
    done = [p.parent for p in (folder / "checkpoints").glob("*/chk-*/_metadata")]
    assert done, "the driver was killed after its first checkpoint"
    return str(max(done, key=lambda p: int(p.name.removeprefix("chk-"))))


def run_schedule(job: str, seed: int, folder: Path, *, execution: str = "epochs") -> None:
    """Play one schedule, decided by its seed: what is killed and when.

    After its driver was killed, the job continues at another parallelism and with the other state backend.
    """
    chance = random.Random(seed)
    start = partial(Driver, folder, job, execution=execution)
    backends = itertools.cycle(["hashmap", "rocksdb"] if seed % 2 == 0 else ["rocksdb", "hashmap"])
    drivers = [start(parallelism=chance.choice([1, 2, 3]), backend=next(backends))]
    try:
        for what in chance.choices(["slot", "worker", "driver"], k=chance.randint(1, 3)):
            driver = drivers[-1]
            mark = driver.read + chance.randint(200, RECORDS[job] // 3)
            if not driver.until(lambda d, mark=mark: d.read >= mark and d.checkpoints > 0 and d.slots):
                break
            if what == "slot":
                kill_one(driver.slots, chance)
            elif what == "worker":
                workers = python_workers(driver.process.pid)
                if workers:
                    kill_one(workers, chance)
            else:
                driver.process.kill()
                driver.process.wait()
                assert slots_end(driver.slots), "slots outlived their driver"
                parallelism, newest = chance.choice([1, 2, 3]), newest_checkpoint(folder)
                drivers.append(start(parallelism=parallelism, restore=newest, backend=next(backends)))
        drivers[-1].finish()
        assert JOBS[job].verify(RECORDS[job], folder) == [], f"{job}, seed {seed}: " + "".join(drivers[-1].log[-20:])
        assert slots_end(drivers[-1].slots)
    finally:
        for driver in drivers:
            driver.process.kill()  # a driver that a failed check left behind; the others have ended


@pytest.mark.parametrize(
    ("job", "seed"),
    [
        ("tally", 5),
        *[pytest.param(job, seed, marks=pytest.mark.soak) for job, seed in (("tally", 9), ("every_kind", 0))],
    ],
)
def test_kills_at_random_moments_change_nothing(job: str, seed: int, tmp_path: Path) -> None:
    run_schedule(job, seed, tmp_path)
    assert slot_processes() == []


@pytest.mark.parametrize("execution", ["epochs", pytest.param("continuous", marks=pytest.mark.soak)])
def test_timers_in_rocksdb_fire_once_each_although_a_slot_is_killed(execution: str, tmp_path: Path) -> None:
    driver = Driver(tmp_path, "reminders", backend="rocksdb", execution=execution)
    try:
        assert driver.until(lambda d: d.read >= RECORDS["reminders"] // 2 and d.checkpoints > 0 and d.slots)
        kill_one(driver.slots, random.Random(1))
        driver.finish()
        assert any("restarts=1" in line for line in driver.log), "the slot was killed while the job ran"
        assert reminders.verify(RECORDS["reminders"], tmp_path) == []
    finally:
        driver.process.kill()


def test_kills_at_random_moments_change_nothing_in_a_continuous_job(tmp_path: Path) -> None:
    run_schedule("tally", 5, tmp_path, execution="continuous")
    assert slot_processes() == []


@pytest.mark.soak
@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize("seed", range(100, 125))
def test_fifty_more_schedules_of_kills_change_nothing(job: str, seed: int, tmp_path: Path) -> None:
    run_schedule(job, seed, tmp_path)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(125, 150))
def test_more_schedules_of_kills_change_nothing_in_a_continuous_job(seed: int, tmp_path: Path) -> None:
    run_schedule("tally", seed, tmp_path, execution="continuous")
