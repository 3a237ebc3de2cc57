"""A job of timers alone: every number registers two, far ahead; the first to fire deletes the second of every third.

The memory for entries in use is so small that most timers are in RocksDB only, if the job keeps them there. `verify`
finds timers that are lost, that fired twice, or that fired although they were deleted.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from ekorn.common import Configuration, Types, WatermarkStrategy
from ekorn.common.serialization import Encoder
from ekorn.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from ekorn.datastream.connectors.datagen import DataGeneratorSource
from ekorn.datastream.connectors.file_system import FileSink
from tests.live_jobs import limited
from tests.spark.checkpointed import checkpointed_environment

AHEAD = 3_000


class Remind(KeyedProcessFunction):
    """Registers two timers with every record. The key is the number."""

    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(value + AHEAD)
        ctx.timer_service().register_event_time_timer(value + 2 * AHEAD)

    def on_timer(self, timestamp, ctx):
        number = ctx.get_current_key()
        if number % 3 == 0:
            ctx.timer_service().delete_event_time_timer(number + 2 * AHEAD)
        yield f"{number},{timestamp}"


def build(
    records: int,
    per_second: float,
    folder: Path,
    *,
    parallelism: int = 2,
    restore: str | None = None,
    backend: str = "rocksdb",
    execution: str = "epochs",
) -> StreamExecutionEnvironment:
    """Build the job, which writes below `folder`."""
    env = checkpointed_environment(
        folder, parallelism=parallelism, interval_ms=200, restore=restore, backend=backend, execution=execution
    )
    if backend == "rocksdb":
        few = Configuration().set_string("state.backend.rocksdb.timer-service.factory", "ROCKSDB")
        few.set_string("state.backend.rocksdb.timer-service.cache-size", "4")
        few.set_string("ekorn.state.rocksdb.cache-size", "64kb")
        env.configure(few)
    source = DataGeneratorSource(lambda number: number, records, limited(per_second), Types.LONG())
    watermarks = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda number, _: number)
    sink = FileSink.for_row_format(str(folder / "out"), Encoder.simple_string_encoder()).build()
    stream = env.from_source(source, watermarks, "numbers").uid("numbers").key_by(lambda number: number)
    stream.process(Remind(), output_type=Types.STRING()).uid("timers").sink_to(sink).uid("files")
    return env


def verify(records: int, folder: Path) -> list[str]:
    """Return what is wrong with the committed files; an empty list if nothing is."""
    expected = Counter(f"{number},{number + AHEAD}" for number in range(records))
    expected.update(f"{number},{number + 2 * AHEAD}" for number in range(records) if number % 3 != 0)
    found = Counter(line for part in (folder / "out").rglob("part-*") for line in part.read_text().splitlines())
    lost, more = expected - found, found - expected
    wrong = [f"{sum(lost.values())} timers did not fire: {sorted(lost)[:5]}"] if lost else []
    return wrong + ([f"{sum(more.values())} fired that should not: {sorted(more)[:5]}"] if more else [])
