"""A trigger of one's own has state and timers per key and window."""

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream.functions import ProcessWindowFunction
from pyflink.datastream.state import ValueStateDescriptor
from pyflink.datastream.window import Trigger, TriggerResult, TumblingEventTimeWindows

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Odd(Trigger):
    """Fires at odd numbers, and at a timer five after the first record of a window."""

    def __init__(self):
        self.first = ValueStateDescriptor("first", Types.LONG())

    def on_element(self, element, timestamp, window, ctx):
        first = ctx.get_partitioned_state(self.first)
        if first.value() is None:
            first.update(timestamp)
            ctx.register_event_time_timer(timestamp + 5)
        return TriggerResult.FIRE if element[2] % 2 else TriggerResult.CONTINUE

    def on_processing_time(self, time, window, ctx):
        return TriggerResult.CONTINUE

    def on_event_time(self, time, window, ctx):
        first = ctx.get_partitioned_state(self.first).value()
        return TriggerResult.FIRE_AND_PURGE if first is not None and time == first + 5 else TriggerResult.CONTINUE

    def on_merge(self, window, ctx):
        pass

    def clear(self, window, ctx):
        ctx.get_partitioned_state(self.first).clear()


class Show(ProcessWindowFunction):
    def process(self, key, context, elements):
        window = context.window()
        yield key, window.start, window.end, [e[2] for e in elements], context.current_watermark()


def build(env):
    values = [("a", 1, 1), ("a", 4, 2), ("a", 12, 3), ("a", 9, 4), ("a", 25, 5), ("a", 10, 6)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return (
        stream.key_by(lambda v: v[0])
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        .trigger(Odd())
        .process(Show())
    )
