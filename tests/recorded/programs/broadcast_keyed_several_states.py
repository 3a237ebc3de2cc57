"""Several broadcast states, read by timers of the keyed side."""

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


NUMBERS = MapStateDescriptor("numbers", Types.STRING(), Types.INT())
TIMES = MapStateDescriptor("times", Types.LONG(), Types.STRING())


class Apply(KeyedBroadcastProcessFunction):
    def process_element(self, value, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext):
        ctx.timer_service().register_event_time_timer(100 + value[1])

    def process_broadcast_element(self, value, ctx: KeyedBroadcastProcessFunction.Context):
        ctx.get_broadcast_state(NUMBERS).put(value[0], value[2])
        ctx.get_broadcast_state(TIMES).put(value[1], value[0])

    def on_timer(self, timestamp, ctx: KeyedBroadcastProcessFunction.OnTimerContext):
        numbers, times = ctx.get_broadcast_state(NUMBERS), ctx.get_broadcast_state(TIMES)
        yield (ctx.get_current_key(), timestamp, numbers.contains(ctx.get_current_key()), "bb" in numbers,
               sorted(numbers.items()), sorted(times.values()), sorted(times.keys()), times.is_empty())


def build(env):
    data = timed(env, [("a", 3, 1), ("bb", 14, 2), ("a", 12, 4), ("ccc", 9, 16)])
    rules = timed(env, [("bb", 16, 10), ("a", 5, 20), ("bb", 7, 30)]).broadcast(NUMBERS, TIMES)
    return data.key_by(lambda value: value[0]).connect(rules).process(Apply())
