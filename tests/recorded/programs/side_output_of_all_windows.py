"""A function of windows over all records emits to a side output."""

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import OutputTag
from pyflink.datastream.functions import ProcessAllWindowFunction
from pyflink.datastream.window import TumblingEventTimeWindows

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


def timed(env, values):
    return env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )


EVEN = OutputTag("even", Types.TUPLE([Types.LONG(), Types.INT()]))


class Split(ProcessAllWindowFunction):
    def process(self, context, elements):
        for element in elements:
            if element[2] % 2:
                yield element
            else:
                yield EVEN, (context.window().start, element[2])


def build(env):
    stream = timed(env, [("a", 5, 1), ("b", 3, 2), ("a", 13, 4), ("a", 8, 8), ("b", 25, 16), ("b", 7, 3)])
    windows = stream.window_all(TumblingEventTimeWindows.of(Time.milliseconds(10)))
    return windows.process(Split()).get_side_output(EVEN)
