"""A trigger on the global window that keeps a sum for each key, and fires and purges at a bound."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream.functions import ProcessWindowFunction
from pyflink.datastream.state import ReducingStateDescriptor
from pyflink.datastream.window import GlobalWindows, Trigger, TriggerResult

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Full(Trigger):
    def __init__(self):
        self.sum = ReducingStateDescriptor("sum", lambda x, y: x + y, Types.LONG())

    def on_element(self, element, timestamp, window, ctx):
        total = ctx.get_partitioned_state(self.sum)
        total.add(element[2])
        if total.get() < 10:
            return TriggerResult.CONTINUE
        total.clear()
        return TriggerResult.FIRE_AND_PURGE

    def on_processing_time(self, time, window, ctx):
        return TriggerResult.CONTINUE

    def on_event_time(self, time, window, ctx):
        return TriggerResult.CONTINUE

    def on_merge(self, window, ctx):
        pass

    def clear(self, window, ctx):
        ctx.get_partitioned_state(self.sum).clear()


class Show(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, [e[2] for e in elements]


def build(env):
    values = [("a", 1, 4), ("b", 2, 9), ("a", 3, 5), ("b", 4, 1), ("a", 5, 3), ("a", 6, 8), ("b", 7, 10), ("a", 8, 2)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return stream.key_by(lambda v: v[0]).window(GlobalWindows.create()).trigger(Full()).process(Show())
