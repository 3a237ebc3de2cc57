"""The seconds from a fault to the first new output, on Spark, and beside them those of a clean restart.

    python -m benchmarks.recovery_time [--runs 5] [--keys 200000] [--backends heap,rocksdb] [--only slot,driver,...]

    slot       `kill -9` of one of two slots
    worker     `kill -9` of Spark's Python workers
    driver     `kill -9` of the driver; a loop starts the next one, which continues under the same job id
    restart    no fault: the job is stopped with a savepoint, and a new driver starts from it
    executor   `kill -9` of an executor's Java process and of its slots, on a standalone cluster of two workers

The job counts per key at parallelism 2, with a state of 100 bytes for each key, which is filled first, and a checkpoint
every half second. It reads a fixed number of records a second and notes the time of every record at its sink. An
output is new if its record had not been output before the fault. The restart strategy waits no time. The tables show
the median and the worst of the runs. Everything runs on one machine.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.spark.processes import descendants, executors, is_slot, python_workers
from tests.spark.standalone_cluster import Cluster

from tamias.common import Configuration, RestartStrategies, Types, WatermarkStrategy
from tamias.datastream import (
    ExternalizedCheckpointRetention,
    KeyedProcessFunction,
    SinkFunction,
    StreamExecutionEnvironment,
)
from tamias.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from tamias.datastream.connectors.number_seq import NumberSequenceSource
from tamias.datastream.state import ValueStateDescriptor

REPOSITORY = Path(__file__).parent.parent
PER_SECOND = 200
NOTE = struct.Struct("<qq")  # nanoseconds of the monotonic clock, number of the record
MARK = "TAMIAS_RECOVERY_TIME"  # a variable that the executors of a job have
PATIENCE_S = 300.0
FAULTS = ("slot", "worker", "driver", "restart", "executor")


# ------------------------------------------------------------------------------------------------------ in the driver


class Count(KeyedProcessFunction):
    """Counts the records of a key in a state of 100 bytes."""

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.STRING()))

    def process_element(self, value: int, ctx: Any) -> Iterator[int]:
        self.count.update(f"{int(self.count.value() or 0) + 1:0100d}")
        yield value


class Note(SinkFunction):
    """Appends the time of every record to a file."""

    def __init__(self, path: str) -> None:
        self._path = path

    def open(self, runtime_context: Any) -> None:
        self._file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def invoke(self, value: int, context: Any) -> None:
        os.write(self._file, NOTE.pack(time.monotonic_ns(), value))

    def close(self) -> None:
        os.close(self._file)


def drive(folder: Path, *, backend: str, keys: int, master: str, job_id: str, restore: str) -> None:
    """Run the job until it is told by SIGTERM to stop with a savepoint, and print the savepoint's path."""
    settings = {
        "state.backend.type": {"heap": "hashmap"}.get(backend, backend),
        "execution.checkpointing.dir": str(folder / "checkpoints"),
        "spark.master": master,
        "$internal.pipeline.job-id": job_id,
    }
    if not master.startswith("local"):
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        settings |= {"spark.executor.memory": "512m", f"spark.executorEnv.{MARK}": str(folder)}
        settings |= {"spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"], "spark.ui.enabled": "false"}
    configuration = Configuration()
    for key, value in settings.items():
        configuration.set_string(key, value)
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(2)
    env.enable_checkpointing(500)
    env.get_checkpoint_config().set_externalized_checkpoint_retention(
        ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION
    )
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(1_000, 0))
    if restore:
        env.set_restore_path(restore)
    no_watermarks = WatermarkStrategy.no_watermarks()
    filling = env.from_source(NumberSequenceSource(-keys, -1), no_watermarks, "filling").uid("filling")
    ticks = DataGeneratorSource(lambda n: n, 2**40, RateLimiterStrategy.per_second(PER_SECOND))
    numbers = filling.union(env.from_source(ticks, no_watermarks, "ticks").uid("ticks").set_parallelism(1))
    counted = numbers.key_by(lambda n: n % keys).process(Count(), Types.LONG()).uid("count")
    counted.filter(lambda n: n >= 0).add_sink(Note(str(folder / "notes"))).uid("notes")
    client = env.execute_async("recovery time")
    told = {"stop": False}
    signal.signal(signal.SIGTERM, lambda *_: told.update(stop=True))
    while not told["stop"]:
        progress = client.get_progress()
        print(json.dumps({"checkpoints": progress.checkpoints_completed, "slots": progress.slot_pids}), flush=True)
        time.sleep(0.05)
    print(json.dumps({"savepoint": client.stop_with_savepoint(False, str(folder)).result()}), flush=True)


# ------------------------------------------------------------------------------------------------------ from outside


class Job:
    """A job whose driver is started again whenever it has ended."""

    def __init__(self, folder: Path, backend: str, keys: int, cluster: Cluster | None) -> None:
        self.folder = folder
        self._arguments = (backend, str(keys), cluster.master if cluster is not None else "local[2]")
        self._drivers = self._jobs = 0
        self._notes = folder / "notes"
        self.start()

    def start(self, restore: str = "") -> None:
        """Start a driver that continues the job, or that starts a new job from a savepoint."""
        self._drivers += 1
        self._jobs += bool(restore)
        self._output = self.folder / f"driver-{self._drivers}.out"
        path = os.pathsep.join([str(REPOSITORY / "src"), str(REPOSITORY), os.environ.get("PYTHONPATH", "")])
        with self._output.open("wb") as output, (self.folder / f"driver-{self._drivers}.log").open("wb") as log:
            arguments = [str(self.folder), *self._arguments, f"{self._jobs:032x}", restore]
            self.process = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.recovery_time", "--drive", *arguments],
                stdout=output,
                stderr=log,
                env=os.environ | {"PYTHONPATH": path},
            )

    def said(self) -> dict[str, Any]:
        """Return the last line that the driver printed."""
        whole = [line for line in self._output.read_text().split("\n")[:-1] if line.startswith("{")]
        return json.loads(whole[-1]) if whole else {}

    def newest(self) -> int:
        """Return the largest number that was output so far, -1 if there is none."""
        return max((number for _, number in self._read(0)), default=-1)

    def await_new_output(self, number: int, since_ns: int) -> float:
        """Wait for an output beyond a number; return the seconds from a moment to it."""
        at = self._notes.stat().st_size
        limit = time.monotonic() + PATIENCE_S
        while time.monotonic() < limit:
            for noted_ns, found in self._read(max(0, at - NOTE.size * 100)):
                if found > number and noted_ns > since_ns:
                    return (noted_ns - since_ns) / 1e9
            time.sleep(0.005)
        raise SystemExit(f"no new output within {PATIENCE_S:.0f} s; the logs are in {self.folder}")

    def settle(self) -> None:
        """Wait until the job outputs what it reads, and has completed two more checkpoints."""
        until(lambda: self.newest() >= 0)
        before = self.said().get("checkpoints", 0)
        until(lambda: self.said().get("checkpoints", 0) >= before + 2)

    def _read(self, start: int) -> Iterator[tuple[int, int]]:
        if not self._notes.exists():
            return
        with self._notes.open("rb") as file:
            file.seek(start - start % NOTE.size)
            data = file.read()
        yield from NOTE.iter_unpack(data[: len(data) - len(data) % NOTE.size])

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


def until(condition: Callable[[], bool]) -> None:
    limit = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > limit:
            raise SystemExit("the job makes no progress")
        time.sleep(0.05)


def kill(pids: list[int]) -> None:
    assert pids, "there is a process to kill"
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def recover(job: Job, fault: str) -> float:
    """Let one fault happen, and return the seconds to the first new output."""
    before = job.newest()
    since_ns = time.monotonic_ns()
    match fault:
        case "slot":
            kill([pid for pid in job.said()["slots"] if is_slot(pid)][:1])
        case "worker":
            kill(python_workers(job.process.pid))
        case "executor":
            victim = executors(MARK, str(job.folder))[0]
            kill([victim, *(pid for pid in descendants(victim) if is_slot(pid))])
        case "driver":
            job.end()
            job.start()
        case "restart":
            job.process.terminate()
            job.process.wait()
            job.start(job.said()["savepoint"])
    return job.await_new_output(max(before, job.newest() if fault == "restart" else before), since_ns)


@contextmanager
def running(backend: str, keys: int, *, on_cluster: bool) -> Iterator[Job]:
    with tempfile.TemporaryDirectory(prefix="recovery-", ignore_cleanup_errors=True) as text:
        folder = Path(text)
        cluster = Cluster(folder) if on_cluster else None
        job = Job(folder, backend, keys, cluster)
        try:
            yield job
        finally:
            job.end()
            if cluster is not None:
                cluster.stop()


def main() -> None:
    """Measure, and print a line for each fault and backend."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--keys", type=int, default=200_000)
    parser.add_argument("--backends", default="heap,rocksdb")
    parser.add_argument("--only", default=",".join(FAULTS))
    parser.add_argument("--drive", nargs=6, help=argparse.SUPPRESS)  # this process is the driver of a job
    given = parser.parse_args()
    if given.drive is not None:
        folder, backend, keys, master, job_id, restore = given.drive
        drive(Path(folder), backend=backend, keys=int(keys), master=master, job_id=job_id, restore=restore)
        return
    wanted = given.only.split(",")
    print("| fault | backend | runs | median s | worst s |\n|---|---|---|---|---|")
    for backend in given.backends.split(","):
        for on_cluster in (False, True):
            faults = [fault for fault in wanted if (fault == "executor") == on_cluster]
            if not faults:
                continue
            with running(backend, given.keys, on_cluster=on_cluster) as job:
                for fault in faults:
                    seconds = []
                    for _ in range(given.runs):
                        job.settle()
                        seconds.append(recover(job, fault))
                    row = (fault, backend, len(seconds), f"{statistics.median(seconds):.1f}", f"{max(seconds):.1f}")
                    print("| " + " | ".join(map(str, row)) + " |", flush=True)


if __name__ == "__main__":
    main()
