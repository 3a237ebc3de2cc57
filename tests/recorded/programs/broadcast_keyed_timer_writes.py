"""A timer of the keyed side may not write a broadcast state."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream.functions import KeyedBroadcastProcessFunction
from pyflink.datastream.state import MapStateDescriptor

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


RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())


class Writes(KeyedBroadcastProcessFunction):
    def process_element(self, value, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext):
        ctx.timer_service().register_event_time_timer(100)

    def process_broadcast_element(self, value, ctx: KeyedBroadcastProcessFunction.Context):
        ctx.get_broadcast_state(RULES).put(value[0], value[2])

    def on_timer(self, timestamp, ctx: KeyedBroadcastProcessFunction.OnTimerContext):
        ctx.get_broadcast_state(RULES).put("timer", 1)
        yield "written"


def build(env):
    data = timed(env, [("a", 3, 1), ("bb", 14, 2), ("a", 12, 4), ("bb", 21, 8), ("ccc", 9, 16), ("a", 4, 32)])
    rules = timed(env, [("bb", 16, 10), ("a", 5, 20), ("bb", 7, 30), ("dddd", 8, 40)]).broadcast(RULES)

    return data.key_by(lambda value: value[0]).connect(rules).process(Writes())
