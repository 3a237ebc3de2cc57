"""Event-time windows with a trigger of processing time do not fire when the input ends."""

from pyflink.common import Time, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream.functions import ProcessWindowFunction
from pyflink.datastream.window import ProcessingTimeTrigger, TumblingEventTimeWindows

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


class Show(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, [element[2] for element in elements]


def build(env):
    stream = timed(env, [("a", 10**15, 1), ("a", 10**15 + 4, 2), ("b", 10**15 + 12, 3)])
    windows = stream.key_by(lambda value: value[0]).window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
    return windows.trigger(ProcessingTimeTrigger.create()).process(Show())
