"""A reduce over windows of a whole stream."""

from pyflink.common import Time, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream.window import TumblingEventTimeWindows

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


def build(env):
    values = [("a", 1, 1), ("b", 4, 2), ("c", 12, 3), ("b", 9, 4)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return stream.window_all(TumblingEventTimeWindows.of(Time.milliseconds(10))).reduce(
        lambda x, y: (x[0] + y[0], y[1], x[2] + y[2])
    )
