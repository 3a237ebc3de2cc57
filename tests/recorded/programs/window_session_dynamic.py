"""The gap of a session may depend on the record."""

from pyflink.common import WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream.functions import ProcessWindowFunction
from pyflink.datastream.window import EventTimeSessionWindows, SessionWindowTimeGapExtractor

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Show(ProcessWindowFunction):
    def process(self, key, context, elements):
        window = context.window()
        yield key, window.start, window.end, [e[2] for e in elements], context.current_watermark()


class Gap(SessionWindowTimeGapExtractor):
    def extract(self, element):
        return element[2]


def build(env):
    values = [("a", 0, 20), ("a", 5, 2), ("a", 20, 3), ("a", 24, 2), ("a", 40, 1)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return stream.key_by(lambda v: v[0]).window(EventTimeSessionWindows.with_dynamic_gap(Gap())).process(Show())
