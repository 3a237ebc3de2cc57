"""Windows over a whole stream."""

from pyflink.common import Time, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream.functions import ProcessAllWindowFunction
from pyflink.datastream.window import TumblingEventTimeWindows

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Show(ProcessAllWindowFunction):
    def process(self, context, elements):
        yield context.window().start, context.window().end, [e[2] for e in elements]


def build(env):
    values = [("a", 1, 1), ("b", 4, 2), ("c", 12, 3), ("b", 9, 4)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return stream.window_all(TumblingEventTimeWindows.of(Time.milliseconds(10))).process(Show())
