"""What a keyed co-process function emits has the time of its record or of its timer."""

from pyflink.common import WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream.functions import KeyedCoProcessFunction, ProcessFunction

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


class Timed(KeyedCoProcessFunction):
    def process_element1(self, value, ctx: KeyedCoProcessFunction.Context):
        ctx.timer_service().register_event_time_timer(value[1] + 30)
        yield "first"

    def process_element2(self, value, ctx: KeyedCoProcessFunction.Context):
        yield "second"

    def on_timer(self, timestamp, ctx: KeyedCoProcessFunction.OnTimerContext):
        yield "timer"


class Times(ProcessFunction):
    def process_element(self, value, ctx: ProcessFunction.Context):
        yield value, ctx.timestamp()


def build(env):
    left = timed(env, [("a", 3, 1), ("b", 14, 2), ("a", 12, 4), ("b", 21, 8)])
    right = timed(env, [("b", 16, 16), ("a", 5, 32), ("c", 7, 64), ("b", 1, 128)])

    keyed = left.connect(right).key_by(lambda value: value[0], lambda value: value[0])
    return keyed.process(Timed()).process(Times())
