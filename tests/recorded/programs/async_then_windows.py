"""Windows behind unordered asynchronous calls hold every result."""

import asyncio

from pyflink.common import Time, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import AsyncDataStream, AsyncFunction
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


class Ask(AsyncFunction):
    async def async_invoke(self, value):
        await asyncio.sleep(0.02 * (value[2] % 3))
        return [value]


class Show(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, context.window().start, sorted(element[2] for element in elements)


def build(env):
    stream = timed(env, [("a", 5, 1), ("b", 3, 2), ("a", 13, 4), ("a", 8, 8), ("b", 25, 16)])
    asked = AsyncDataStream.unordered_wait(stream, Ask(), Time.seconds(30))
    keyed = asked.key_by(lambda value: value[0])
    return keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(10))).process(Show())
