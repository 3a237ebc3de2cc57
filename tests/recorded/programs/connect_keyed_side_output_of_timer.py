"""A timer of connected streams emits to a side output."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import OutputTag
from pyflink.datastream.functions import KeyedCoProcessFunction, RuntimeContext
from pyflink.datastream.state import ReducingStateDescriptor

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


ALERTS = OutputTag("alerts", Types.TUPLE([Types.STRING(), Types.LONG(), Types.INT()]))


class Sum(KeyedCoProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.sum = runtime_context.get_reducing_state(
            ReducingStateDescriptor("sum", lambda a, b: a + b, Types.INT())
        )

    def process_element1(self, value, ctx: KeyedCoProcessFunction.Context):
        self.sum.add(value[2])
        ctx.timer_service().register_event_time_timer(1000 + len(value[0]))

    process_element2 = process_element1

    def on_timer(self, timestamp, ctx: KeyedCoProcessFunction.OnTimerContext):
        yield ALERTS, (ctx.get_current_key(), timestamp, self.sum.get())
        yield "main"


def build(env):
    left = timed(env, [("a", 3, 1), ("bb", 14, 2), ("a", 12, 4), ("bb", 21, 8)])
    right = timed(env, [("bb", 16, 16), ("a", 5, 32), ("ccc", 7, 64)])
    keyed = left.connect(right).key_by(lambda value: value[0], lambda value: value[0])
    return keyed.process(Sum()).get_side_output(ALERTS)
