"""Jobs whose output in one epoch is far larger than the memory they may take: run as a driver process of its own.

    python -m tests.spark.memory_jobs fan_out

The process prints one line of JSON: the result, and the peak resident memory of slots and Spark's Python workers.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

from tamias.common import Configuration
from tamias.datastream import StreamExecutionEnvironment
from tamias.datastream.functions import FlatMapFunction
from tests.spark.processes import descendants, is_slot, peak_resident_bytes, python_workers

MEGABYTE = 1 << 20


class PeakMemory:
    """Watches the slots and Python workers of this driver until it is stopped."""

    def __init__(self) -> None:
        self.slot_bytes = self.worker_bytes = 0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._stopped.wait(0.05):
            below = descendants(os.getpid())
            slots = map(peak_resident_bytes, filter(is_slot, below))
            self.slot_bytes = max(self.slot_bytes, *slots, 0)
            self.worker_bytes = max(self.worker_bytes, *map(peak_resident_bytes, python_workers(os.getpid())), 0)

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()


def environment(**options: str) -> StreamExecutionEnvironment:
    configuration = Configuration()
    for key, value in options.items():
        configuration.set_string(key, value)
    return StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(2)


class FanOut(FlatMapFunction):
    """Emits 8,000 records of a kilobyte for each of its input."""

    def flat_map(self, value: int) -> Iterator[tuple[int, bytes]]:
        for number in range(8_000):
            yield number, os.urandom(1_000)


def fan_out() -> Any:
    """64 records become half a million, 512 MB, on their way through a keyed exchange."""
    stream = environment().from_collection(range(64)).flat_map(FanOut())
    return totals(stream.key_by(lambda v: v[0]).map(lambda v: len(v[1])))


def large_records() -> Any:
    """2,500 records of a megabyte pass through a keyed exchange."""
    stream = environment().from_sequence(0, 2_499).map(lambda n: (n, os.urandom(MEGABYTE)))
    return totals(stream.key_by(lambda v: v[0] % 16).map(lambda v: len(v[1])))


def totals(sizes: Any) -> Any:
    """Return how many sizes there are, and their sum."""
    count = total = 0
    with sizes.execute_and_collect("memory") as results:
        for size in results:
            count += 1
            total += size
    return [count, total]


JOBS: dict[str, Callable[[], Any]] = {job.__name__: job for job in (fan_out, large_records)}


def main() -> None:
    peak = PeakMemory()
    result = JOBS[sys.argv[1]]()
    peak.stop()
    print(json.dumps({"result": result, "slot_bytes": peak.slot_bytes, "worker_bytes": peak.worker_bytes}))


if __name__ == "__main__":
    main()
