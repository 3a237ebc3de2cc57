"""Records per second through one window or timer operator, in one process, without Spark.

    python benchmarks/windows_in_process.py [records] [keys]

Measures what an operator costs by itself: the records are decoded already, and results go nowhere. A watermark
follows every 1,000 records.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from tamias.common import Time, Types
from tamias.common.clock import SystemClock
from tamias.datastream import StreamExecutionEnvironment
from tamias.datastream.functions import AggregateFunction, KeyedProcessFunction, ProcessWindowFunction
from tamias.datastream.window import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from tamias.engine.base import Deployment
from tamias.engine.host import SlotHost
from tamias.wire.frames import RECORDS, WATERMARK

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


def measure(draw: Callable[[Any], Any], records: int, keys: int, *, checkpoints: bool) -> float:
    """Records per second."""
    env = StreamExecutionEnvironment.get_execution_environment()
    if checkpoints:
        env.enable_checkpointing(10_000)
    stream = env.from_collection([("0", 1)], Types.PICKLED_BYTE_ARRAY()).key_by(lambda r: r[0])
    draw(stream).filter(lambda r: False).print()
    graph = env._job_graph("bench")
    host = SlotHost(0, SystemClock(), lambda event: None)
    host.deploy(Deployment("0" * 32, graph, 0), [(v.id, 0) for v in graph.vertices])
    (subtask,) = [s for s in host._subtasks.values() if s.operators[0].backend is not None]
    # 10 records a millisecond, each key's turn after the other's
    runs = [
        (
            RECORDS,
            [(str((n * 7919) % keys), 1) for n in range(first, first + BATCH)],
            [n // 10 for n in range(first, first + BATCH)],
        )
        for first in range(0, records, BATCH)
    ]
    channel = next(iter(subtask.inputs._channels))
    started = time.perf_counter()
    for run in runs:
        subtask._process(run[1], run[2])
        for _ in subtask._control(channel, (WATERMARK, run[2][-1] - 1)):
            pass
    taken = time.perf_counter() - started
    host.shutdown()
    return records / taken


def main() -> None:
    records = int(sys.argv[1]) if len(sys.argv) > 1 else 300_000
    keys = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    print(f"{records:,} records, {keys:,} keys; records/s without and with checkpoints")
    for name, draw in WORKLOADS.items():
        plain, tracked = (max(measure(draw, records, keys, checkpoints=c) for _ in range(2)) for c in (False, True))
        print(f"{name:40} {plain:12,.0f} {tracked:12,.0f}", flush=True)


if __name__ == "__main__":
    main()
