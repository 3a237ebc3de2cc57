"""Jobs on an embedded Spark whose surroundings or load are not even: slow checkpoint storage, one hot key.

    python -m benchmarks.disturbed_jobs [--only storage,hot-key] [--seconds 20]

    storage   records per second of a count per key with a checkpoint every second: before, while and after each write
              to the checkpoint storage takes twice the checkpoint's timeout, so that no checkpoint completes
    hot-key   the delay of records from source to sink at 5,000 records a second and 20 microseconds of work a record:
              of all keys when 100 keys share the load, and of 99 keys beside one that has four fifths of it

The parallelism is 2. Every figure covers the given number of seconds, after a few seconds to start.
"""

from __future__ import annotations

import argparse
import os
import statistics
import struct
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.campaign.faulty_storage import CONTROL, register, set_faults

from ekorn.common import Configuration, RestartStrategies, Types, WatermarkStrategy
from ekorn.datastream import KeyedProcessFunction, SinkFunction, StreamExecutionEnvironment
from ekorn.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from ekorn.datastream.state import ValueStateDescriptor
from ekorn.slot_protocol.deployment_codec import call_in_slots

CHECKPOINT_TIMEOUT_MS = 2_000
PER_SECOND = 5_000
WORK_NS = 20_000
START_S = 5.0
DELAY = "<qq"  # when a record arrived, and its delay, in nanoseconds


class Count(KeyedProcessFunction):
    """Counts the records of a key."""

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        self.count.update((self.count.value() or 0) + 1)
        yield value


class Work(Count):
    """Counts, and keeps the processor busy for a while."""

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        until_ns = time.perf_counter_ns() + WORK_NS
        yield from super().process_element(value, ctx)
        while time.perf_counter_ns() < until_ns:
            pass


class Discard(SinkFunction):
    def invoke(self, value: Any, context: Any) -> None:
        pass


class NoteDelays(SinkFunction):
    """Appends the delay of every tenth record to a file."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._seen = 0

    def open(self, runtime_context: Any) -> None:
        self._file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def invoke(self, value: tuple[int, int], context: Any) -> None:
        self._seen += 1
        if self._seen % 10 == 0:
            now_ns = time.monotonic_ns()
            os.write(self._file, struct.pack(DELAY, now_ns, now_ns - value[1]))


def environment(**settings: str) -> StreamExecutionEnvironment:
    configuration = Configuration()
    for key, value in settings.items():
        configuration.set_string(key.replace("__", ".").replace("_", "-"), value)
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(2)
    env.set_restart_strategy(RestartStrategies.no_restart())
    return env


@contextmanager
def running(env: StreamExecutionEnvironment) -> Iterator[Any]:
    client = env.execute_async("disturbed")
    try:
        while client.get_progress().records_read == 0:
            time.sleep(0.1)
        time.sleep(START_S)
        yield client
    finally:
        client.cancel().result()


def storage(seconds: float) -> None:
    with tempfile.TemporaryDirectory(prefix="disturbed-", ignore_cleanup_errors=True) as folder:
        os.environ[CONTROL] = control = f"{folder}/storage.json"
        register()
        call_in_slots(register)
        env = environment(
            execution__checkpointing__dir=f"faulty://{folder}/checkpoints",
            execution__checkpointing__timeout=f"{CHECKPOINT_TIMEOUT_MS} ms",
            execution__checkpointing__tolerable_failed_checkpoints="1000000",
        )
        env.enable_checkpointing(1_000)
        numbers = env.from_source(DataGeneratorSource(lambda n: n, 2**40), WatermarkStrategy.no_watermarks(), "numbers")
        numbers.key_by(lambda n: n % 1_000).process(Count(), Types.LONG()).add_sink(Discard())
        with running(env) as client:
            for phase, delay_ms in (("before", 0), ("while slow", 2 * CHECKPOINT_TIMEOUT_MS), ("after", 0)):
                set_faults(control, delay_ms=delay_ms)
                before, started = client.get_progress(), time.monotonic()
                time.sleep(seconds)
                now, passed = client.get_progress(), time.monotonic() - started
                rate = (now.records_read - before.records_read) / passed
                completed = now.checkpoints_completed - before.checkpoints_completed
                failed = now.checkpoints_failed - before.checkpoints_failed
                print(
                    f"storage, {phase}: {rate:,.0f} records/s; {completed} checkpoints completed, {failed} failed",
                    flush=True,
                )


def hot_key(seconds: float) -> None:
    for name, key_of in (
        ("100 keys share the load", lambda n: n % 100),
        ("beside a hot key", lambda n: 0 if n % 5 else 1 + n // 5 % 99),
    ):
        with tempfile.TemporaryDirectory(prefix="disturbed-", ignore_cleanup_errors=True) as folder:
            notes = Path(folder, "delays")
            env = environment()
            source = DataGeneratorSource(lambda n: n, 2**40, RateLimiterStrategy.per_second(PER_SECOND))
            numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").set_parallelism(1)
            stamped = numbers.map(lambda n, key_of=key_of: (key_of(n), time.monotonic_ns()))  # type: ignore[misc]
            worked = stamped.key_by(lambda r: r[0]).process(Work())
            other = worked if name.startswith("100") else worked.filter(lambda r: r[0] != 0)
            other.add_sink(NoteDelays(str(notes)))
            with running(env):
                since_ns = time.monotonic_ns()
                time.sleep(seconds)
            delays = sorted(delay for at_ns, delay in struct.iter_unpack(DELAY, notes.read_bytes()) if at_ns > since_ns)
            middle, late = statistics.median(delays), delays[len(delays) * 99 // 100]
            print(f"hot-key, {name}: delay median {middle / 1e6:.0f} ms, 99 % {late / 1e6:.0f} ms", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="storage,hot-key")
    parser.add_argument("--seconds", type=float, default=20.0)
    given = parser.parse_args()
    measures = {"storage": storage, "hot-key": hot_key}
    for name in given.only.split(","):
        measures[name](given.seconds)


if __name__ == "__main__":
    main()
