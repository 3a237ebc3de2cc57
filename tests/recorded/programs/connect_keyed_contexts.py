"""What contexts of a keyed co-process function tell."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream.functions import KeyedCoProcessFunction

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


class Facts(KeyedCoProcessFunction):
    def process_element1(self, value, ctx: KeyedCoProcessFunction.Context):
        ctx.timer_service().register_event_time_timer(value[1] + 100)
        yield 1, value, ctx.get_current_key(), ctx.timestamp(), ctx.timer_service().current_watermark()

    def process_element2(self, value, ctx: KeyedCoProcessFunction.Context):
        yield 2, value, ctx.get_current_key(), ctx.timestamp(), ctx.timer_service().current_watermark()

    def on_timer(self, timestamp, ctx: KeyedCoProcessFunction.OnTimerContext):
        yield (timestamp, ctx.get_current_key(), ctx.timestamp(), ctx.time_domain().name,
               ctx.timer_service().current_watermark())


def build(env):
    left = timed(env, [("a", 3, 1), ("b", 14, 2), ("a", 12, 4), ("b", 21, 8)])
    right = timed(env, [("b", 16, 16), ("a", 5, 32), ("c", 7, 64), ("b", 1, 128)])

    keyed = left.connect(right).key_by(lambda value: value[0], lambda value: value[0], Types.STRING())
    return keyed.process(Facts())
