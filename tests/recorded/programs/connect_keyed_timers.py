"""Timers of both sides fire in the order of their times, with the state that both sides filled."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream.functions import KeyedCoProcessFunction, RuntimeContext
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


class Waiting(KeyedCoProcessFunction):
    """Both sides wait in one state until the timer of their key fires at the end of the input."""

    def open(self, runtime_context: RuntimeContext):
        self.waiting = runtime_context.get_map_state(
            MapStateDescriptor("waiting", Types.LONG(), Types.PICKLED_BYTE_ARRAY())
        )

    def process_element1(self, value, ctx: KeyedCoProcessFunction.Context):
        self.waiting.put(value[1], ("first", value[2]))
        ctx.timer_service().register_event_time_timer(value[1])

    def process_element2(self, value, ctx: KeyedCoProcessFunction.Context):
        self.waiting.put(value[1], ("second", value[2]))
        ctx.timer_service().register_event_time_timer(value[1])

    def on_timer(self, timestamp, ctx: KeyedCoProcessFunction.OnTimerContext):
        yield ctx.get_current_key(), timestamp, self.waiting.get(timestamp), len(list(self.waiting.keys()))


def build(env):
    left = timed(env, [("a", 3, 1), ("b", 14, 2), ("a", 12, 4), ("b", 21, 8)])
    right = timed(env, [("b", 16, 16), ("a", 5, 32), ("c", 7, 64), ("b", 1, 128)])

    return left.connect(right).key_by(lambda value: value[0], lambda value: value[0]).process(Waiting())
