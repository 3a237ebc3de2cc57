"""The seconds from a fault to the first new output, on Spark, and beside them those of a clean restart.

    python -m benchmarks.recovery_time [--runs 5] [--keys 200000] [--backends heap,rocksdb] [--only slot,driver,...]
                                       [--execution epochs|continuous]

    slot       `kill -9` of one of two slots
    worker     `kill -9` of Spark's Python workers
    driver     `kill -9` of the driver; a loop starts the next one, which continues under the same job id
    restart    no fault: the job is stopped with a savepoint, and a new driver starts from it
    rescale    the same, with parallelism 3 in place of 2, or the reverse
    executor   `kill -9` of an executor's Java process and of its slots, on a standalone cluster of two workers

The job counts per key at parallelism 2, with a state of 100 bytes for each key, which is filled first, and a checkpoint
every half second. It reads a fixed number of records a second and notes the time of every record at its sink. An
output is new if its record had not been output by the attempt that the fault ended. The restart strategy waits no
time. The table shows the median and the worst of the runs. Everything runs on one machine.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from tests.spark.processes import descendants, executors, is_slot, python_workers
from tests.spark.standalone_cluster import Cluster

from benchmarks.noted_records import NoteTimes, noted_records
from ekorn.common import Configuration, RestartStrategies, Types, WatermarkStrategy
from ekorn.datastream import (
    ExternalizedCheckpointRetention,
    KeyedProcessFunction,
    StreamExecutionEnvironment,
)
from ekorn.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from ekorn.datastream.connectors.number_seq import NumberSequenceSource
from ekorn.datastream.state import ValueStateDescriptor

REPOSITORY = Path(__file__).parent.parent
PER_SECOND = 200
MARK = "EKORN_RECOVERY_TIME"  # a variable that the executors of a job have
PATIENCE_S = 300.0
PLACES = {"epochs": 2, "continuous": 32}  # continuously, every task has a place of its own
FAULTS = ("slot", "worker", "driver", "restart", "rescale", "executor")


@dataclass(frozen=True)
class Life:
    """What one driver is started with."""

    folder: str
    backend: str
    keys: int
    master: str
    job_id: str
    execution: str
    parallelism: int = 2
    restore: str | None = None


# ------------------------------------------------------------------------------------------------------ in the driver


class Count(KeyedProcessFunction):
    """Counts the records of a key in a state of 100 bytes."""

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.STRING()))

    def process_element(self, value: int, ctx: Any) -> Iterator[int]:
        self.count.update(f"{int(self.count.value() or 0) + 1:0100d}")
        yield value


def drive(life: Life) -> None:
    """Run the job until it is told by SIGTERM to stop with a savepoint, and print the savepoint's path."""
    settings = {
        "state.backend.type": {"heap": "hashmap"}.get(life.backend, life.backend),
        "execution.checkpointing.dir": f"{life.folder}/checkpoints",
        "spark.master": life.master,
        "ekorn.execution": life.execution,
        "$internal.pipeline.job-id": life.job_id,
    }
    if not life.master.startswith("local"):
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        settings |= {"spark.executor.memory": "512m", f"spark.executorEnv.{MARK}": life.folder}
        settings |= {"spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"], "spark.ui.enabled": "false"}
    configuration = Configuration()
    for key, value in settings.items():
        configuration.set_string(key, value)
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(life.parallelism)
    env.set_max_parallelism(128)
    env.enable_checkpointing(500)
    env.get_checkpoint_config().set_externalized_checkpoint_retention(
        ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION
    )
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(1_000, 0))
    if life.restore is not None:
        env.set_restore_path(life.restore)
    no_watermarks = WatermarkStrategy.no_watermarks()
    filling = env.from_source(NumberSequenceSource(-life.keys, -1), no_watermarks, "filling").uid("filling")
    ticks = DataGeneratorSource(lambda n: n, 2**40, RateLimiterStrategy.per_second(PER_SECOND))
    numbers = filling.union(
        env.from_source(ticks, no_watermarks, "ticks", Types.LONG()).uid("ticks").set_parallelism(1)
    )
    keys = life.keys
    counted = numbers.key_by(lambda n: n % keys).process(Count(), Types.LONG()).uid("count")
    counted.filter(lambda n: n >= 0).add_sink(NoteTimes(f"{life.folder}/notes")).uid("notes")
    client = env.execute_async("recovery time")
    told = {"stop": False}
    signal.signal(signal.SIGTERM, lambda *_: told.update(stop=True))
    while not told["stop"]:
        progress = client.get_progress()
        print(json.dumps({"checkpoints": progress.checkpoints_completed, "slots": progress.slot_pids}), flush=True)
        time.sleep(0.05)
    print(json.dumps({"savepoint": client.stop_with_savepoint(False, life.folder).result()}), flush=True)


# ------------------------------------------------------------------------------------------------------ from outside


class Job:
    """A job whose driver is started again whenever it has ended."""

    def __init__(self, folder: Path, backend: str, keys: int, execution: str, cluster: Cluster | None) -> None:
        self.folder = folder
        self._life = Life(
            folder=str(folder),
            backend=backend,
            keys=keys,
            master=cluster.master if cluster is not None else f"local[{PLACES[execution]}]",
            job_id=f"{1:032x}",
            execution=execution,
        )
        self._drivers = 0
        self._notes = folder / "notes"
        self.start()

    def restart(self, *, rescaled: bool) -> None:
        """Stop the job with a savepoint, and start a new job from it."""
        self.process.terminate()
        self.process.wait()
        parallelism = 5 - self._life.parallelism if rescaled else self._life.parallelism
        self._life = replace(
            self._life,
            restore=self.said()["savepoint"],
            job_id=f"{int(self._life.job_id, 16) + 1:032x}",
            parallelism=parallelism,
        )
        self.start()

    def start(self) -> None:
        """Start a driver that continues the job."""
        self._drivers += 1
        self._output = self.folder / f"driver-{self._drivers}.out"
        path = os.pathsep.join([str(REPOSITORY / "src"), str(REPOSITORY), os.environ.get("PYTHONPATH", "")])
        self._log = self._output.with_suffix(".log")
        with self._output.open("wb") as output, self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.recovery_time", "--drive", json.dumps(asdict(self._life))],
                stdout=output,
                stderr=log,
                env=os.environ | {"PYTHONPATH": path},
            )

    def said(self) -> dict[str, Any]:
        """Return the last line that the driver printed."""
        whole = [line for line in self._output.read_text().split("\n")[:-1] if line.startswith("{")]
        return json.loads(whole[-1]) if whole else {}

    def await_new_output(self, since_ns: int) -> float:
        """Return the seconds from a moment to the first new output of an attempt that started after it."""
        new: list[int] = []

        def found() -> bool:
            notes = list(noted_records(self._notes))
            old = max((note.value for note in notes if note.opened_ns <= since_ns), default=-1)
            new[:] = [note.at_ns for note in notes if note.opened_ns > since_ns and note.value > old]
            return bool(new)

        self._until(found)
        return (min(new) - since_ns) / 1e9

    def settle(self) -> None:
        """Wait until the job has output something and completed two more checkpoints."""
        self._until(lambda: any(True for _ in noted_records(self._notes)))
        before = self.said().get("checkpoints", 0)
        self._until(lambda: self.said().get("checkpoints", 0) >= before + 2)

    def _until(self, condition: Callable[[], bool]) -> None:
        limit = time.monotonic() + PATIENCE_S
        while not condition():
            if time.monotonic() > limit or self.process.poll() is not None:
                raise SystemExit(f"the job makes no progress:\n{self._log.read_text()[-3000:]}")
            time.sleep(0.1)

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


def kill(pids: list[int]) -> None:
    assert pids, "there is a process to kill"
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def recover(job: Job, fault: str) -> float:
    """Let one fault happen, and return the seconds to the first new output."""
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
        case "restart" | "rescale":
            job.restart(rescaled=fault == "rescale")
    return job.await_new_output(since_ns)


@contextmanager
def running(backend: str, keys: int, execution: str, *, on_cluster: bool) -> Iterator[Job]:
    with tempfile.TemporaryDirectory(prefix="recovery-", ignore_cleanup_errors=True) as text:
        folder = Path(text)
        cluster = Cluster(folder, cores=PLACES[execution]) if on_cluster else None
        job = Job(folder, backend, keys, execution, cluster)
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
    parser.add_argument("--execution", default="epochs", choices=("epochs", "continuous"))
    parser.add_argument("--drive", help=argparse.SUPPRESS)  # this process is the driver of a job
    given = parser.parse_args()
    if given.drive is not None:
        drive(Life(**json.loads(given.drive)))
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))  # the job must not be left behind
    wanted = given.only.split(",")
    print("| fault | backend | runs | median s | worst s |\n|---|---|---|---|---|")
    for backend in given.backends.split(","):
        for on_cluster in (False, True):
            faults = [fault for fault in wanted if (fault == "executor") == on_cluster]
            if not faults:
                continue
            with running(backend, given.keys, given.execution, on_cluster=on_cluster) as job:
                for fault in faults:
                    seconds = []
                    for _ in range(given.runs):
                        job.settle()
                        seconds.append(recover(job, fault))
                    row = (fault, backend, len(seconds), f"{statistics.median(seconds):.1f}", f"{max(seconds):.1f}")
                    print("| " + " | ".join(map(str, row)) + " |", flush=True)


if __name__ == "__main__":
    main()
