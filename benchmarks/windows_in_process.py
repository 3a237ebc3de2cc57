"""The cost of windows and timers in one process, without Spark.

    python -m benchmarks.windows_in_process [records] [keys]     records per second through one operator
    python -m benchmarks.windows_in_process --slices [keys ...]  sliding windows in slices and in panes, compared
    python -m benchmarks.windows_in_process --slices-size        the same windows: bytes in memory and in checkpoints
    python -m benchmarks.windows_in_process --timers-memory      bytes per timer, with a million timers

The records are decoded before the measurement, and the results are discarded.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from ekorn.clock import SystemClock
from ekorn.common import Time, Types
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.functions import AggregateFunction, KeyedProcessFunction, ProcessWindowFunction
from ekorn.datastream.window import EventTimeSessionWindows, SlidingEventTimeWindows, TumblingEventTimeWindows
from ekorn.graph.addresses import SubtaskId
from ekorn.operators.windows import layout_choice
from ekorn.slot.host import SlotHost
from ekorn.slot_protocol.deployment import Deployment
from ekorn.state.canonical_format import encode_payloads
from ekorn.state.heap.heap_timers import HeapTimers
from ekorn.subtask.subtask import Subtask
from ekorn.subtask.wire.frames import RECORDS

BATCH = 1000


class Count(AggregateFunction):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Any, accumulator: int) -> int:
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        return acc_a + acc_b


class Length(ProcessWindowFunction[Any, Any, Any, Any]):
    def process(self, key: Any, context: Any, elements: Any) -> Any:
        yield key, len(elements)


class TimerPerRecord(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> None:
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 500)

    def on_timer(self, timestamp: int, ctx: Any) -> None:
        pass


def add(one: Any, other: Any) -> Any:
    return one[0], one[1] + other[1]


def ms(n: int) -> Time:
    return Time.milliseconds(n)


WORKLOADS: dict[str, Callable[[Any], Any]] = {
    "tumbling 1000, reduce": lambda k: k.window(TumblingEventTimeWindows.of(ms(1000))).reduce(add),
    "tumbling 1000, aggregate": lambda k: k.window(TumblingEventTimeWindows.of(ms(1000))).aggregate(Count()),
    "tumbling 1000, sum(1)": lambda k: k.window(TumblingEventTimeWindows.of(ms(1000))).sum(1),
    "tumbling 1000, process": lambda k: k.window(TumblingEventTimeWindows.of(ms(1000))).process(Length()),
    "sliding 1000/200, aggregate": lambda k: k.window(SlidingEventTimeWindows.of(ms(1000), ms(200))).aggregate(Count()),
    "sliding 1000/20, aggregate": lambda k: k.window(SlidingEventTimeWindows.of(ms(1000), ms(20))).aggregate(Count()),
    "session 100, aggregate": lambda k: k.window(EventTimeSessionWindows.with_gap(ms(100))).aggregate(Count()),
    "tumbling 1000, aggregate, lateness 1": lambda k: (
        k.window(TumblingEventTimeWindows.of(ms(1000))).allowed_lateness(1).aggregate(Count())
    ),
    "session 100, aggregate, lateness 1": lambda k: (
        k.window(EventTimeSessionWindows.with_gap(ms(100))).allowed_lateness(1).aggregate(Count())
    ),
    "count window 100, aggregate": lambda k: k.count_window(100).aggregate(Count()),
    "a timer per record": lambda k: k.process(TimerPerRecord()),
}


def deployed(draw: Callable[[Any], Any], *, checkpoints: bool) -> tuple[SlotHost, Subtask]:
    """Deploy a keyed operator; return its host and its subtask."""
    env = StreamExecutionEnvironment.get_execution_environment()
    if checkpoints:
        env.enable_checkpointing(10_000)
    stream = env.from_collection([("0", 1)], Types.PICKLED_BYTE_ARRAY()).key_by(lambda r: r[0])
    draw(stream).filter(lambda r: False).print()
    graph = env.job_graph("bench")
    host = SlotHost(0, SystemClock(), lambda event: None)
    host.deploy(Deployment("0" * 32, graph, 0), [SubtaskId(v.id, 0) for v in graph.vertices])
    (subtask,) = [s for s in host.subtasks.values() if s.operators[0].backend is not None]
    return host, subtask


def advance(subtask: Subtask, watermark_ms: int) -> None:
    subtask.time_flow.advance(watermark_ms)


def measure(draw: Callable[[Any], Any], records: int, keys: int, *, checkpoints: bool) -> float:
    """Return the records per second; a watermark follows every 1,000 records."""
    host, subtask = deployed(draw, checkpoints=checkpoints)
    # 10 records per millisecond, with the keys in turn
    runs = [
        (
            RECORDS,
            [(str((n * 7919) % keys), 1) for n in range(first, first + BATCH)],
            [n // 10 for n in range(first, first + BATCH)],
        )
        for first in range(0, records, BATCH)
    ]
    started = time.perf_counter()
    for run in runs:
        subtask.intake.process(run[1], run[2])  # type: ignore[arg-type]
        advance(subtask, run[2][-1] - 1)
    taken = time.perf_counter() - started
    host.shutdown()
    return records / taken


def throughput(records: int, keys: int) -> None:
    print(f"{records:,} records, {keys:,} keys; records/s without and with checkpoints")
    for name, draw in WORKLOADS.items():
        plain, tracked = (max(measure(draw, records, keys, checkpoints=c) for _ in range(2)) for c in (False, True))
        print(f"{name:40} {plain:12,.0f} {tracked:12,.0f}", flush=True)


# ------------------------------------------------------------------------------------------- sliding windows

SLIDE = 1000
MOST = 3_000_000  # the largest number of records of a case


class ExactCount(Count):
    combines_exactly = True


SLIDING: dict[str, Callable[[Any], Any]] = {
    "process": lambda w: w.process(Length()),
    "max(1)": lambda w: w.max(1),
    "count, promised": lambda w: w.aggregate(ExactCount()),
}


def sliding(function: str, windows: int, *, in_slices: bool, checkpoints: bool = False) -> tuple[SlotHost, Subtask]:
    """Deploy windows of that many slides in the given form, whether or not the form pays."""

    def draw(keyed: Any) -> Any:
        return SLIDING[function](keyed.window(SlidingEventTimeWindows.of(ms(windows * SLIDE), ms(SLIDE))))

    with mock.patch.object(layout_choice, "slices_pay", lambda contents, windows_per_record: in_slices):
        return deployed(draw, checkpoints=checkpoints)


def slides(keys: int, each: int, count: int) -> Iterator[tuple[int, list[Any], list[int]]]:
    """Yield the records of one slide after another: `each` records of every key in a slide."""
    names = [str(key) for key in range(keys)]
    for number in range(count):
        values = [(name, (number * 7 + n) % 100) for n in range(each) for name in names]
        yield number, values, [number * SLIDE + n * SLIDE // len(values) for n in range(len(values))]


def compare(function: str, windows: int, keys: int, each: int, *, lag: int = 0) -> tuple[float, float]:
    """Return the microseconds per record in panes and in slices, once windows are full; the watermark lags by `lag`."""
    both = [sliding(function, windows, in_slices=False), sliding(function, windows, in_slices=True)]
    taken, records = [0.0, 0.0], 0
    warm = windows + lag
    for number, values, times in slides(keys, each, warm + max(2 * windows, 8)):
        for which in (0, 1) if number % 2 else (1, 0):
            subtask = both[which][1]
            started = time.process_time()
            subtask.intake.process(list(values), list(times))
            advance(subtask, (number + 1 - lag) * SLIDE - 1)
            taken[which] += (time.process_time() - started) if number >= warm else 0
        records += len(values) if number >= warm else 0
    for host, _ in both:
        host.shutdown()
    return taken[0] / records * 1e6, taken[1] / records * 1e6


def slices(all_keys: list[int]) -> None:
    print("us of processor time a record: in panes, in slices; dense: 10 records a key and slide, sparse: 1")
    for keys in all_keys:
        for function in SLIDING:
            for windows in (1, 2, 5, 10, 60):
                line = f"{keys:8,} keys {function:16} {windows:3} windows"
                for word, each in (("dense", 10), ("sparse", 1)):
                    if keys * each * 3 * windows <= MOST:
                        line += " {}{:8.2f}{:8.2f}".format(word, *compare(function, windows, keys, each))
                print(line, flush=True)
    print("sparse, 1,000 keys, 10 windows, and more of them open because the watermark lags")
    for lag in (0, 10, 100):
        panes, in_slices = compare("process", 10, 1000, 1, lag=lag)
        print(f"{10 + lag:8} open {panes:8.2f}{in_slices:8.2f}", flush=True)


def sizes(function: str, windows: int, each: int, *, in_slices: bool) -> tuple[float, float, float]:
    """Return the bytes per record in full windows: in memory, in a full checkpoint, and in the one a slide later."""
    keys, memory, full, later = 200, 0, 0, 0
    host, subtask = sliding(function, windows, in_slices=in_slices, checkpoints=True)
    assert subtask.operators[0].backend is not None
    tracemalloc.start()
    for number, values, times in slides(keys, each, windows + 1):
        subtask.intake.process(values, times)  # type: ignore[arg-type]
        del values, times
        tables = subtask.operators[0].backend.heap.by_name  # type: ignore[attr-defined]
        changed = {name: table.take_changed() for name, table in tables.items()}
        if number == windows - 1:
            memory = tracemalloc.get_traced_memory()[0]
            full = sum(map(len, encode_payloads([table.whole() for table in tables.values()])))
        elif number == windows:
            later = sum(map(len, encode_payloads([tables[name].some(some) for name, some in changed.items()])))
        del changed
        advance(subtask, (number + 1) * SLIDE - 1)
    tracemalloc.stop()
    host.shutdown()
    return memory / (keys * each * windows), full / (keys * each * windows), later / (keys * each)


def slices_size() -> None:
    print("bytes a record: in memory, in a full checkpoint, in an incremental one after a slide")
    for function in SLIDING:
        for windows in (1, 5, 10, 60):
            for word, each in (("dense", 10), ("sparse", 1)):
                line = f"{function:16} {windows:3} windows, {word:6}"
                for form, in_slices in (("panes", False), ("slices", True)):
                    line += "  {}{:8,.0f}{:8,.0f}{:8,.0f}".format(
                        form, *sizes(function, windows, each, in_slices=in_slices)
                    )
                print(line, flush=True)


# ------------------------------------------------------------------------------------------- timers

TIMERS = 1_000_000


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def timer_bytes(distinct_times: int, tracked: bool) -> float:
    """Return the bytes per timer of a million keys with one timer each, at that many different times."""
    keys = [f"user_{n}" for n in range(TIMERS)]
    table = HeapTimers("timers", tracked=tracked)
    gc.collect()
    before = resident_bytes()
    for n, key in enumerate(keys):
        table.add(key, 1_700_000_000_000 + n % distinct_times)
    return (resident_bytes() - before) / TIMERS


def timers_memory() -> None:
    print(f"bytes a timer, {TIMERS:,} of them, without their keys; without checkpoints, and before the next one")
    for distinct in (1, 1000, TIMERS):
        cases = [(distinct, False), (distinct, True)]
        # Each case has a new process: a second case would reuse the memory that the first one freed.
        with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
            plain, tracked = pool.starmap(timer_bytes, cases, chunksize=1)
        print(f"{distinct:10,} distinct times {plain:8.0f} {tracked:8.0f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("counts", nargs="*", type=int, help="records and keys; with --slices, numbers of keys")
    for mode in ("--slices", "--slices-size", "--timers-memory"):
        parser.add_argument(mode, action="store_true")
    asked = parser.parse_args()
    if asked.slices:
        slices(asked.counts or [1000])
    elif asked.slices_size:
        slices_size()
    elif asked.timers_memory:
        timers_memory()
    else:
        throughput(*[*asked.counts, *(300_000, 1000)[len(asked.counts) :]])


if __name__ == "__main__":
    main()
