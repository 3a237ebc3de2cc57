"""The seconds without output while a job on Spark is rescaled, by backend, engine and size of the state.

    python -m benchmarks.rescale_time [--gigabytes 1] [--backends heap,rocksdb] [--executions epochs] [--steps 2,3,2]

The job keeps a text of 1,000 characters for each key, which is filled first, and checkpoints once a second. Then it
reads 500 records a second and notes the time of every record at its sink. The down time is the time from the last
record at the old parallelism to the first at the new one. Everything runs on one machine, in one driver.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.noted_records import NoteTimes, noted_records
from ekorn.common import Configuration, Types, WatermarkStrategy
from ekorn.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from ekorn.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from ekorn.datastream.connectors.number_seq import NumberSequenceSource
from ekorn.datastream.state import ValueStateDescriptor

PER_SECOND = 500
VALUE_CHARACTERS = 1_000


class Keep(KeyedProcessFunction):
    """Keeps a text for each key."""

    def open(self, runtime_context: Any) -> None:
        self.kept = runtime_context.get_state(ValueStateDescriptor("kept", Types.STRING()))

    def process_element(self, value: int, ctx: Any) -> Iterator[int]:
        self.kept.update(f"{value:0{VALUE_CHARACTERS}d}")
        yield value


def job(folder: Path, backend: str, execution: str, keys: int, parallelism: int) -> StreamExecutionEnvironment:
    """Draw the job."""
    configuration = Configuration()
    for key, value in {
        "state.backend.type": {"heap": "hashmap"}.get(backend, backend),
        "execution.checkpointing.dir": str(folder / "checkpoints"),
        "execution.checkpointing.incremental": "true",
        "ekorn.execution": execution,
    }.items():
        configuration.set_string(key, value)
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(parallelism)
    env.set_max_parallelism(128)
    env.enable_checkpointing(1_000)
    no_watermarks = WatermarkStrategy.no_watermarks()
    filling = env.from_source(NumberSequenceSource(-keys, -1), no_watermarks, "filling").uid("filling")
    ticks = DataGeneratorSource(lambda n: n, 2**40, RateLimiterStrategy.per_second(PER_SECOND))
    numbers = filling.union(
        env.from_source(ticks, no_watermarks, "ticks", Types.LONG()).uid("ticks").set_parallelism(1)
    )
    kept = numbers.key_by(lambda n: n % keys).process(Keep(), Types.LONG()).uid("keep")
    kept.filter(lambda n: n >= 0).add_sink(NoteTimes(str(folder / "notes"))).uid("notes")
    return env


def measure(backend: str, execution: str, keys: int, steps: list[int]) -> None:
    """Run a job through some parallelisms, and print the down time between each two."""
    with tempfile.TemporaryDirectory() as base:
        folder = Path(base)
        client = job(folder, backend, execution, keys, steps[0]).execute_async("rescale time")
        _wait(lambda: client.get_progress().records_read > keys + PER_SECOND)
        settled = client.get_progress().checkpoints_completed
        _wait(lambda: client.get_progress().checkpoints_completed > settled + 1)
        for before, after in itertools.pairwise(steps):
            asked = time.monotonic_ns()
            client.rescale(after).result()
            took_s = (time.monotonic_ns() - asked) / 1e9
            time.sleep(2.0)
            print(
                f"{backend:8} {execution:11} {keys * VALUE_CHARACTERS / 1e9:5.2f} GB  {before} -> {after}: "
                f"{_down_s(folder / 'notes', asked):6.2f} s without output, {took_s:6.2f} s from request to answer",
                flush=True,
            )
        client.cancel().result()


def _down_s(notes: Path, since_ns: int) -> float:
    """Return the seconds between the last record of sinks opened before a moment and the first of those after it."""
    found = list(noted_records(notes))
    last = max(note.at_ns for note in found if note.opened_ns < since_ns)
    first = min(note.at_ns for note in found if note.opened_ns >= since_ns)
    return (first - last) / 1e9


def _wait(condition: Any, within_s: float = 600.0) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("the job does not come to where it is measured")
        time.sleep(0.05)


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--gigabytes", type=float, default=1.0)
    parser.add_argument("--backends", default="heap,rocksdb")
    parser.add_argument("--executions", default="epochs")
    parser.add_argument("--steps", default="2,3,2")
    given = parser.parse_args()
    keys = int(given.gigabytes * 1e9 / VALUE_CHARACTERS)
    # All jobs share one session, and one that was started for continuous jobs serves both engines.
    for execution in sorted(given.executions.split(",")):
        for backend in given.backends.split(","):
            measure(backend, execution, keys, [int(each) for each in given.steps.split(",")])


if __name__ == "__main__":
    main()
