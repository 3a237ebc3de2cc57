"""Count windows in BATCH mode."""

from pyflink.common import WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream.functions import ProcessWindowFunction

PARALLELISM = 1
MODE = "BATCH"
ORDERED = True


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Show(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, context.window().id, [e[2] for e in elements]


def build(env):
    values = [("b", 12, 1), ("a", 4, 2), ("b", 1, 3), ("a", 9, 4), ("a", 25, 5)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return stream.key_by(lambda v: v[0]).count_window(2).process(Show())
