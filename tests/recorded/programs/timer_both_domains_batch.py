"""In a batch job a key's event-time timers fire before those of processing time."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream.functions import KeyedProcessFunction

PARALLELISM = 1
MODE = "BATCH"
ORDERED = True


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


def timed(env, values):
    return env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )


class Timed(KeyedProcessFunction):
    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        ctx.timer_service().register_processing_time_timer(value[1])
        ctx.timer_service().register_event_time_timer(10**14 + value[1])

    def on_timer(self, timestamp, ctx: KeyedProcessFunction.OnTimerContext):
        yield ctx.get_current_key(), timestamp, ctx.time_domain().name


def build(env):
    stream = timed(env, [("a", 5), ("b", 2), ("a", 3), ("b", 4)])
    return stream.key_by(lambda value: value[0], Types.STRING()).process(Timed())
