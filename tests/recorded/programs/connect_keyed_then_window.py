"""What connected streams emit goes into windows by its time."""

from pyflink.common import Time, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream.functions import KeyedCoProcessFunction, ProcessWindowFunction
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


class Both(KeyedCoProcessFunction):
    def process_element1(self, value, ctx: KeyedCoProcessFunction.Context):
        yield value[0], 1, value[2]

    def process_element2(self, value, ctx: KeyedCoProcessFunction.Context):
        yield value[0], 2, value[2]


class Show(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, context.window().start, context.window().end, sorted(element[1:] for element in elements)


def build(env):
    left = timed(env, [("a", 3, 1), ("b", 14, 2), ("a", 12, 4), ("b", 21, 8)])
    right = timed(env, [("b", 16, 16), ("a", 5, 32), ("c", 7, 64), ("b", 1, 128)])

    keyed = left.connect(right).key_by(lambda value: value[0], lambda value: value[0])
    windows = keyed.process(Both()).key_by(lambda value: value[0])
    return windows.window(TumblingEventTimeWindows.of(Time.milliseconds(10))).process(Show())
