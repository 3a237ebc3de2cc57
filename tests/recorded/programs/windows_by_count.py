"""Count windows, and global windows with triggers."""

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream.functions import (
    AggregateFunction,
    FlatMapFunction,
    ProcessFunction,
    ProcessWindowFunction,
    RuntimeContext,
)
from pyflink.datastream.state import ListStateDescriptor, ValueStateDescriptor
from pyflink.datastream.window import CountTrigger, GlobalWindows, PurgingTrigger, TumblingEventTimeWindows
from tests.recorded.family import recorded


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Show(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, context.window().id, [e[2] for e in elements]


class Times(ProcessFunction):
    def process_element(self, value, ctx):
        yield value, ctx.timestamp()


@recorded()
def count_window_average(env):
    """The average of every two values of a key, as in Flink's first example of keyed state."""

    class CountWindowAverage(FlatMapFunction):

        def open(self, runtime_context: RuntimeContext):
            descriptor = ValueStateDescriptor("average", Types.TUPLE([Types.LONG(), Types.LONG()]))
            self.sum = runtime_context.get_state(descriptor)

        def flat_map(self, value):
            count, total = self.sum.value() or (0, 0)
            count, total = count + 1, total + value[1]
            if count >= 2:
                self.sum.clear()
                yield value[0], total // count
            else:
                self.sum.update((count, total))

    values = env.from_collection([(1, 3), (1, 5), (1, 7), (1, 4), (1, 2)])
    return values.key_by(lambda row: row[0]).flat_map(CountWindowAverage())


@recorded()
def window_count(env):
    """Count windows fire when they are full, and have numbers."""
    values = [
        ("a", 1, 1),
        ("a", 2, 2),
        ("a", 3, 3),
        ("b", 4, 4),
        ("a", 5, 5),
        ("a", 6, 6),
        ("b", 7, 7),
        ("a", 8, 8),
        ("a", 9, 9),
        ("a", 9, 10),
    ]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return stream.key_by(lambda v: v[0]).count_window(3).process(Show())


@recorded()
def window_count_process_keys(env):
    """Keys fill count windows independently; those that are not full at the end are lost."""

    class Show(ProcessWindowFunction):
        def process(self, key, context, elements):
            yield key, [e[2] for e in elements], context.current_watermark()

    values = [("a", 3, 1), ("b", 14, 2), ("a", 12, 4), ("c", 7, 8), ("b", 21, 16), ("a", 9, 32), ("b", 18, 64)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return stream.key_by(lambda v: v[0]).count_window(2).process(Show())


@recorded()
def window_count_reduce(env):
    """A reduce over count windows."""
    values = [
        ("a", 1, 1),
        ("a", 2, 2),
        ("a", 3, 3),
        ("b", 4, 4),
        ("a", 5, 5),
        ("a", 6, 6),
        ("b", 7, 7),
        ("a", 8, 8),
        ("a", 9, 9),
        ("a", 9, 10),
    ]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return stream.key_by(lambda v: v[0]).count_window(3).reduce(lambda x, y: (x[0], y[1], x[2] + y[2]))


@recorded()
def window_count_sliding(env):
    """Sliding count windows fire when they are full."""
    values = [
        ("a", 1, 1),
        ("a", 2, 2),
        ("a", 3, 3),
        ("b", 4, 4),
        ("a", 5, 5),
        ("a", 6, 6),
        ("b", 7, 7),
        ("a", 8, 8),
        ("a", 9, 9),
        ("a", 9, 10),
    ]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return stream.key_by(lambda v: v[0]).count_window(4, 2).process(Show())


@recorded()
def window_count_sliding_aggregate(env):
    """An aggregate over sliding count windows of several keys."""

    class Sum(AggregateFunction):
        def create_accumulator(self):
            return 0

        def add(self, value, accumulator):
            return accumulator + value[2]

        def get_result(self, accumulator):
            return accumulator

        def merge(self, acc_a, acc_b):
            return acc_a + acc_b

    values = [("ab"[n % 3 == 0], n, 2**n) for n in range(16)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return stream.key_by(lambda v: v[0]).count_window(4, 2).aggregate(Sum())


@recorded()
def window_count_sliding_gaps(env):
    """With a slide above the size, records between count windows vanish."""
    values = [
        ("a", 1, 1),
        ("a", 2, 2),
        ("a", 3, 3),
        ("b", 4, 4),
        ("a", 5, 5),
        ("a", 6, 6),
        ("b", 7, 7),
        ("a", 8, 8),
        ("a", 9, 9),
        ("a", 9, 10),
    ]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return stream.key_by(lambda v: v[0]).count_window(2, 3).process(Show())


@recorded()
def window_count_timestamp(env):
    """The results of count windows have a timestamp, too."""
    values = [
        ("a", 1, 1),
        ("a", 2, 2),
        ("a", 3, 3),
        ("b", 4, 4),
        ("a", 5, 5),
        ("a", 6, 6),
        ("b", 7, 7),
        ("a", 8, 8),
        ("a", 9, 9),
        ("a", 9, 10),
    ]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return stream.key_by(lambda v: v[0]).count_window(3).reduce(lambda x, y: y).process(Times())


@recorded()
def window_count_trigger(env):
    """A trigger replaces the default one: windows no longer fire at their end."""

    class Show(ProcessWindowFunction):
        def process(self, key, context, elements):
            window = context.window()
            yield key, window.start, window.end, [e[2] for e in elements], context.current_watermark()

    values = [("a", 1, 1), ("a", 4, 2), ("a", 12, 3), ("a", 9, 4), ("a", 25, 5), ("a", 10, 6)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return (
        stream.key_by(lambda v: v[0])
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        .trigger(CountTrigger.of(2))
        .process(Show())
    )


@recorded()
def window_count_trigger_timestamp(env):
    """The time of results of windows that fire with a record."""
    values = [("a", 1, 1), ("a", 4, 2), ("a", 12, 3), ("a", 9, 4), ("a", 25, 5), ("a", 10, 6)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return (
        stream.key_by(lambda v: v[0])
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        .trigger(CountTrigger.of(2))
        .reduce(lambda x, y: (x[0], y[1], x[2] + y[2]))
        .process(Times())
    )


@recorded()
def window_global_count(env):
    """A global window with a count trigger keeps its records."""

    class Show(ProcessWindowFunction):
        def process(self, key, context, elements):
            yield key, context.window().max_timestamp(), [e[2] for e in elements]

    values = [
        ("a", 1, 1),
        ("a", 2, 2),
        ("a", 3, 3),
        ("b", 4, 4),
        ("a", 5, 5),
        ("a", 6, 6),
        ("b", 7, 7),
        ("a", 8, 8),
        ("a", 9, 9),
        ("a", 9, 10),
    ]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return stream.key_by(lambda v: v[0]).window(GlobalWindows.create()).trigger(CountTrigger.of(3)).process(Show())


@recorded()
def window_global_never(env):
    """A global window without a trigger never fires."""

    class Show(ProcessWindowFunction):
        def process(self, key, context, elements):
            yield key, context.window().max_timestamp(), [e[2] for e in elements]

    values = [
        ("a", 1, 1),
        ("a", 2, 2),
        ("a", 3, 3),
        ("b", 4, 4),
        ("a", 5, 5),
        ("a", 6, 6),
        ("b", 7, 7),
        ("a", 8, 8),
        ("a", 9, 9),
        ("a", 9, 10),
    ]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return stream.key_by(lambda v: v[0]).window(GlobalWindows.create()).process(Show())


@recorded()
def window_global_purging(env):
    """A purging trigger drops them."""

    class Show(ProcessWindowFunction):
        def process(self, key, context, elements):
            yield key, context.window().max_timestamp(), [e[2] for e in elements]

    values = [
        ("a", 1, 1),
        ("a", 2, 2),
        ("a", 3, 3),
        ("b", 4, 4),
        ("a", 5, 5),
        ("a", 6, 6),
        ("b", 7, 7),
        ("a", 8, 8),
        ("a", 9, 9),
        ("a", 9, 10),
    ]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return (
        stream.key_by(lambda v: v[0])
        .window(GlobalWindows.create())
        .trigger(PurgingTrigger.of(CountTrigger.of(3)))
        .process(Show())
    )


@recorded()
def window_global_state_per_key(env):
    """Global state of a window function is of its key: later windows see what earlier ones of the same key left."""

    class Remembers(ProcessWindowFunction):
        def __init__(self):
            self.sums = ListStateDescriptor("sums", Types.LONG())

        def process(self, key, context, elements):
            sums = context.global_state().get_list_state(self.sums)
            sums.add(sum(e[2] for e in elements))
            yield key, context.window().end, list(sums.get())

        def clear(self, context):
            pass

    values = [("a", 1, 1), ("b", 14, 2), ("a", 12, 4), ("b", 37, 8), ("a", 25, 16), ("a", 22, 32)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return stream.key_by(lambda v: v[0]).window(TumblingEventTimeWindows.of(Time.milliseconds(10))).process(Remembers())


@recorded()
def window_global_timestamp(env):
    """The time of results of the global window."""
    values = [
        ("a", 1, 1),
        ("a", 2, 2),
        ("a", 3, 3),
        ("b", 4, 4),
        ("a", 5, 5),
        ("a", 6, 6),
        ("b", 7, 7),
        ("a", 8, 8),
        ("a", 9, 9),
        ("a", 9, 10),
    ]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return (
        stream.key_by(lambda v: v[0])
        .window(GlobalWindows.create())
        .trigger(CountTrigger.of(3))
        .reduce(lambda x, y: (x[0], y[1], x[2] + y[2]))
        .process(Times())
    )
