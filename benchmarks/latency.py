"""The age of records at the sink: a keyed count at a steady rate, on either engine, over two levels or three.

    python -m benchmarks.latency --execution continuous --rate 1000 --seconds 60 [--levels 3] [--checkpoint-ms 1000]
    python -m benchmarks.latency --form columns --rate 1000 --seconds 60

The source stamps a record when it reads it, and the last operator of the job subtracts. Both run on one machine. Only
the second half of the records counts: before, the JVM interprets its code and compiles it, on the same cores. With
`--timers` the age is that of processing-time timers: how long after their time they fired. With `--form columns` the
stream becomes columns behind its source, the count is that of columns, and the last operator reads rows again.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from typing import Any

from benchmarks.peers.measuring import tell_ages
from ekorn.common import Configuration, Types, WatermarkStrategy
from ekorn.datastream import DataStream, StreamExecutionEnvironment
from ekorn.datastream.columns import Count as CountRows
from ekorn.datastream.columns import Last
from ekorn.datastream.functions import FilterFunction, KeyedProcessFunction
from ekorn.datastream.state import ValueStateDescriptor
from ekorn.functions.source_contract import Batch, Boundedness, Source, Split, SplitReader

KEYS = 100
PARALLELISM = 2
TIMER_MS = 50
RECORD = Types.ROW_NAMED(["key", "read"], [Types.LONG(), Types.DOUBLE()])


class SteadySource(Source):
    """Emits (key, the time of reading) at a rate, for some seconds."""

    def __init__(self, rate: float, seconds: float) -> None:
        self._rate = rate
        self._seconds = seconds

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def discover_splits(self, parallelism: int) -> list[Split]:
        return [Split(str(number), number) for number in range(parallelism)]

    def create_reader(self, split: Split, position: Any | None) -> SplitReader:
        return _SteadyReader(self._rate / PARALLELISM, self._seconds, position or 0)


class _SteadyReader(SplitReader):
    def __init__(self, rate: float, seconds: float, read: int) -> None:
        self._rate = rate
        self._all = int(rate * seconds)
        self._read = read
        self._began: float | None = None

    def read(self, max_records: int) -> Batch:
        now = time.time()
        self._began = now if self._began is None else self._began
        due = min(int((now - self._began) * self._rate), self._all) - self._read
        numbers = range(self._read, self._read + min(due, max_records))
        self._read = numbers.stop
        return Batch([(number % KEYS, now) for number in numbers])

    def position(self) -> Any:
        return self._read

    @property
    def finished(self) -> bool:
        return self._read >= self._all


class Count(KeyedProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG(), 0))

    def process_element(self, value: Any, ctx: Any) -> Any:
        self.count.update(self.count.value() + 1)
        yield value


class Alarm(KeyedProcessFunction):
    """Sets a timer for every record, and emits the time for which it was set."""

    def process_element(self, value: Any, ctx: Any) -> Any:
        timers = ctx.timer_service()
        timers.register_processing_time_timer(timers.current_processing_time() + TIMER_MS)
        return ()

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield ctx.get_current_key(), timestamp / 1000


class Age(FilterFunction):
    """Drops records, and writes their ages to a file in the end: the disk is busy with checkpoints before."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def open(self, runtime_context: Any) -> None:
        self._path = f"{self._folder}/{runtime_context.get_index_of_this_subtask()}"
        self._ages: list[float] = []

    def filter(self, value: Any) -> bool:
        self._ages.append(time.time() - value[1])
        return False

    def close(self) -> None:
        with open(self._path, "w") as file:
            file.writelines(f"{age:.6f}\n" for age in self._ages)


def counted(stream: DataStream, levels: int) -> DataStream:
    for number in range(levels - 1):
        stream = stream.key_by(lambda value, number=number: value[0] + number).process(Count())  # type: ignore[misc]
    return stream


def counted_on_columns(stream: DataStream, levels: int) -> DataStream:
    columns = stream.to_columns(RECORD)
    for _ in range(levels - 1):
        columns = columns.key_by("key").aggregate(count=CountRows(), read=Last("read")).project("key", "read")
    return columns.to_rows()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--execution", default="continuous", choices=("continuous", "epochs"))
    parser.add_argument("--rate", type=float, default=1_000.0)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--levels", type=int, default=2)
    parser.add_argument("--checkpoint-ms", type=int, default=0)
    parser.add_argument("--timers", action="store_true")
    parser.add_argument("--form", default="rows", choices=("rows", "columns"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        configuration = Configuration()
        configuration.set_string("ekorn.execution", options.execution)
        env = StreamExecutionEnvironment.get_execution_environment(configuration)
        env.set_parallelism(PARALLELISM)
        if options.checkpoint_ms:
            env.enable_checkpointing(options.checkpoint_ms)
        source = SteadySource(options.rate, options.seconds)
        numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "steady")
        alarms = numbers.key_by(lambda value: value[0]).process(Alarm()) if options.timers else None
        count = counted_on_columns if options.form == "columns" else counted
        (alarms or count(numbers, options.levels)).filter(Age(folder)).print()
        env.execute("latency")
        tell_ages(folder)


if __name__ == "__main__":
    main()
