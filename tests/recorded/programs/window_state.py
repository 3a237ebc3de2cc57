"""State of the window, and of the key over all windows."""

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream.functions import ProcessWindowFunction
from pyflink.datastream.state import ValueStateDescriptor
from pyflink.datastream.window import CountTrigger, TumblingEventTimeWindows

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Keeps(ProcessWindowFunction):
    def __init__(self):
        self.count = ValueStateDescriptor("seen", Types.LONG())
        self.total = ValueStateDescriptor("total", Types.LONG())

    def process(self, key, context, elements):
        count = context.window_state().get_state(self.count)
        total = context.global_state().get_state(self.total)
        count.update((count.value() or 0) + 1)
        total.update((total.value() or 0) + 1)
        yield context.window().end, count.value(), total.value(), len(list(elements))

    def clear(self, context):
        context.window_state().get_state(self.count).clear()


def build(env):
    values = [("a", 1, 1), ("a", 4, 2), ("a", 12, 3), ("a", 9, 4), ("a", 25, 5), ("a", 10, 6)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return (
        stream.key_by(lambda v: v[0])
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        .trigger(CountTrigger.of(1))
        .process(Keeps())
    )
