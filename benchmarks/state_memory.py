"""The resident memory of slots with many keys of heap state, one long value each, and of slots with few keys."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from benchmarks.ekorn_jobs import Count, Discard, environment
from ekorn.common import WatermarkStrategy
from ekorn.datastream.connectors.number_seq import NumberSequenceSource


def resident_mb(pids: tuple[int, ...]) -> float:
    """Return the resident memory of these processes together."""
    lines = [line for pid in pids for line in Path(f"/proc/{pid}/status").read_text().splitlines()]
    return sum(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def run(keys: int) -> float:
    """Return the memory after every key has been counted once, while the job waits for its last record."""
    env = environment(2)
    numbers = env.from_source(NumberSequenceSource(0, keys * 2 - 1), WatermarkStrategy.no_watermarks(), "numbers")
    numbers.map(lambda i: ("user_%d" % (i % keys), i)).key_by(lambda pair: pair[0]).process(Count()).add_sink(Discard())  # noqa: UP031
    client = env.execute_async("memory")
    highest = 0.0
    while not client.get_job_status().result().is_globally_terminal_state():
        progress = client.get_progress()
        if progress.records_read > keys * 1.5:
            try:
                highest = max(highest, resident_mb(progress.slot_pids))
            except OSError:  # the job has just ended
                break
    client.get_job_execution_result().result()
    return highest


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--keys", type=int, default=3_000_000)
    keys = parser.parse_args().keys
    few = run(20_000)
    many = run(keys)
    print(
        json.dumps(
            {
                "keys": keys,
                "key_kind": "string",
                "mb_per_million_keys": (many - few) / keys * 1e6,
                "slots_mb_with_few_keys": few,
                "slots_mb": many,
            }
        )
    )
