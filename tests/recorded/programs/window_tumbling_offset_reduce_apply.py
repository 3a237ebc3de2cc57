"""A negative offset, a reduce, and a window function behind it."""

from pyflink.common import Time, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream.functions import WindowFunction
from pyflink.datastream.window import TumblingEventTimeWindows

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Applied(WindowFunction):
    def apply(self, key, window, inputs):
        return [(key, window.start, window.end, list(inputs))]


def build(env):
    values = [("a", 6, 1), ("a", 7, 2), ("a", 16, 4), ("a", 17, 8), ("a", -3, 16), ("a", -4, 32)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return (
        stream.key_by(lambda v: v[0])
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10), Time.milliseconds(-3)))
        .reduce(lambda x, y: (x[0], max(x[1], y[1]), x[2] + y[2]), Applied())
    )
