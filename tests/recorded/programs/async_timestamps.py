"""Async results have the timestamps of the records they are for."""

from pyflink.common import Time, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import AsyncDataStream
from pyflink.datastream.functions import AsyncFunction, ProcessFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Second(TimestampAssigner):

    def extract_timestamp(self, value, record_timestamp):
        return value * 1000


class Twice(AsyncFunction):

    async def async_invoke(self, value):
        return [value, -value]


class WithTimestamp(ProcessFunction):

    def process_element(self, value, ctx: ProcessFunction.Context):
        yield value, ctx.timestamp()


def build(env):
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    timed = env.from_collection([1, 2, 3]).assign_timestamps_and_watermarks(strategy)
    return AsyncDataStream.ordered_wait(timed, Twice(), Time.seconds(5)).process(WithTimestamp())
