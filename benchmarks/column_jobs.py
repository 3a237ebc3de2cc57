"""The workloads keyed-count and tumbling of the other engines on columns, on embedded Spark, in turns.

    python -m benchmarks.column_jobs --workload keyed-count --records 20000000 --keys 1000 [--api epochs] [--turns 3]

The records are those of `peers/measuring.py`, made by the batch. `keyed-count` gives a result for each record.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.ekorn_jobs import environment
from benchmarks.nexmark.streams import Discard
from benchmarks.peers.measuring import tell
from ekorn.common import Time, Types, WatermarkStrategy
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.columns import ColumnGeneratorSource, Count, Sum
from ekorn.datastream.window import TumblingEventTimeWindows

WARM_UP_RECORDS = 2_000_000
PAIR = Types.ROW_NAMED(["user", "number"], [Types.STRING(), Types.LONG()])
TIMED = Types.ROW_NAMED(["user", "number", "at"], [Types.STRING(), Types.LONG(), Types.LONG()])


class Pairs:
    """Makes the records with some numbers, with their times if `half` is not 0."""

    def __init__(self, keys: int, half: int = 0) -> None:
        self._keys, self._half = keys, half

    def __call__(self, first: int, count: int) -> pa.RecordBatch:
        numbers = np.arange(first, first + count)
        users = pc.utf8_replace_slice(pa.array(numbers * 7919 % self._keys).cast(pa.string()), 0, 0, "user_")
        if not self._half:
            return pa.record_batch({"user": users, "number": numbers})
        place = numbers % self._half
        return pa.record_batch({"user": users, "number": numbers, "at": place + 5000 * (place // 10000)})


def draw(env: StreamExecutionEnvironment, workload: str, records: int, keys: int) -> Any:
    """Draw the workload as a stream of columns."""
    if workload == "keyed-count":
        pairs = env.from_source(
            ColumnGeneratorSource(Pairs(keys), records, PAIR), WatermarkStrategy.no_watermarks(), "pairs"
        )
        return pairs.key_by("user").aggregate(count=Count())
    source = ColumnGeneratorSource(Pairs(keys, records // 2), records, TIMED)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_column("at")
    windows = TumblingEventTimeWindows.of(Time.seconds(10))
    return env.from_source(source, strategy, "pairs").key_by("user").window(windows).aggregate(sum=Sum("number"))


def seconds_of(workload: str, api: str, records: int, keys: int, parallelism: int) -> float:
    env = environment(parallelism, api)
    draw(env, workload, records, keys).sink_to(Discard())
    started = time.perf_counter()
    env.execute(workload)
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workload", choices=("keyed-count", "tumbling"), required=True)
    parser.add_argument("--api", choices=("continuous", "epochs"), default="continuous")
    parser.add_argument("--records", type=int, default=20_000_000)
    parser.add_argument("--keys", type=int, default=1_000)
    parser.add_argument("--parallelism", type=int, default=2)
    parser.add_argument("--turns", type=int, default=3)
    given = parser.parse_args()
    seconds_of(given.workload, given.api, WARM_UP_RECORDS, given.keys, given.parallelism)
    turns = [
        seconds_of(given.workload, given.api, given.records, given.keys, given.parallelism) for _ in range(given.turns)
    ]
    tell({"seconds": turns})


if __name__ == "__main__":
    main()
