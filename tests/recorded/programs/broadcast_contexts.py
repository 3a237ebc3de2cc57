"""Times that the contexts of a broadcast function tell."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream.functions import BroadcastProcessFunction
from pyflink.datastream.state import MapStateDescriptor

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


RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())


class Facts(BroadcastProcessFunction):
    def process_element(self, value, ctx: BroadcastProcessFunction.ReadOnlyContext):
        yield 1, value, ctx.timestamp(), ctx.current_watermark(), ctx.current_processing_time() > 1_600_000_000_000

    def process_broadcast_element(self, value, ctx: BroadcastProcessFunction.Context):
        yield 2, value, ctx.timestamp(), ctx.current_watermark(), ctx.current_processing_time() > 1_600_000_000_000


def build(env):
    data = timed(env, [("a", 5), ("b", 3), ("c", 8)])
    return data.connect(timed(env, [("x", 7), ("y", 1)]).broadcast(RULES)).process(Facts())
