"""The seconds from `execute()` to the first record in the driver, with and without the start of Spark."""

from __future__ import annotations

import argparse
import json
import time

from benchmarks.ekorn_jobs import environment
from ekorn.common import WatermarkStrategy
from ekorn.datastream.connectors.number_seq import NumberSequenceSource


def first_result(execution: str) -> float:
    """Run one job until its first result, and return the seconds."""
    env = environment(2, execution)
    numbers = env.from_source(NumberSequenceSource(1, 1000), WatermarkStrategy.no_watermarks(), "numbers")
    sums = numbers.key_by(lambda n: n % 10).reduce(lambda a, b: a + b)
    started = time.perf_counter()
    with sums.execute_and_collect() as results:
        next(results)
        return time.perf_counter() - started


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--execution", default="epochs", choices=("epochs", "continuous"))
    chosen = parser.parse_args().execution
    cold = first_result(chosen)
    warm = sorted(first_result(chosen) for _ in range(5))[2]
    print(json.dumps({"cold_seconds": cold, "warm_seconds": warm}))
