"""A timer for each of many keys, on the heap and in RocksDB, in one process without Spark: rate, checkpoints, memory.

    python -m benchmarks.timers [--timers 1000000] [--backends heap,rocksdb] [--turns 1] [--cache-mb 256]

A process function registers a timer with every record, at a random time within an hour. Half of the timers are in a
checkpoint before the other half is registered, and another checkpoint is taken when half of them have fired. Every case
has a process of its own, and the backends take turns. Rates are per second of processor time, RocksDB's threads
included; memory is the highest resident memory of the process, above what it had before the first timer. The output is
one line of JSON per case.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.state_backends import BACKENDS, Figure, checkpoint
from ekorn.clock import SystemClock
from ekorn.common import Types
from ekorn.config.settings.rocksdb_settings import RocksDBSettings
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.functions import KeyedProcessFunction
from ekorn.graph.addresses import SubtaskId
from ekorn.keygroups import KeyGroupRange
from ekorn.slot.host import SlotHost
from ekorn.slot_protocol.deployment import Deployment
from ekorn.storage.file_store import open_files

BATCH = 1000
HOUR_MS = 3_600_000
STEP_MS = 10_000


class Remind(KeyedProcessFunction):
    """Registers a timer with every record, and counts those that fire."""

    def open(self, runtime_context: Any) -> None:
        self.fired = 0

    def process_element(self, value: Any, ctx: Any) -> None:
        ctx.timer_service().register_event_time_timer(value[1])

    def on_timer(self, timestamp: int, ctx: Any) -> None:
        self.fired += 1


def resident_bytes(word: str) -> int:
    """Return the resident memory of this process: VmRSS now, VmHWM the highest."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(word))


def timed(work: Callable[[], None]) -> tuple[float, float]:
    """Return the seconds of processor time and of the clock that work takes."""
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return time.process_time() - cpu, time.perf_counter() - wall


def measure(kind: str, timers: int, folder: str, cache_mb: int) -> Figure:
    """Run one case in this process."""
    env = StreamExecutionEnvironment.get_execution_environment()
    env.enable_checkpointing(10_000)
    stream = env.from_collection([("0", 1)], Types.PICKLED_BYTE_ARRAY()).key_by(lambda r: r[0])
    stream.process(Remind()).print()
    graph = env.job_graph("bench")
    host = SlotHost(0, SystemClock(), lambda event: None)
    settings = RocksDBSettings(local_directories=(folder,), cache_bytes=cache_mb << 20)
    name = "rocksdb" if kind == "rocksdb" else "hashmap"
    deployment = Deployment("0" * 32, graph, 0, state_backend=name, rocksdb=settings)
    host.deploy(deployment, [SubtaskId(v.id, 0) for v in graph.vertices])
    (subtask,) = [s for s in host.subtasks.values() if s.operators[0].backend is not None]
    operator, chance, store = subtask.operators[0], random.Random(7), open_files(tempfile.mkdtemp(dir=folder))
    backend, function = operator.backend, next(iter(operator.functions()))
    assert backend is not None
    vertex = operator.environment.vertex
    groups = KeyGroupRange(0, vertex.max_parallelism - 1)
    before = resident_bytes("VmRSS")

    def register(first: int, last: int) -> None:
        for start in range(first, last, BATCH):
            subtask.intake.process(
                [(f"user-{n}", chance.randrange(HOUR_MS)) for n in range(start, start + BATCH)], None
            )

    def fire(first_ms: int, last_ms: int) -> None:
        for watermark_ms in range(first_ms + STEP_MS, last_ms + STEP_MS, STEP_MS):
            operator.on_watermark(watermark_ms)

    started = time.process_time()
    figures: list[tuple[float, float]] = [timed(lambda: register(0, timers // 2))]
    _, first = checkpoint(backend, 1, store, groups)
    figures.append(timed(lambda: register(timers // 2, timers)))
    fired = [timed(lambda: fire(0, HOUR_MS // 2))]
    _, second = checkpoint(backend, 2, store, groups)
    fired.append(timed(lambda: fire(HOUR_MS // 2, HOUR_MS)))
    assert function.fired == timers, f"{function.fired} of {timers} timers fired"
    with_checkpoints = time.process_time() - started
    registered_cpu, fired_cpu = sum(cpu for cpu, _ in figures), sum(cpu for cpu, _ in fired)
    host.shutdown()
    return {
        "backend": kind,
        "timers": timers,
        "registered_per_cpu_second": round(timers / registered_cpu),
        "fired_per_cpu_second": round(timers / fired_cpu),
        "timers_per_cpu_second": round(timers / (registered_cpu + fired_cpu)),
        "with_checkpoints_per_cpu_second": round(timers / with_checkpoints),
        "wall_s": round(sum(wall for _, wall in (*figures, *fired)), 1),
        "checkpoints": [first, second],
        "peak_mb": round((resident_bytes("VmHWM") - before) / (1 << 20)),
    }


def main() -> None:
    """Run all cases, each in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--timers", type=int, default=1_000_000)
    parser.add_argument("--backends", default=",".join(BACKENDS))
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--cache-mb", type=int, default=256, help="ekorn.state.rocksdb.cache-size")
    parser.add_argument("--here", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.here:
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps(measure(asked.here, asked.timers, folder, asked.cache_mb)), flush=True)
        return
    for _ in range(asked.turns):
        for kind in asked.backends.split(","):
            case = [f"--timers={asked.timers}", f"--cache-mb={asked.cache_mb}", f"--here={kind}"]
            subprocess.run([sys.executable, "-m", "benchmarks.timers", *case], check=True)


if __name__ == "__main__":
    main()
