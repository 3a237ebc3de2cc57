"""A trigger deletes its timer and registers a later one: the window fires once, at the last."""

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


class Last(Trigger):
    def __init__(self):
        self.timer = ValueStateDescriptor("timer", Types.LONG())

    def on_element(self, element, timestamp, window, ctx):
        timer = ctx.get_partitioned_state(self.timer)
        if timer.value() is not None:
            ctx.delete_event_time_timer(timer.value())
        timer.update(timestamp)
        ctx.register_event_time_timer(timestamp)
        return TriggerResult.CONTINUE

    def on_processing_time(self, time, window, ctx):
        return TriggerResult.CONTINUE

    def on_event_time(self, time, window, ctx):
        return TriggerResult.FIRE if time == ctx.get_partitioned_state(self.timer).value() else TriggerResult.CONTINUE

    def on_merge(self, window, ctx):
        pass

    def clear(self, window, ctx):
        ctx.get_partitioned_state(self.timer).clear()


class Show(ProcessWindowFunction):
    def process(self, key, context, elements):
        window = context.window()
        yield key, window.start, window.end, list(elements)


def build(env):
    values = [("a", 3, 1), ("a", 12, 4), ("a", 5, 32), ("a", 21, 16), ("a", 2, 64), ("a", 24, 128)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return (
        stream.key_by(lambda v: v[0])
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        .trigger(Last())
        .process(Show())
    )
