"""Both engines under a backlog, in turns in one Spark session: throughput continuously as a part of that in epochs.

    python -m benchmarks.engines [--workload sliding] [--records 4000000] [--turns 5]

A machine changes its speed from minute to minute, by more than the engines differ. So each turn runs the same job on
one engine and then on the other, and the result is the median of the turns. The start of each job counts; the start of
Spark does not. `peers/measuring.py` describes the workloads.
"""

from __future__ import annotations

import argparse
import statistics
import time

from benchmarks.ekorn_jobs import Discard, draw
from benchmarks.peers.measuring import WARM_UP_RECORDS, WORKLOADS, tell
from ekorn.common import Configuration
from ekorn.datastream import StreamExecutionEnvironment

ENGINES = ("continuous", "epochs")
KEYS = 1_000
PARALLELISM = 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workload", choices=WORKLOADS, action="append", help="may be repeated; all if left out")
    parser.add_argument("--records", type=int, default=4_000_000)
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    for workload in options.workload or WORKLOADS:
        for engine in ENGINES:
            seconds_of(workload, engine, WARM_UP_RECORDS)
        turns = [in_turn(workload, options.records, number) for number in range(options.turns)]
        parts = [turn["epochs"] / turn["continuous"] for turn in turns]
        rates = {engine: round(options.records / statistics.median(t[engine] for t in turns)) for engine in ENGINES}
        tell(
            {"workload": workload, "records": options.records}
            | {f"{engine}_per_second": rate for engine, rate in rates.items()}
            | {"part": round(statistics.median(parts), 3), "parts": [round(part, 2) for part in parts]}
        )


def in_turn(workload: str, records: int, number: int) -> dict[str, float]:
    """Run a job on both engines, on each of them first in every other turn; return the seconds."""
    order = ENGINES if number % 2 else ENGINES[::-1]
    return {engine: seconds_of(workload, engine, records) for engine in order}


def seconds_of(workload: str, engine: str, records: int) -> float:
    configuration = Configuration()
    configuration.set_string("ekorn.execution", engine)
    configuration.set_string("spark.master", "local[16]")
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(PARALLELISM)
    draw(env, workload, records, KEYS).add_sink(Discard())
    started = time.perf_counter()
    env.execute(workload)
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
