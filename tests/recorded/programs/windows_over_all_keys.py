"""Windows over streams that are not keyed."""

from pyflink.common import Time, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream.functions import AggregateFunction, AllWindowFunction, ProcessAllWindowFunction
from pyflink.datastream.window import EventTimeSessionWindows, SlidingEventTimeWindows, TumblingEventTimeWindows
from tests.recorded.family import recorded


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


@recorded()
def window_all(env):
    """Windows over a whole stream."""

    class Show(ProcessAllWindowFunction):
        def process(self, context, elements):
            yield context.window().start, context.window().end, [e[2] for e in elements]

    values = [("a", 1, 1), ("b", 4, 2), ("c", 12, 3), ("b", 9, 4)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return stream.window_all(TumblingEventTimeWindows.of(Time.milliseconds(10))).process(Show())


@recorded(quirk="PyFlink loses the accumulator of one of two sessions that a record brings together; Java keeps it.")
def window_all_aggregate(env):
    """An aggregate over sessions of a whole stream."""

    class Average(AggregateFunction):
        def create_accumulator(self):
            return 0, 0

        def add(self, value, accumulator):
            return accumulator[0] + value[2], accumulator[1] + 1

        def get_result(self, accumulator):
            return accumulator[0] / accumulator[1]

        def merge(self, acc_a, acc_b):
            return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]

    values = [("a", 1, 1), ("a", 4, 2), ("a", 12, 3), ("a", 9, 4), ("a", 25, 5), ("a", 10, 6)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return stream.window_all(EventTimeSessionWindows.with_gap(Time.milliseconds(5))).aggregate(Average())


@recorded()
def window_all_apply(env):
    """A window function over a whole stream."""

    class Applied(AllWindowFunction):
        def apply(self, window, inputs):
            return [(window.start, list(inputs))]

    values = [("a", 1, 1), ("a", 4, 2), ("a", 12, 3), ("a", 9, 4), ("a", 25, 5), ("a", 10, 6)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return stream.window_all(TumblingEventTimeWindows.of(Time.milliseconds(10))).apply(Applied())


@recorded()
def window_all_reduce(env):
    """A reduce over windows of a whole stream."""
    values = [("a", 1, 1), ("b", 4, 2), ("c", 12, 3), ("b", 9, 4)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return stream.window_all(TumblingEventTimeWindows.of(Time.milliseconds(10))).reduce(
        lambda x, y: (x[0] + y[0], y[1], x[2] + y[2])
    )


@recorded()
def window_all_sliding_aggregate_process(env):
    """Sliding windows of a whole stream: an aggregate, and a function behind it."""

    class Sum(AggregateFunction):
        def create_accumulator(self):
            return 0

        def add(self, value, accumulator):
            return accumulator + value[2]

        def get_result(self, accumulator):
            return accumulator

        def merge(self, acc_a, acc_b):
            return acc_a + acc_b

    class Show(ProcessAllWindowFunction):
        def process(self, context, elements):
            yield context.window().start, context.window().end, list(elements)

    values = [("a", 3, 1), ("b", 14, 2), ("a", 12, 4), ("c", 7, 8), ("b", 21, 16), ("a", 9, 32), ("b", 18, 64)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return stream.window_all(SlidingEventTimeWindows.of(Time.milliseconds(10), Time.milliseconds(5))).aggregate(
        Sum(), Show()
    )
