"""The cost of a checkpoint every second: the keyed count with and without checkpoints, alternating, on embedded Spark.

    python -m benchmarks.checkpoint_cost --records 12000000 --keys 100000 [--backend rocksdb]

The last line of the output is JSON with the medians.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time

from benchmarks.ekorn_jobs import Discard, draw, environment
from ekorn.common import Configuration


def seconds(records: int, keys: int, backend: str, interval_ms: int | None) -> tuple[float, int]:
    """Run a job; return the seconds from `execute` to its end, and the number of completed checkpoints."""
    env = environment(2)
    configuration = Configuration()
    configuration.set_string("state.backend.type", backend)
    env.configure(configuration)
    with tempfile.TemporaryDirectory(prefix="ekorn-bench-") as folder:
        if interval_ms is not None:
            env.enable_checkpointing(interval_ms)
            env.get_checkpoint_config().set_checkpoint_storage_dir(folder)
        draw(env, "keyed-count", records, keys).add_sink(Discard())
        started = time.perf_counter()
        client = env.execute_async("checkpoint cost")
        client.get_job_execution_result().result()
        return time.perf_counter() - started, client.get_progress().checkpoints_completed


def main() -> None:
    """Measure both in turn and print the medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=12_000_000)
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--backend", default="hashmap")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    seconds(20_000, options.keys, options.backend, None)  # warms up
    without, with_checkpoints, apart = [], [], []
    for _ in range(options.rounds):
        without.append(seconds(options.records, options.keys, options.backend, None)[0])
        taken, checkpoints = seconds(options.records, options.keys, options.backend, 1000)
        with_checkpoints.append(taken)
        apart.append(taken / checkpoints)
    ratio = statistics.median(without) / statistics.median(with_checkpoints)
    print(
        json.dumps(
            {
                "backend": options.backend,
                "without_per_second": options.records / statistics.median(without),
                "with_per_second": options.records / statistics.median(with_checkpoints),
                "ratio": ratio,
                "seconds_between_checkpoints": statistics.median(apart),
            }
        )
    )


if __name__ == "__main__":
    main()
