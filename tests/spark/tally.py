"""A job whose output no fault may change: numbered records, state per key, files that appear once.

Every record carries its number. Keyed state counts the records of a key, sums their numbers and counts their parities.
The file sink holds output back until its checkpoint is completed. `verify` finds what is lost, doubled or wrong in
the files.
"""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

from ekorn.common import Types, WatermarkStrategy
from ekorn.common.serialization import Encoder
from ekorn.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from ekorn.datastream.connectors.datagen import DataGeneratorSource
from ekorn.datastream.connectors.file_system import FileSink
from ekorn.datastream.state import MapStateDescriptor, ValueStateDescriptor
from tests.live_jobs import Held, limited
from tests.spark.checkpointed import checkpointed_environment

KEYS = 97


def record(number: int) -> tuple[str, int]:
    return f"key-{number * 31 % KEYS}", number


class Tally(KeyedProcessFunction):
    """Counts and sums per key in two states, and counts the numbers' parities in a third.

    Args:
        held_up_by: While this file exists, every record takes a millisecond.
    """

    def __init__(self, held_up_by: Path | None = None) -> None:
        self.held_up_by = held_up_by

    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG()))
        self.parities = runtime_context.get_map_state(MapStateDescriptor("parities", Types.LONG(), Types.LONG()))

    def process_element(self, value, ctx):
        key, number = value
        if self.held_up_by is not None and self.held_up_by.exists():
            time.sleep(0.001)
        count, total = (self.count.value() or 0) + 1, (self.total.value() or 0) + number
        self.count.update(count)
        self.total.update(total)
        self.parities.put(number % 2, (self.parities.get(number % 2) or 0) + 1)
        seen = sum(self.parities.values())
        yield f"{key},{number},{count},{total},{seen}"


def build(
    records: int,
    per_second: float | Held,
    folder: Path,
    *,
    parallelism: int = 2,
    interval_ms: int = 200,
    restore: str | None = None,
    backend: str = "hashmap",
    execution: str = "epochs",
    held_up_by: Path | None = None,
) -> StreamExecutionEnvironment:
    """Build the job, which writes below `folder`; `held_up_by` is a file that slows it down while it exists."""
    env = checkpointed_environment(
        folder,
        parallelism=parallelism,
        interval_ms=interval_ms,
        restore=restore,
        backend=backend,
        execution=execution,
    )
    source = DataGeneratorSource(record, records, limited(per_second))
    sink = FileSink.for_row_format(str(folder / "out"), Encoder.simple_string_encoder()).build()
    (
        env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
        .uid("numbers")
        .key_by(lambda value: value[0])
        .process(Tally(held_up_by), output_type=Types.STRING())
        .uid("tally")
        .sink_to(sink)
        .uid("files")
    )
    return env


def verify(records: int, folder: Path) -> list[str]:
    """Return what is wrong with the committed files; an empty list if nothing is."""
    wrong: list[str] = []
    numbers: Counter[int] = Counter()
    counts: dict[str, list[int]] = {}
    last: dict[str, tuple[int, int]] = {}
    for part in (folder / "out").rglob("part-*"):
        for line in part.read_text().splitlines():
            key, number, count, total, seen = line.split(",")
            numbers[int(number)] += 1
            counts.setdefault(key, []).append(int(count))
            last[key] = max(last.get(key, (0, 0)), (int(count), int(total)))
            if count != seen:
                wrong.append(f"states disagree: {line}")
    lost = [n for n in range(records) if numbers[n] == 0]
    doubled = [n for n, times in numbers.items() if times > 1]
    if lost:
        wrong.append(f"{len(lost)} lost: {lost[:5]}")
    if doubled:
        wrong.append(f"{len(doubled)} doubled: {doubled[:5]}")
    sums: Counter[str] = Counter()
    for each in range(records):
        sums[record(each)[0]] += each
    for key, found in counts.items():
        if sorted(found) != list(range(1, len(found) + 1)):
            wrong.append(f"the counts of {key} are not 1..{len(found)}")
        if last[key][1] != sums[key]:
            wrong.append(f"the total of {key} is {last[key][1]}, not {sums[key]}")
    return wrong[:10]
