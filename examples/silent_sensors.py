"""Alerts with timers: a sensor without a reading for ten seconds is reported, and again when its readings return.

    python examples/silent_sensors.py

The picture shows the readings of three sensors on an axis of 70 seconds.
"""

from __future__ import annotations

from ekorn.common import Types, WatermarkStrategy
from ekorn.common.watermark_strategy import Watermark, WatermarkGenerator
from ekorn.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from ekorn.datastream.state import ValueStateDescriptor

SILENCE_S = 10
READINGS = sorted(  # (second, sensor): attic stops for a while, cellar for good, garden never
    [(s, "attic") for s in (*range(0, 20, 2), *range(41, 60, 2))]
    + [(s, "cellar") for s in range(1, 26, 3)]
    + [(s, "garden") for s in range(0, 60, 4)]
)


class EveryReading(WatermarkGenerator):
    """Advances event time with every reading, because the readings are in order.

    Periodic watermarks would come too late for so few records, as in Flink: the job would end before the first one.
    """

    def on_event(self, event, event_timestamp, output):
        output.emit_watermark(Watermark(event_timestamp - 1))

    def on_periodic_emit(self, output):
        """Emit nothing: every reading has emitted its watermark."""


class Watch(KeyedProcessFunction):
    """Keeps the deadline of each sensor; every reading moves the timer to a new deadline."""

    def open(self, runtime_context):
        self.deadline = runtime_context.get_state(ValueStateDescriptor("deadline", Types.LONG()))
        self.silent = runtime_context.get_state(ValueStateDescriptor("silent", Types.BOOLEAN()))

    def process_element(self, value, ctx):
        timers, old = ctx.timer_service(), self.deadline.value()
        if old is not None:
            timers.delete_event_time_timer(old)
        deadline = ctx.timestamp() + SILENCE_S * 1000
        timers.register_event_time_timer(deadline)
        self.deadline.update(deadline)
        if self.silent.value():
            self.silent.clear()
            yield value[1], ctx.timestamp() // 1000, "back"

    def on_timer(self, timestamp, ctx):
        self.silent.update(True)
        self.deadline.clear()
        yield ctx.get_current_key(), timestamp // 1000, "silent"


def alerts() -> list[tuple[str, int, str]]:
    """Run the job and return the alerts."""
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    strategy = WatermarkStrategy.for_generator(lambda _: EveryReading()).with_timestamp_assigner(
        lambda reading, _: reading[0] * 1000
    )
    watched = (
        env.from_collection(READINGS)
        .assign_timestamps_and_watermarks(strategy)
        .set_parallelism(1)  # keeps the readings in order: two subtasks would each see every other reading
        .key_by(lambda reading: reading[1])
        .process(Watch())
    )
    with watched.execute_and_collect("silent sensors") as results:
        return sorted(results)


def main() -> None:
    """Draw a line for each sensor: a dot for a reading, S where it fell silent, B where its readings returned."""
    found = alerts()
    print("second  0         10        20        30        40        50        60        70")
    for sensor in ("attic", "cellar", "garden"):
        line = [" "] * 72
        for second, name in READINGS:
            if name == sensor:
                line[second] = "."
        for name, second, what in found:
            if name == sensor:
                line[second] = what[0].upper()
        print(f"{sensor:<8}{''.join(line)}")


if __name__ == "__main__":
    main()
