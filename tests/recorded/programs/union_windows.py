"""Windows behind a union hold records of both inputs."""

from pyflink.common import Time, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream.functions import ProcessWindowFunction
from pyflink.datastream.window import TumblingEventTimeWindows

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = False


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


def timed(env, values):
    return env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )


class Show(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, context.window().start, context.window().end, sorted(element[2] for element in elements)


def build(env):
    first = timed(env, [("a", 3, 1), ("b", 14, 2), ("a", 12, 4), ("b", 21, 8)])
    second = timed(env, [("b", 16, 16), ("a", 4, 32), ("c", 3, 64)])
    keyed = first.union(second).key_by(lambda value: value[0])
    return keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(10))).process(Show())
