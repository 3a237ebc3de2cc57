"""A side output goes into windows by the times of its records."""

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import OutputTag
from pyflink.datastream.functions import ProcessFunction, ProcessWindowFunction
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


NUMBERS = OutputTag("numbers", Types.TUPLE([Types.STRING(), Types.INT()]))


class Split(ProcessFunction):
    def process_element(self, value, ctx: ProcessFunction.Context):
        yield NUMBERS, (value[0], value[2])


class Show(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, context.window().start, sum(element[1] for element in elements)


def build(env):
    stream = timed(env, [("a", 5, 1), ("b", 3, 2), ("a", 13, 4), ("a", 8, 8), ("b", 25, 16)])
    numbers = stream.process(Split()).get_side_output(NUMBERS).key_by(lambda value: value[0])
    return numbers.window(TumblingEventTimeWindows.of(Time.milliseconds(10))).process(Show())
