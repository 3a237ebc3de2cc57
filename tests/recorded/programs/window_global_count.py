"""A global window with a count trigger keeps its records."""

from pyflink.common import WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream.functions import ProcessWindowFunction
from pyflink.datastream.window import CountTrigger, GlobalWindows

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Show(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, context.window().max_timestamp(), [e[2] for e in elements]


def build(env):
    values = [
        ("a", 1, 1),
        ("a", 2, 2),
        ("a", 3, 3),
        ("b", 4, 4),
        ("a", 5, 5),
        ("a", 6, 6),
        ("b", 7, 7),
        ("a", 8, 8),
        ("a", 9, 9),
        ("a", 9, 10),
    ]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return stream.key_by(lambda v: v[0]).window(GlobalWindows.create()).trigger(CountTrigger.of(3)).process(Show())
