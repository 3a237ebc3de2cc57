"""The most viewed pages of every minute: one window per page, then a window over the results of all pages.

    python examples/top_pages.py

The picture shows the three best pages of each minute as bars.
"""

from __future__ import annotations

from ekorn.common import Time, WatermarkStrategy
from ekorn.datastream import AggregateFunction, StreamExecutionEnvironment, WindowFunction
from ekorn.datastream.functions import ProcessAllWindowFunction
from ekorn.datastream.window import TumblingEventTimeWindows

PAGES = ("/nuts", "/cart", "/help", "/about", "/")
VIEWS = 3_000
BEST = 3


def view(number: int) -> tuple[str, int]:
    """Return the page and the time in milliseconds of a view; the popular pages change with the minute."""
    minute = number // 1_000
    page = PAGES[(number * number + minute * number) % (7 + minute) % len(PAGES)]
    return page, number * 60


class Count(AggregateFunction):
    """Counts views."""

    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + 1

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


class WithPage(WindowFunction):
    """Adds the page to its count."""

    def apply(self, key, window, inputs):
        return [(key, count) for count in inputs]


class Best(ProcessAllWindowFunction):
    """Emits the pages with the highest counts of one minute."""

    def process(self, context, elements):
        ranked = sorted(elements, key=lambda page: (-page[1], page[0]))
        yield context.window().start // 60_000, ranked[:BEST]


def best_pages() -> list[tuple[int, list[tuple[str, int]]]]:
    """Run the job and return the best pages of each minute."""
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda seen, _: seen[1])
    minute = TumblingEventTimeWindows.of(Time.minutes(1))
    best = (
        env.from_collection([view(n) for n in range(VIEWS)])
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda seen: seen[0])
        .window(minute)
        .aggregate(Count(), WithPage())
        .window_all(minute)
        .process(Best())
    )
    with best.execute_and_collect("top pages") as results:
        return sorted(results)


def main() -> None:
    """Draw a bar for each page and minute."""
    for minute, pages in best_pages():
        print(f"minute {minute}")
        for page, count in pages:
            print(f"  {page:<8}{count:>5}  {'#' * (count // 10)}")


if __name__ == "__main__":
    main()
