"""Sessions: the clicks of a visitor become visits. A visit ends after ten minutes without a click.

    python examples/sessions.py

Clicks arrive out of order; the watermark waits five minutes for late clicks. The table shows every visit as a bar.
"""

from __future__ import annotations

from ekorn.common import Duration, Time, WatermarkStrategy
from ekorn.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from ekorn.datastream.window import EventTimeSessionWindows

MINUTE = 60_000
CLICKS = [  # visitor, page, minute
    ("ada", "/", 0), ("bob", "/", 1), ("ada", "/nuts", 3), ("ada", "/cart", 2), ("bob", "/nuts", 4),
    ("ada", "/pay", 7), ("cyd", "/", 9), ("bob", "/", 31), ("cyd", "/nuts", 19), ("cyd", "/help", 28),
    ("ada", "/", 40), ("bob", "/cart", 33), ("ada", "/nuts", 44), ("cyd", "/", 45),
]  # fmt: skip


class Visit(ProcessWindowFunction):
    """Emits a visit: the visitor, its first and last minute, and the pages in the order of their time."""

    def process(self, key, context, elements):
        clicks = sorted(elements, key=lambda click: click[2])
        yield key, clicks[0][2], clicks[-1][2], [page for _, page, _ in clicks]


def visits() -> list[tuple[str, int, int, list[str]]]:
    """Run the job and return the visits."""
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_minutes(5)).with_timestamp_assigner(
        lambda click, _: click[2] * MINUTE
    )
    found = (
        env.from_collection(CLICKS)
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda click: click[0])
        .window(EventTimeSessionWindows.with_gap(Time.minutes(10)))
        .process(Visit())
    )
    with found.execute_and_collect("visits") as results:
        return sorted(results)


def main() -> None:
    """Draw the visits on an axis of 50 minutes."""
    print("visitor  minutes  0         10        20        30        40        50  pages")
    for visitor, first, last, pages in visits():
        bar = " " * first + "#" * (last - first + 1)
        print(f"{visitor:<9}{first:>2} - {last:<4}{bar:<52}{' '.join(pages)}")


if __name__ == "__main__":
    main()
