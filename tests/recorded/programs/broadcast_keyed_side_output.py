"""The keyed side, the broadcast side and timers emit to a side output."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import OutputTag
from pyflink.datastream.functions import KeyedBroadcastProcessFunction
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
TAG = OutputTag("tagged", Types.PICKLED_BYTE_ARRAY())


class Tagged(KeyedBroadcastProcessFunction):
    def process_element(self, value, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext):
        ctx.timer_service().register_event_time_timer(value[1])
        yield TAG, ("data", value)
        yield "main"

    def process_broadcast_element(self, value, ctx: KeyedBroadcastProcessFunction.Context):
        yield TAG, ("rule", value)

    def on_timer(self, timestamp, ctx: KeyedBroadcastProcessFunction.OnTimerContext):
        yield TAG, ("timer", ctx.get_current_key(), timestamp)


def build(env):
    data = timed(env, [("a", 3, 1), ("bb", 14, 2), ("a", 12, 4), ("bb", 21, 8), ("ccc", 9, 16), ("a", 4, 32)])
    rules = timed(env, [("bb", 16, 10), ("a", 5, 20), ("bb", 7, 30), ("dddd", 8, 40)]).broadcast(RULES)

    return data.key_by(lambda value: value[0]).connect(rules).process(Tagged()).get_side_output(TAG)
