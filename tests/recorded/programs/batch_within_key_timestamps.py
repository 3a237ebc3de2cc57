"""Within a key, records come by their timestamps."""

from pyflink.common import WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream.functions import KeyedProcessFunction

PARALLELISM = 1
MODE = "BATCH"
ORDERED = True


class Field(TimestampAssigner):

    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Tell(KeyedProcessFunction):

    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        yield value, ctx.timestamp(), ctx.timer_service().current_watermark()


def build(env):
    values = [("b", 9, 0), ("a", 3, 1), ("b", 1, 2), ("a", 7, 3), ("a", 3, 4), ("b", 5, 5), ("a", -2, 6), ("a", 3, 7)]
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Field())
    return (env.from_collection(values).assign_timestamps_and_watermarks(strategy)
            .key_by(lambda x: x[0]).process(Tell()))
