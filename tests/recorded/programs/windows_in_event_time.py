"""Tumbling and sliding windows in event time."""

from pyflink.common import Row, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import OutputTag
from pyflink.datastream.functions import (
    AggregateFunction,
    ProcessAllWindowFunction,
    ProcessFunction,
    ProcessWindowFunction,
    WindowFunction,
)
from pyflink.datastream.state import ValueStateDescriptor
from pyflink.datastream.window import CountTrigger, SlidingEventTimeWindows, TumblingEventTimeWindows
from tests.recorded.family import recorded


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Show(ProcessWindowFunction):
    def process(self, key, context, elements):
        window = context.window()
        yield key, window.start, window.end, [e[2] for e in elements], context.current_watermark()


class Average(AggregateFunction):
    def create_accumulator(self):
        return 0, 0

    def add(self, value, accumulator):
        return accumulator[0] + value[2], accumulator[1] + 1

    def get_result(self, accumulator):
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a, acc_b):
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class One(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, context.window().end, list(elements)


class Sum(AggregateFunction):
    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + value[2]

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


@recorded()
def window_aggregate_none(env):
    """An aggregate whose result is None."""

    class Nothing(AggregateFunction):
        def create_accumulator(self):
            return 0

        def add(self, value, accumulator):
            return accumulator + 1

        def get_result(self, accumulator):
            return None if accumulator == 1 else accumulator

        def merge(self, acc_a, acc_b):
            return acc_a + acc_b

    values = [("a", 1, 1), ("a", 4, 2), ("a", 12, 3), ("a", 9, 4), ("a", 25, 5), ("a", 10, 6)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return stream.key_by(lambda v: v[0]).window(TumblingEventTimeWindows.of(Time.milliseconds(10))).aggregate(Nothing())


@recorded()
def window_aggregate_process(env):
    """Behind an aggregate, a process window function gets the result."""
    values = [("a", 1, 1), ("a", 4, 2), ("a", 12, 3), ("a", 9, 4), ("a", 25, 5), ("a", 10, 6)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return (
        stream.key_by(lambda v: v[0])
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        .aggregate(Average(), One())
    )


@recorded()
def window_apply_generator(env):
    """A window function may yield."""

    class Applied(WindowFunction):
        def apply(self, key, window, inputs):
            for value in inputs:
                yield window.end, value

    values = [("a", 1, 1), ("a", 4, 2), ("a", 12, 3), ("a", 9, 4), ("a", 25, 5), ("a", 10, 6)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return stream.key_by(lambda v: v[0]).window(TumblingEventTimeWindows.of(Time.milliseconds(10))).apply(Applied())


@recorded(ordered=False)
def window_keys(env):
    """Every key has windows of its own."""
    values = [("a", 1, 1), ("b", 4, 2), ("c", 12, 3), ("b", 9, 4), ("a", 2, 5), ("c", 13, 6)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return stream.key_by(lambda v: v[0]).window(TumblingEventTimeWindows.of(Time.milliseconds(10))).process(Show())


@recorded()
def window_no_timestamps(env):
    """An event-time window needs timestamps."""
    stream = env.from_collection([("a", 1, 1)])
    return stream.key_by(lambda v: v[0]).window(TumblingEventTimeWindows.of(Time.milliseconds(10))).process(Show())


@recorded()
def window_reduce_order(env):
    """A reduce gets the value so far, then the new record."""
    values = [("a", 8, 1), ("a", 1, 2), ("a", 5, 3)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return (
        stream.key_by(lambda v: v[0])
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        .reduce(lambda x, y: (x[0] + y[0], y[1], y[2]))
    )


@recorded()
def window_reduce_process(env):
    """Behind a reduce, a process window function gets one element."""
    values = [("a", 1, 1), ("a", 4, 2), ("a", 12, 3), ("a", 9, 4), ("a", 25, 5), ("a", 10, 6)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return (
        stream.key_by(lambda v: v[0])
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        .reduce(lambda x, y: (x[0], y[1], x[2] + y[2]), One())
    )


@recorded()
def window_result_timestamp(env):
    """Results have the last time of their window."""

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


@recorded()
def window_row_named(env):
    """Windows over named rows: the key, the reduce and the result are rows' fields."""

    TYPE = Types.ROW_NAMED(["word", "at", "n"], [Types.STRING(), Types.LONG(), Types.INT()])

    values = [Row("a", 3, 1), Row("a", 12, 4), Row("a", 9, 32), Row("b", 21, 16), Row("b", 28, 64)]
    stream = env.from_collection(values, TYPE).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return (
        stream.key_by(lambda r: r.word, Types.STRING())
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        .reduce(lambda x, y: Row(word=x.word, at=max(x.at, y.at), n=x.n + y.n), output_type=TYPE)
    )


@recorded()
def window_side_output(env):
    """A window function may emit to a side output."""

    TAG = OutputTag("even", Types.STRING())

    class Sides(ProcessWindowFunction):
        def process(self, key, context, elements):
            for element in elements:
                if element[2] % 2:
                    yield element
                else:
                    yield TAG, str(element)

    values = [("a", 1, 1), ("a", 4, 2), ("a", 12, 3), ("a", 9, 4), ("a", 25, 5), ("a", 10, 6)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return (
        stream.key_by(lambda v: v[0])
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        .process(Sides())
        .get_side_output(TAG)
    )


@recorded()
def window_side_output_then_window(env):
    """Side outputs of a window function have its timestamps: windows behind them line up."""

    TAG = OutputTag("large", Types.TUPLE([Types.STRING(), Types.LONG()]))

    class Split(ProcessWindowFunction):
        def process(self, key, context, elements):
            total = sum(e[2] for e in elements)
            if total > 3:
                yield TAG, (key, total)
            else:
                yield key, total

    class All(ProcessAllWindowFunction):
        def process(self, context, elements):
            yield context.window().start, sorted(elements)

    values = [("a", 3, 1), ("b", 14, 2), ("a", 12, 4), ("c", 7, 8), ("b", 21, 16), ("a", 9, 32), ("b", 18, 64)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    main = stream.key_by(lambda v: v[0]).window(TumblingEventTimeWindows.of(Time.milliseconds(10))).process(Split())
    return main.get_side_output(TAG).window_all(TumblingEventTimeWindows.of(Time.milliseconds(10))).process(All())


@recorded()
def window_sliding(env):
    """Sliding windows overlap."""
    values = [("a", 1, 1), ("a", 4, 2), ("a", 12, 3), ("a", 9, 4), ("a", 25, 5), ("a", 10, 6)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    windows = SlidingEventTimeWindows.of(Time.milliseconds(10), Time.milliseconds(5))
    return stream.key_by(lambda v: v[0]).window(windows).process(Show())


@recorded()
def window_sliding_aggregate_process(env):
    """Behind an aggregate over sliding windows, the function sees each window's own result."""

    class Show(ProcessWindowFunction):
        def process(self, key, context, elements):
            window = context.window()
            yield key, window.start, window.end, list(elements)

    values = [("a", 3, 1), ("a", 12, 4), ("a", 9, 32), ("a", 21, 16), ("a", 20, 64)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return (
        stream.key_by(lambda v: v[0])
        .window(SlidingEventTimeWindows.of(Time.milliseconds(10), Time.milliseconds(4), Time.milliseconds(1)))
        .aggregate(Sum(), Show())
    )


@recorded()
def window_sliding_gaps(env):
    """With a slide above the size, records between windows vanish."""
    values = [("a", 9, 1), ("a", 11, 2), ("a", 13, 3), ("a", 14, 4)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    windows = SlidingEventTimeWindows.of(Time.milliseconds(4), Time.milliseconds(10))
    return stream.key_by(lambda v: v[0]).window(windows).process(Show())


@recorded()
def window_sliding_uneven(env):
    """The size need not be a multiple of the slide."""
    values = [("a", 1, 1), ("a", 4, 2), ("a", 12, 3), ("a", 9, 4), ("a", 25, 5), ("a", 10, 6)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    windows = SlidingEventTimeWindows.of(Time.milliseconds(10), Time.milliseconds(4), Time.milliseconds(1))
    return stream.key_by(lambda v: v[0]).window(windows).process(Show())


@recorded()
def window_state(env):
    """State of the window, and of the key over all windows."""

    class Keeps(ProcessWindowFunction):
        def __init__(self):
            self.count = ValueStateDescriptor("seen", Types.LONG())
            self.total = ValueStateDescriptor("total", Types.LONG())

        def process(self, key, context, elements):
            count = context.window_state().get_state(self.count)
            total = context.global_state().get_state(self.total)
            count.update((count.value() or 0) + 1)
            total.update((total.value() or 0) + 1)
            yield context.window().end, count.value(), total.value(), len(list(elements))

        def clear(self, context):
            context.window_state().get_state(self.count).clear()

    values = [("a", 1, 1), ("a", 4, 2), ("a", 12, 3), ("a", 9, 4), ("a", 25, 5), ("a", 10, 6)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return (
        stream.key_by(lambda v: v[0])
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        .trigger(CountTrigger.of(1))
        .process(Keeps())
    )


@recorded()
def window_then_top(env):
    """Sums per key and window, then the largest of each window over all keys."""

    class WithKey(ProcessWindowFunction):
        def process(self, key, context, elements):
            for total in elements:
                yield key, total

    class Top(ProcessAllWindowFunction):
        def process(self, context, elements):
            yield context.window().end, sorted(elements, key=lambda e: -e[1])[:2]

    values = [("a", 3, 1), ("b", 14, 2), ("a", 12, 4), ("c", 7, 8), ("b", 21, 16), ("a", 9, 32), ("b", 18, 64)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    sums = (
        stream.key_by(lambda v: v[0])
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        .aggregate(Sum(), WithKey())
    )
    return sums.window_all(TumblingEventTimeWindows.of(Time.milliseconds(10))).process(Top())


@recorded()
def window_then_window(env):
    """Results have the last time of their window, so a second window of the same size lines up."""
    values = [("a", 1, 1), ("a", 4, 2), ("a", 12, 3), ("a", 9, 4), ("a", 25, 5), ("a", 10, 6)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    first = (
        stream.key_by(lambda v: v[0])
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        .reduce(lambda x, y: (x[0], 0, x[2] + y[2]))
    )
    return first.key_by(lambda v: 0).window(TumblingEventTimeWindows.of(Time.milliseconds(10))).process(Show())


@recorded()
def window_tumbling(env):
    """Tumbling windows fire at the end of the input, in the order of their ends."""
    values = [("a", 1, 1), ("a", 4, 2), ("a", 12, 3), ("a", 9, 4), ("a", 25, 5), ("a", 10, 6)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return stream.key_by(lambda v: v[0]).window(TumblingEventTimeWindows.of(Time.milliseconds(10))).process(Show())


@recorded()
def window_tumbling_aggregate(env):
    """An aggregate on windows gives one result for each."""
    values = [("a", 1, 1), ("a", 4, 2), ("a", 12, 3), ("a", 9, 4), ("a", 25, 5), ("a", 10, 6)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return stream.key_by(lambda v: v[0]).window(TumblingEventTimeWindows.of(Time.milliseconds(10))).aggregate(Average())


@recorded()
def window_tumbling_apply(env):
    """A window function gets the key, the window and the records."""

    class Applied(WindowFunction):
        def apply(self, key, window, inputs):
            return [(key, window.start, window.max_timestamp(), list(inputs))]

    values = [("a", 1, 1), ("a", 4, 2), ("a", 12, 3), ("a", 9, 4), ("a", 25, 5), ("a", 10, 6)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return stream.key_by(lambda v: v[0]).window(TumblingEventTimeWindows.of(Time.milliseconds(10))).apply(Applied())


@recorded()
def window_tumbling_offset(env):
    """An offset may be negative, and so may timestamps."""
    values = [("a", -4, 1), ("a", -3, 2), ("a", 6, 3), ("a", 7, 4), ("a", -14, 5)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    windows = TumblingEventTimeWindows.of(Time.milliseconds(10), Time.milliseconds(-3))
    return stream.key_by(lambda v: v[0]).window(windows).process(Show())


@recorded()
def window_tumbling_offset_reduce_apply(env):
    """A negative offset, a reduce, and a window function behind it."""

    class Applied(WindowFunction):
        def apply(self, key, window, inputs):
            return [(key, window.start, window.end, list(inputs))]

    values = [("a", 6, 1), ("a", 7, 2), ("a", 16, 4), ("a", 17, 8), ("a", -3, 16), ("a", -4, 32)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return (
        stream.key_by(lambda v: v[0])
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10), Time.milliseconds(-3)))
        .reduce(lambda x, y: (x[0], max(x[1], y[1]), x[2] + y[2]), Applied())
    )


@recorded()
def window_tumbling_reduce(env):
    """A reduce on windows gives one value for each."""
    values = [("a", 1, 1), ("a", 4, 2), ("a", 12, 3), ("a", 9, 4), ("a", 25, 5), ("a", 10, 6)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return (
        stream.key_by(lambda v: v[0])
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        .reduce(lambda x, y: (x[0], y[1], x[2] + y[2]))
    )
