"""A co-process function sees each record's timestamp and the watermark before any."""

from pyflink.common import WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream.functions import CoProcessFunction

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


class Both(CoProcessFunction):
    def process_element1(self, value, ctx: CoProcessFunction.Context):
        yield 1, value, ctx.timestamp(), ctx.timer_service().current_watermark()

    def process_element2(self, value, ctx: CoProcessFunction.Context):
        yield 2, value, ctx.timestamp(), ctx.timer_service().current_watermark()


def build(env):
    left = timed(env, [("a", 5), ("b", 3), ("c", 8)])
    right = timed(env, [("x", 7), ("y", 1)])
    return left.connect(right).process(Both())
