"""What contexts of a keyed broadcast function tell."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
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


class Facts(KeyedBroadcastProcessFunction):
    def process_element(self, value, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext):
        ctx.timer_service().register_event_time_timer(value[1] + 100)
        yield (1, value, ctx.get_current_key(), ctx.timestamp(), ctx.current_watermark(),
               ctx.timer_service().current_watermark())

    def process_broadcast_element(self, value, ctx: KeyedBroadcastProcessFunction.Context):
        yield 2, value, ctx.timestamp(), ctx.current_watermark()

    def on_timer(self, timestamp, ctx: KeyedBroadcastProcessFunction.OnTimerContext):
        yield (timestamp, ctx.get_current_key(), ctx.timestamp(), ctx.time_domain().name, ctx.current_watermark(),
               ctx.timer_service().current_watermark())


def build(env):
    data = timed(env, [("a", 3, 1), ("bb", 14, 2), ("a", 12, 4), ("bb", 21, 8), ("ccc", 9, 16), ("a", 4, 32)])
    rules = timed(env, [("bb", 16, 10), ("a", 5, 20), ("bb", 7, 30), ("dddd", 8, 40)]).broadcast(RULES)

    return data.key_by(lambda value: value[0], Types.STRING()).connect(rules).process(Facts())
