"""A funnel: how far visitors come from the first page to the payment, and how many give up at each step within an hour.

    python examples/funnel.py

A visitor takes the steps in order. State holds the last step, and a timer ends the attempt an hour after it began. The
job emits one record per attempt: the step that was reached.
"""

from __future__ import annotations

from collections import Counter

from ekorn.common import Types, WatermarkStrategy
from ekorn.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from ekorn.datastream.state import ValueStateDescriptor

STEPS = ("home", "product", "cart", "pay")
VISITORS = 240
HOUR_MS = 3_600_000


def visit(number: int) -> list[tuple[str, str, int]]:
    """Return the clicks of a visitor: name, page and time. Some pause for longer than an hour before they go on."""
    reached = (4, 1, 2, 1, 3, 2, 1, 4, 2, 1)[number * 7 % 10]
    pause_ms = 2 * HOUR_MS if number % 9 == 0 else 120_000
    return [(f"v{number:03d}", STEPS[step], number * 30_000 + step * pause_ms) for step in range(reached)]


def clicks() -> list[tuple[str, str, int]]:
    """Return the clicks of all visitors in the order of their time."""
    return sorted((click for number in range(VISITORS) for click in visit(number)), key=lambda click: click[2])


class Funnel(KeyedProcessFunction):
    """Follows one attempt of a visitor; a page that is not the next step is ignored."""

    def open(self, runtime_context):
        self.reached = runtime_context.get_state(ValueStateDescriptor("reached", Types.INT(), 0))
        self.ends_at = runtime_context.get_state(ValueStateDescriptor("ends at", Types.LONG()))

    def process_element(self, value, ctx):
        _visitor, page, time_ms = value
        ends_at = self.ends_at.value()
        if ends_at is not None and time_ms > ends_at:  # the watermark that fires the timer is behind this click
            ctx.timer_service().delete_event_time_timer(ends_at)
            yield from self.end()
        if page != STEPS[self.reached.value()]:
            return
        if self.reached.value() == 0:
            self.ends_at.update(time_ms + HOUR_MS)
            ctx.timer_service().register_event_time_timer(time_ms + HOUR_MS)
        self.reached.update(self.reached.value() + 1)
        if self.reached.value() == len(STEPS):
            ctx.timer_service().delete_event_time_timer(self.ends_at.value())
            yield from self.end()

    def on_timer(self, timestamp, ctx):
        yield from self.end()

    def end(self):
        yield STEPS[self.reached.value() - 1]
        self.reached.clear()
        self.ends_at.clear()


def attempts() -> Counter[str]:
    """Run the job; return how many attempts ended at which step."""
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    in_order = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda click, _: click[2])
    ended = (
        env.from_collection(clicks())
        .assign_timestamps_and_watermarks(in_order)
        .set_parallelism(1)  # keeps the clicks of a visitor in order
        .key_by(lambda click: click[0])
        .process(Funnel(), output_type=Types.STRING())
        .uid("funnel")
    )
    with ended.execute_and_collect("funnel") as results:
        return Counter(results)


def came_to(ended: Counter[str]) -> list[tuple[str, int]]:
    """Return for each step how many attempts came at least so far."""
    return [(step, sum(ended[later] for later in STEPS[number:])) for number, step in enumerate(STEPS)]


def main() -> None:
    """Draw the funnel."""
    for step, count in came_to(attempts()):
        print(f"{step:<8}{count:>4}  {'#' * (count // 5):^50}")


if __name__ == "__main__":
    main()
