"""Timestamps and the watermark that a function sees with a bound on the disorder."""

from pyflink.common import Duration, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream.functions import KeyedProcessFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Timed(KeyedProcessFunction):
    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 5)
        yield ctx.get_current_key(), ctx.timestamp(), ctx.timer_service().current_watermark()

    def on_timer(self, timestamp, ctx: KeyedProcessFunction.OnTimerContext):
        yield ctx.get_current_key(), timestamp, ctx.timestamp(), ctx.timer_service().current_watermark()


def build(env):
    values = [("a", 3, 1), ("b", 14, 2), ("a", 12, 4), ("c", 7, 8), ("b", 21, 16), ("a", 9, 32), ("b", 18, 64)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(10)).with_timestamp_assigner(Second())
    )
    return stream.key_by(lambda v: v[0]).process(Timed())
