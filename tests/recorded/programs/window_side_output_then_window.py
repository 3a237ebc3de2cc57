"""Side outputs of a window function have its timestamps: windows behind them line up."""

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import OutputTag
from pyflink.datastream.functions import ProcessAllWindowFunction, ProcessWindowFunction
from pyflink.datastream.window import TumblingEventTimeWindows

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


TAG = OutputTag("large", Types.TUPLE([Types.STRING(), Types.LONG()]))


class Split(ProcessWindowFunction):
    def process(self, key, context, elements):
        total = sum(e[2] for e in elements)
        if total > 3:
            yield TAG, (key, total)
        else:
            yield key, total


class All(ProcessAllWindowFunction):
    def process(self, context, elements):
        yield context.window().start, sorted(elements)


def build(env):
    values = [("a", 3, 1), ("b", 14, 2), ("a", 12, 4), ("c", 7, 8), ("b", 21, 16), ("a", 9, 32), ("b", 18, 64)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    main = stream.key_by(lambda v: v[0]).window(TumblingEventTimeWindows.of(Time.milliseconds(10))).process(Split())
    return main.get_side_output(TAG).window_all(TumblingEventTimeWindows.of(Time.milliseconds(10))).process(All())
