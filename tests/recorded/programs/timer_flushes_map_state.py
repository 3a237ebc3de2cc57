"""Records wait in a map state until their timer takes them out."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream.functions import KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import MapStateDescriptor, ValueStateDescriptor

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Sorted(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.waiting = runtime_context.get_map_state(MapStateDescriptor("waiting", Types.LONG(), Types.LONG()))
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        before = self.waiting.get(value[1]) if self.waiting.contains(value[1]) else 0
        self.waiting.put(value[1], before + value[2])
        ctx.timer_service().register_event_time_timer(value[1])

    def on_timer(self, timestamp, ctx: KeyedProcessFunction.OnTimerContext):
        number = (self.count.value() or 0) + 1
        self.count.update(number)
        total = self.waiting.get(timestamp)
        self.waiting.remove(timestamp)
        yield ctx.get_current_key(), number, timestamp, total, sorted(self.waiting.keys())


def build(env):
    values = [("a", 9, 1), ("b", 14, 2), ("a", 3, 4), ("a", 9, 8), ("b", 5, 16), ("a", 7, 32), ("b", 14, 64)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return stream.key_by(lambda v: v[0]).process(Sorted())
