"""A purging count trigger starts each reduce anew, and what is left over at the end of a window is lost."""

from pyflink.common import Time, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream.window import CountTrigger, PurgingTrigger, TumblingEventTimeWindows

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


def build(env):
    values = [("a", n * 7 % 20, 2**n) for n in range(11)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return (
        stream.key_by(lambda v: v[0])
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        .trigger(PurgingTrigger.of(CountTrigger.of(2)))
        .reduce(lambda x, y: (x[0], y[1], x[2] + y[2]))
    )
