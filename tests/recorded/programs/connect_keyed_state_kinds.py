"""All kinds of state, filled by both sides and read by a timer."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream.functions import AggregateFunction, KeyedCoProcessFunction, RuntimeContext
from pyflink.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)

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


class Average(AggregateFunction):
    def create_accumulator(self):
        return 0, 0

    def add(self, value, accumulator):
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator):
        return accumulator[0] / accumulator[1]

    def merge(self, a, b):
        return a[0] + b[0], a[1] + b[1]


class Kinds(KeyedCoProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.largest = runtime_context.get_state(ValueStateDescriptor("largest", Types.INT()))
        self.all = runtime_context.get_list_state(ListStateDescriptor("all", Types.INT()))
        self.sides = runtime_context.get_map_state(MapStateDescriptor("sides", Types.STRING(), Types.INT()))
        self.sum = runtime_context.get_reducing_state(
            ReducingStateDescriptor("sum", lambda a, b: a + b, Types.INT())
        )
        self.average = runtime_context.get_aggregating_state(
            AggregatingStateDescriptor("average", Average(), Types.TUPLE([Types.INT(), Types.INT()]))
        )

    def keep(self, side, number):
        self.largest.update(max(self.largest.value() or 0, number))
        self.all.add(number)
        self.sides.put(side, (self.sides.get(side) or 0) + number)
        self.sum.add(number)
        self.average.add(number)

    def process_element1(self, value, ctx: KeyedCoProcessFunction.Context):
        self.keep("first", value[2])
        ctx.timer_service().register_event_time_timer(100 + len(value[0]))

    def process_element2(self, value, ctx: KeyedCoProcessFunction.Context):
        self.keep("second", value[2])
        ctx.timer_service().register_event_time_timer(100 + len(value[0]))

    def on_timer(self, timestamp, ctx: KeyedCoProcessFunction.OnTimerContext):
        yield (ctx.get_current_key(), self.largest.value(), sorted(self.all.get()), sorted(self.sides.items()),
               self.sum.get(), self.average.get())
        self.all.clear()
        self.sides.clear()


def build(env):
    left = timed(env, [("a", 3, 1), ("bb", 14, 2), ("a", 12, 4), ("bb", 21, 8)])
    right = timed(env, [("bb", 16, 16), ("a", 5, 32), ("ccc", 7, 64)])
    return left.connect(right).key_by(lambda value: value[0], lambda value: value[0]).process(Kinds())
