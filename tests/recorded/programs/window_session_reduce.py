"""A reduce over sessions that grow together."""

from pyflink.common import Time, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream.window import EventTimeSessionWindows

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True
QUIRK = "PyFlink loses the value of one of two sessions that a record brings together; Java keeps it."


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


def build(env):
    values = [("a", 0, 1), ("a", 20, 2), ("a", 10, 4), ("a", 50, 8)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return (
        stream.key_by(lambda v: v[0])
        .window(EventTimeSessionWindows.with_gap(Time.milliseconds(10)))
        .reduce(lambda x, y: (x[0], y[1], x[2] + y[2]))
    )
