"""Backfill, then live: one job reads history from files, switches to the live stream, and counts both as one.

    python examples/backfill.py

`HybridSource` reads the files to their end before it begins with the live source, which stands for a topic of Kafka
here. State and windows do not notice the switch: a day that begins in the files and ends live is one window.
Positions of both are in every checkpoint.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from ekorn.common import Time, Types, WatermarkStrategy
from ekorn.datastream import AggregateFunction, ProcessWindowFunction, StreamExecutionEnvironment
from ekorn.datastream.connectors.datagen import DataGeneratorSource
from ekorn.datastream.connectors.file_system import FileSource, StreamFormat
from ekorn.datastream.connectors.hybrid_source import HybridSource
from ekorn.datastream.window import TumblingEventTimeWindows

DAY_MS = 86_400_000
SALES, IN_FILES = 700, 450  # the first 450 sales are in files, which end on day 7
MINUTES = 24  # between two sales


def sale(number: int) -> str:
    """Return a line of a sale: its time in milliseconds and its cents."""
    return f"{number * MINUTES * 60_000},{500 + number * 37 % 900}"


def write_history(folder: Path) -> None:
    """Write the older sales to three files, as an archive has them."""
    for part in range(3):
        lines = [sale(number) for number in range(part * 150, (part + 1) * 150)]
        (folder / f"sales-{part}.csv").write_text("\n".join(lines) + "\n")


class Total(AggregateFunction):
    """Adds up cents."""

    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + value[1]

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


class WithDay(ProcessWindowFunction):
    """Adds the number of the day."""

    def process(self, key, context, elements):
        for cents in elements:
            yield context.window().start // DAY_MS, cents


def revenue(folder: Path) -> list[tuple[int, int]]:
    """Run the job; return the revenue of each day."""
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    history = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(folder)).build()
    live = DataGeneratorSource(lambda number: sale(IN_FILES + number), SALES - IN_FILES, type_info=Types.STRING())
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda line, _: int(line.split(",")[0])
    )
    days = (
        env.from_source(HybridSource.builder(history).add_source(live).build(), strategy, "sales")
        .map(lambda line: tuple(map(int, line.split(","))))
        .key_by(lambda sale: "shop")
        .window(TumblingEventTimeWindows.of(Time.days(1)))
        .aggregate(Total(), WithDay())
    )
    with days.execute_and_collect("backfill") as results:
        return sorted(results)


def main() -> None:
    """Draw the days; the day in which the files end is marked."""
    with tempfile.TemporaryDirectory() as folder:
        write_history(Path(folder))
        found = revenue(Path(folder))
    switch = int(sale(IN_FILES).split(",")[0]) // DAY_MS
    for day, cents in found:
        mark = "<- files end, live begins" if day == switch else ""
        print(f"day {day:>2} {cents / 100:>8.2f}  {'#' * (cents // 1500)} {mark}")


if __name__ == "__main__":
    main()
