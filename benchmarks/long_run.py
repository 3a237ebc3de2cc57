"""A keyed count at a steady rate for as long as it takes: memory, threads, sockets, disk and latency, sampled.

    python -m benchmarks.long_run --minutes 60 --rate 1000 --checkpoint-ms 1000 --samples long_run.csv
    python docs/pictures/long_run.py long_run.csv long_run.svg

The job runs continuously on embedded Spark. A sample counts all processes of the job: the driver, Spark's JVM and its
Python workers, and the slots. The size on disk is that of checkpoints, Spark's blocks, slot folders and files without a
name. At the end the second quarter of the samples is compared with the last one; the exit code is 1 if something has
grown.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.latency import PARALLELISM, SteadySource, counted
from ekorn.common import Configuration, WatermarkStrategy
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.functions import FilterFunction
from ekorn.program.running.job_client import JobClient

SAMPLE_S = 10.0
# How many times the value of the second quarter the last one may have, and what may be added to it in any case.
ALLOWED = {
    "driver_mb": (1.1, 20.0),
    "jvm_mb": (1.3, 200.0),  # its heap grows to its limit before it is collected
    "workers_mb": (1.1, 20.0),
    "slots_mb": (1.1, 20.0),
    "threads": (1.0, 10.0),
    "descriptors": (1.0, 20.0),
    "sockets": (1.0, 10.0),
    "disk_mb": (1.1, 20.0),
    "p50_ms": (1.5, 2.0),
    "p99_ms": (2.0, 20.0),
}


class Sample(NamedTuple):
    """What all processes of the job hold, and the ages of the records of the last seconds."""

    seconds: float
    driver_mb: float
    jvm_mb: float
    workers_mb: float
    slots_mb: float
    threads: int
    descriptors: int
    sockets: int
    disk_mb: float
    p50_ms: float
    p99_ms: float
    records: int
    checkpoints: int


class Ages(FilterFunction):
    """Writes percentiles of the ages of records to a file, every few seconds, and drops the records."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def open(self, runtime_context: Any) -> None:
        self._path = f"{self._folder}/{runtime_context.get_index_of_this_subtask()}"
        self._ages: list[float] = []
        self._next = time.time() + SAMPLE_S

    def filter(self, value: Any) -> bool:
        now = time.time()
        self._ages.append(now - value[1])
        if now >= self._next:
            ages, self._ages, self._next = sorted(self._ages), [], now + SAMPLE_S
            with open(self._path, "w") as file:
                file.write(f"{ages[len(ages) // 2]} {ages[len(ages) * 99 // 100]}")
        return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--rate", type=float, default=1_000.0)
    parser.add_argument("--checkpoint-ms", type=int, default=1_000)
    parser.add_argument("--samples", type=Path, default=Path("long_run.csv"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tempfile.tempdir = os.environ["TMPDIR"] = os.environ["SPARK_LOCAL_DIRS"] = folder  # what the job writes is here
        ages = Path(folder) / "ages"
        ages.mkdir()
        configuration = Configuration()
        configuration.set_string("ekorn.execution", "continuous")
        env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(PARALLELISM)
        env.enable_checkpointing(options.checkpoint_ms)
        env.get_checkpoint_config().set_checkpoint_storage_dir(f"{folder}/checkpoints")
        source = SteadySource(options.rate, options.minutes * 60)
        numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "steady")
        counted(numbers, 2).filter(Ages(str(ages))).print()
        client = env.execute_async("long run")
        found = list(written(options.samples, samples(client, ages)))
        client.get_job_execution_result().result()
    grown = growth(found)
    print("\n".join(grown) or "nothing has grown", flush=True)
    sys.exit(1 if grown else 0)


def samples(client: JobClient, ages: Path) -> Iterator[Sample]:
    """Yield a sample every few seconds, until the job ends."""
    began = time.monotonic()
    while not client.get_job_status().result().is_globally_terminal_state():
        time.sleep(SAMPLE_S)
        latest = [file.read_text().split() for file in ages.iterdir()]
        if len(latest) == PARALLELISM and all(latest):
            yield sample(client, time.monotonic() - began, [(float(a), float(b)) for a, b in latest], ages.parent)


def sample(client: JobClient, seconds: float, ages: list[tuple[float, float]], folder: Path) -> Sample:
    progress, slots = client.get_progress(), set(client.get_progress().slot_pids)
    processes = [os.getpid(), *descendants(os.getpid())]
    memory = dict.fromkeys(("driver", "jvm", "workers", "slots"), 0.0)
    threads = descriptors = sockets = 0
    disk_mb = _size_mb(folder)
    for pid in processes:
        try:
            kind = "driver" if pid == os.getpid() else "slots" if pid in slots else _kind_of(pid)
            memory[kind] += int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 / 1e6
            threads += len(os.listdir(f"/proc/{pid}/task"))
            links = {entry: os.readlink(entry) for entry in Path(f"/proc/{pid}/fd").iterdir()}
            disk_mb += sum(entry.stat().st_size for entry, link in links.items() if _is_nameless(link, folder)) / 1e6
        except OSError:
            continue  # it has ended meanwhile
        descriptors += len(links)
        sockets += sum(link.startswith("socket:") for link in links.values())
    return Sample(
        seconds=round(seconds, 1),
        driver_mb=round(memory["driver"], 1),
        jvm_mb=round(memory["jvm"], 1),
        workers_mb=round(memory["workers"], 1),
        slots_mb=round(memory["slots"], 1),
        threads=threads,
        descriptors=descriptors,
        sockets=sockets,
        disk_mb=round(disk_mb, 2),
        p50_ms=round(1000 * statistics.mean(median for median, _ in ages), 2),
        p99_ms=round(1000 * max(high for _, high in ages), 2),
        records=progress.records_read,
        checkpoints=progress.checkpoints_completed,
    )


def _is_nameless(link: str, folder: Path) -> bool:
    return link.startswith(f"{folder}/") and link.endswith(" (deleted)")


def _size_mb(folder: Path) -> float:
    size = 0
    for path, _, names in os.walk(folder):  # which passes over folders that are removed meanwhile
        for name in names:
            with contextlib.suppress(FileNotFoundError):  # of a checkpoint that was removed meanwhile
                size += os.stat(os.path.join(path, name)).st_size
    return size / 1e6


def _kind_of(pid: int) -> str:
    return "jvm" if os.path.basename(os.readlink(f"/proc/{pid}/exe")).startswith("java") else "workers"


def descendants(pid: int) -> Iterator[int]:
    """Yield the processes that a process has started, and those that they have."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                parent = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()[1]
            except OSError:
                continue
            children.setdefault(int(parent), []).append(int(entry))
    waiting = list(children.get(pid, ()))
    while waiting:
        child = waiting.pop()
        yield child
        waiting += children.get(child, ())


def written(path: Path, found: Iterator[Sample]) -> Iterator[Sample]:
    """Write samples to a file as they come, and pass them on."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(Sample._fields)
        for each in found:
            table.writerow(each)
            file.flush()
            yield each


def growth(found: list[Sample]) -> list[str]:
    """Return what has grown between the second quarter of the samples and the last, for people to read."""
    if len(found) < 8:
        return [f"only {len(found)} samples: the job ended too early to tell"]
    quarter = len(found) // 4
    grown = []
    for name, (times, plus) in ALLOWED.items():
        early, late = (
            statistics.median(getattr(each, name) for each in part)
            for part in (found[quarter : 2 * quarter], found[-quarter:])
        )
        if late > early * times + plus:
            grown.append(f"{name} has grown from {early:.1f} to {late:.1f}")
    return grown


if __name__ == "__main__":
    main()
