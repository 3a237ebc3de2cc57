"""The median time of an epoch without records, and of a bare Spark job of the same shape, measured in turns."""

from __future__ import annotations

import argparse
import json
import statistics
import time

from benchmarks.ekorn_jobs import Discard, environment
from ekorn.common import WatermarkStrategy
from ekorn.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from ekorn.engine.slots.epoch_engine import EpochSlotEngine


def bare(context, partitions: int = 2) -> float:
    """Run two Python stages and a shuffle that do nothing; return the milliseconds."""

    def level(index, rows):
        for _ in rows:
            pass
        for partition in range(partitions):
            yield partition, b"x"

    base = context.parallelize(range(partitions), partitions)
    started = time.perf_counter()
    first = base.mapPartitionsWithIndex(level)
    first.partitionBy(partitions, lambda key: key).mapPartitionsWithIndex(level).collect()
    return (time.perf_counter() - started) * 1000


def main() -> None:
    """Measure both, alternating, so that other load on the machine affects both alike."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=100)
    rounds = parser.parse_args().rounds
    epochs: list[float] = []
    bares: list[float] = []
    client = None
    run_epoch = EpochSlotEngine.run_epoch

    def timed(engine: EpochSlotEngine, order):
        from pyspark import SparkContext

        started = time.perf_counter()
        result = run_epoch(engine, order)
        if order.number > 20:  # Spark's code is compiled by then
            epochs.append((time.perf_counter() - started) * 1000)
            bares.append(bare(SparkContext._active_spark_context))
        if len(epochs) >= rounds and client is not None:
            client.cancel()
        return result

    EpochSlotEngine.run_epoch = timed  # type: ignore[assignment, method-assign]
    env = environment(2)
    silent = DataGeneratorSource(lambda n: n, None, RateLimiterStrategy.per_second(0.001))
    stream = env.from_source(silent, WatermarkStrategy.no_watermarks(), "silent")
    stream.key_by(lambda n: n).map(lambda n: n).add_sink(Discard())
    client = env.execute_async("empty epochs")
    client.get_job_execution_result().exception()
    epoch_ms, bare_ms = statistics.median(epochs), statistics.median(bares)
    print(json.dumps({"epoch_ms": epoch_ms, "bare_ms": bare_ms, "ratio": epoch_ms / bare_ms}))


if __name__ == "__main__":
    main()
