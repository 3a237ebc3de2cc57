"""Global state of a window function is of its key: later windows see what earlier ones of the same key left."""

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream.functions import ProcessWindowFunction
from pyflink.datastream.state import ListStateDescriptor
from pyflink.datastream.window import TumblingEventTimeWindows

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Remembers(ProcessWindowFunction):
    def __init__(self):
        self.sums = ListStateDescriptor("sums", Types.LONG())

    def process(self, key, context, elements):
        sums = context.global_state().get_list_state(self.sums)
        sums.add(sum(e[2] for e in elements))
        yield key, context.window().end, list(sums.get())

    def clear(self, context):
        pass


def build(env):
    values = [("a", 1, 1), ("b", 14, 2), ("a", 12, 4), ("b", 37, 8), ("a", 25, 16), ("a", 22, 32)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return stream.key_by(lambda v: v[0]).window(TumblingEventTimeWindows.of(Time.milliseconds(10))).process(Remembers())
