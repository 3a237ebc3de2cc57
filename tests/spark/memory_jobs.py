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

from ekorn.common import Configuration, Time, WatermarkStrategy
from ekorn.common.accumulators import LongCounter, LongMaximum
from ekorn.common.watermark_strategy import TimestampAssigner
from ekorn.datastream import DataStream, StreamExecutionEnvironment
from ekorn.datastream.functions import FlatMapFunction, ProcessWindowFunction, RuntimeContext, SinkFunction
from ekorn.datastream.window import TumblingEventTimeWindows
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


class Total(SinkFunction):
    """Counts the sizes that it gets, and adds them up."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count, self.sum = LongCounter(), LongCounter()
        runtime_context.add_accumulator("count", self.count)
        runtime_context.add_accumulator("sum", self.sum)

    def invoke(self, value: int, context: Any) -> None:
        self.count.add(1)
        self.sum.add(value)


def total(sizes: DataStream, env: StreamExecutionEnvironment) -> list[int]:
    """Run the job; return how many sizes there were, and their sum."""
    sizes.add_sink(Total())
    result = env.execute("memory")
    return [result.get_accumulator_result("count"), result.get_accumulator_result("sum")]


class FanOut(FlatMapFunction):
    """Emits 8,000 records of a kilobyte for each of its input."""

    def flat_map(self, value: int) -> Iterator[tuple[int, bytes]]:
        for number in range(8_000):
            yield number, bytes(1_000)


def fan_out() -> list[int]:
    """64 records become 512,000, of 512 MB in all, in one epoch, on their way through a keyed exchange."""
    env = environment()
    stream = env.from_collection(range(64)).flat_map(FanOut())
    return total(stream.key_by(lambda v: v[0]).map(lambda v: len(v[1])), env)


def large_records() -> list[int]:
    """2,500 records of a megabyte pass through a keyed exchange."""
    env = environment()
    stream = env.from_sequence(0, 2_499).map(lambda n: (n, bytes(MEGABYTE)))
    return total(stream.key_by(lambda v: v[0] % 16).map(lambda v: len(v[1])), env)


class Text(ProcessWindowFunction):
    """Emits 300 bytes for each key, and the memory of its slot when the first window fires."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.memory = LongMaximum()
        self.fired = False
        runtime_context.add_accumulator("memory", self.memory)

    def process(self, key: int, context: Any, elements: Any) -> list[bytes]:
        if not self.fired:
            self.fired = True
            self.memory.add(peak_resident_bytes(os.getpid()))
        return [bytes(300)]


def window() -> list[int]:
    """A window fires a million keys at once; the third number is the memory of a slot just before that."""
    env = environment()
    stamped = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Zero())
    numbers = env.from_sequence(0, 999_999).assign_timestamps_and_watermarks(stamped)
    windowed = numbers.key_by(lambda n: n).window(TumblingEventTimeWindows.of(Time.seconds(1))).process(Text())
    windowed.key_by(lambda text: text[0]).map(len).add_sink(Total())
    result = env.execute("memory")
    return [result.get_accumulator_result(name) for name in ("count", "sum", "memory")]


class Zero(TimestampAssigner):
    def extract_timestamp(self, value: int, record_timestamp: int) -> int:
        return 0


JOBS: dict[str, Callable[[], list[int]]] = {job.__name__: job for job in (fan_out, large_records, window)}


def main() -> None:
    peak = PeakMemory()
    result = JOBS[sys.argv[1]]()
    peak.stop()
    print(json.dumps({"result": result, "slot_bytes": peak.slot_bytes, "worker_bytes": peak.worker_bytes}))


if __name__ == "__main__":
    main()
