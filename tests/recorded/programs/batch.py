"""BATCH mode: keyed operators process one key after the other."""

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream.functions import (
    KeyedProcessFunction,
    MapFunction,
    ProcessFunction,
    ProcessWindowFunction,
    RuntimeContext,
)
from pyflink.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from pyflink.datastream.window import TumblingEventTimeWindows
from tests.recorded.family import recorded


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


@recorded(mode="BATCH")
def batch_keyed_functions(env):
    """map, filter and flat_map with state on keyed streams in BATCH mode."""

    class Count(MapFunction):

        def open(self, runtime_context: RuntimeContext):
            self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

        def map(self, value):
            self.count.update((self.count.value() or 0) + 1)
            return value, self.count.value()

    return env.from_collection(list("cabcab")).key_by(lambda x: x).map(Count()).filter(lambda pair: pair[1] > 1)


@recorded(mode="BATCH")
def batch_max_by_tuples(env):
    """max_by on tuples in BATCH mode: the last result of each key."""
    values = [("a", 3, 1), ("b", 9, 2), ("a", 1, 3), ("a", 2, 4), ("a", 1, 5)]
    return env.from_collection(values).key_by(lambda x: x[0]).max_by(1)


@recorded(mode="BATCH")
def batch_max_tuples(env):
    """max on tuples in BATCH mode: the last result of each key."""
    values = [("a", 3, 1), ("b", 9, 2), ("a", 1, 3), ("a", 2, 4), ("a", 1, 5)]
    return env.from_collection(values).key_by(lambda x: x[0]).max(1)


@recorded(mode="BATCH")
def batch_min_by_tuples(env):
    """min_by on tuples in BATCH mode: the last result of each key."""
    values = [("a", 3, 1), ("b", 9, 2), ("a", 1, 3), ("a", 2, 4), ("a", 1, 5)]
    return env.from_collection(values).key_by(lambda x: x[0]).min_by(1)


@recorded(mode="BATCH")
def batch_min_tuples(env):
    """min on tuples in BATCH mode: the last result of each key."""
    values = [("a", 3, 1), ("b", 9, 2), ("a", 1, 3), ("a", 2, 4), ("a", 1, 5)]
    return env.from_collection(values).key_by(lambda x: x[0]).min(1)


@recorded(mode="BATCH")
def batch_reduce(env):
    """reduce in BATCH mode: the last result of each key."""
    values = [("b", 1), ("a", 2), ("b", 3), ("a", 4), ("c", 5)]
    return env.from_collection(values).key_by(lambda x: x[0]).reduce(lambda a, b: (a[0], a[1] * 10 + b[1]))


@recorded(mode="BATCH")
def batch_state_kinds(env):
    """List, map and reducing state in BATCH mode start empty for each key."""

    class Several(KeyedProcessFunction):

        def open(self, runtime_context: RuntimeContext):
            self.values = runtime_context.get_list_state(ListStateDescriptor("values", Types.INT()))
            self.by_parity = runtime_context.get_map_state(MapStateDescriptor("parity", Types.INT(), Types.INT()))
            self.total = runtime_context.get_reducing_state(
                ReducingStateDescriptor("total", lambda a, b: a + b, Types.INT()))

        def process_element(self, value, ctx: KeyedProcessFunction.Context):
            key, number = value
            self.values.add(number)
            self.by_parity.put(number % 2, number)
            self.total.add(number)
            yield key, list(self.values.get()), sorted(self.by_parity.items()), self.total.get()

    values = [("a", 1), ("b", 2), ("a", 2), ("a", 3), ("b", 5), ("c", 0)]
    return env.from_collection(values).key_by(lambda x: x[0]).process(Several())


@recorded(mode="BATCH")
def batch_sum_tuples(env):
    """sum on tuples in BATCH mode: the last result of each key."""
    values = [("a", 3, 1), ("b", 9, 2), ("a", 1, 3), ("a", 2, 4), ("a", 1, 5)]
    return env.from_collection(values).key_by(lambda x: x[0]).sum(1)


@recorded(mode="BATCH")
def batch_two_keyed(env):
    """Two rolling aggregates in sequence in BATCH mode."""
    values = [("a", 1), ("b", 2), ("a", 3), ("c", 4)]
    summed = env.from_collection(values).key_by(lambda x: x[0]).sum(1)
    return summed.key_by(lambda x: x[1] % 2).reduce(lambda a, b: (a[0] + b[0], a[1] + b[1]))


@recorded(parallelism=2, mode="BATCH", ordered=False)
def batch_two_subtasks(env):
    """Rolling aggregates in BATCH mode at parallelism 2."""
    return env.from_collection([(f"k{i % 7}", i) for i in range(30)]).key_by(lambda x: x[0]).sum(1)


@recorded(mode="BATCH", ordered=False)
def batch_union(env):
    """A union in BATCH mode."""
    return env.from_collection([1, 2]).union(env.from_collection([3])).map(lambda x: x)


@recorded(mode="BATCH")
def batch_unkeyed(env):
    """Without keys BATCH mode keeps the order."""
    return env.from_collection([3, 1, 2]).map(lambda x: x * 2).rebalance().filter(lambda x: x != 2)


@recorded(mode="BATCH")
def batch_window_count(env):
    """Count windows in BATCH mode."""

    class Show(ProcessWindowFunction):
        def process(self, key, context, elements):
            yield key, context.window().id, [e[2] for e in elements]

    values = [("b", 12, 1), ("a", 4, 2), ("b", 1, 3), ("a", 9, 4), ("a", 25, 5)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return stream.key_by(lambda v: v[0]).count_window(2).process(Show())


@recorded(mode="BATCH")
def batch_window_timestamp(env):
    """The time of results in BATCH mode."""

    class Times(ProcessFunction):
        def process_element(self, value, ctx):
            yield value, ctx.timestamp()

    values = [("a", 1, 1), ("a", 4, 2), ("a", 12, 3), ("a", 9, 4), ("a", 25, 5), ("a", 10, 6)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return (
        stream.key_by(lambda v: v[0])
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        .reduce(lambda x, y: (x[0], y[1], x[2] + y[2]))
        .process(Times())
    )


@recorded(mode="BATCH")
def batch_within_key(env):
    """Records without timestamps keep their order within a key."""

    class Tell(KeyedProcessFunction):

        def open(self, runtime_context: RuntimeContext):
            self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

        def process_element(self, value, ctx: KeyedProcessFunction.Context):
            self.count.update((self.count.value() or 0) + 1)
            yield ctx.get_current_key(), self.count.value(), value[1]

    values = [("b", 9), ("a", 3), ("b", 1), ("a", 7), ("a", 1), ("b", 5), ("a", 2)]
    return env.from_collection(values).key_by(lambda x: x[0]).process(Tell())


@recorded(mode="BATCH")
def batch_within_key_timestamps(env):
    """Within a key, records come by their timestamps."""

    class Field(TimestampAssigner):

        def extract_timestamp(self, value, record_timestamp):
            return value[1]

    class Tell(KeyedProcessFunction):

        def process_element(self, value, ctx: KeyedProcessFunction.Context):
            yield value, ctx.timestamp(), ctx.timer_service().current_watermark()

    values = [("b", 9, 0), ("a", 3, 1), ("b", 1, 2), ("a", 7, 3), ("a", 3, 4), ("b", 5, 5), ("a", -2, 6), ("a", 3, 7)]
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Field())
    return (env.from_collection(values).assign_timestamps_and_watermarks(strategy)
            .key_by(lambda x: x[0]).process(Tell()))
