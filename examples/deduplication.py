"""Deduplication: each event counts once although its sender repeats it, and the memory for that is bounded.

    python examples/deduplication.py

The state of an event is one flag under its id, with a time to live: after ten minutes the id is forgotten. A sender
that repeats an event within the ten minutes is not noticed downstream. State does not grow with the age of the job.
"""

from __future__ import annotations

from ekorn.common import Time, Types
from ekorn.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from ekorn.datastream.state import StateTtlConfig, ValueStateDescriptor

EVENTS = 300
REMEMBERED = Time.minutes(10)


def sent(number: int) -> list[tuple[str, int]]:
    """Return what a sender sends for one event: it, and up to two repetitions."""
    repetitions = 2 if number % 10 == 0 else (1 if number % 4 == 0 else 0)
    return [(f"event-{number:03d}", number)] * (1 + repetitions)


def arriving() -> list[tuple[str, int]]:
    """Return all events with repetitions; a repetition comes some events later."""
    copies = [(number + 5 * copy, each) for number in range(EVENTS) for copy, each in enumerate(sent(number))]
    return [each for _, each in sorted(copies, key=lambda copy: copy[0])]


class Once(KeyedProcessFunction):
    """Passes the first event of an id on, and counts the others."""

    def open(self, runtime_context):
        seen = ValueStateDescriptor("seen", Types.BOOLEAN())
        seen.enable_time_to_live(
            StateTtlConfig.new_builder(REMEMBERED)
            .set_update_type(StateTtlConfig.UpdateType.OnCreateAndWrite)
            .set_state_visibility(StateTtlConfig.StateVisibility.NeverReturnExpired)
            .build()
        )
        self.seen = runtime_context.get_state(seen)
        self.repeated = runtime_context.get_metrics_group().counter("repeated")

    def process_element(self, value, ctx):
        if self.seen.value():
            self.repeated.inc()
            return
        self.seen.update(True)
        yield value


def unique() -> tuple[list[tuple[str, int]], int]:
    """Run the job; return the events and how many repetitions were dropped."""
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    events = env.from_collection(arriving())
    once = events.key_by(lambda event: event[0]).process(Once()).name("once").uid("once")
    with once.execute_and_collect("deduplication") as results:
        found = sorted(results)
        dropped = results.job_client.get_metrics()["once.repeated"]
    return found, dropped


def main() -> None:
    """Draw what arrived and what passed as bars."""
    found, dropped = unique()
    for label, count in (("arrived", len(arriving())), ("passed", len(found)), ("dropped", dropped)):
        print(f"{label:<8}{count:>4}  {'#' * (count // 8)}")


if __name__ == "__main__":
    main()
