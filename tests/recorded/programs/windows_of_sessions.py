"""Session windows in event time."""

from pyflink.common import Time, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream.functions import AggregateFunction, ProcessFunction, ProcessWindowFunction
from pyflink.datastream.window import CountTrigger, EventTimeSessionWindows, SessionWindowTimeGapExtractor
from tests.recorded.family import recorded


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Show(ProcessWindowFunction):
    def process(self, key, context, elements):
        window = context.window()
        yield key, window.start, window.end, [e[2] for e in elements], context.current_watermark()


@recorded()
def window_session(env):
    """Sessions that touch are one."""
    values = [("a", 0, 1), ("a", 10, 2), ("a", 25, 3), ("a", 21, 4)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return stream.key_by(lambda v: v[0]).window(EventTimeSessionWindows.with_gap(Time.milliseconds(10))).process(Show())


@recorded(quirk="PyFlink loses the accumulator of one of two sessions that a record brings together; Java keeps it.")
def window_session_aggregate(env):
    """An aggregate over sessions that grow together."""

    class Average(AggregateFunction):
        def create_accumulator(self):
            return 0, 0

        def add(self, value, accumulator):
            return accumulator[0] + value[2], accumulator[1] + 1

        def get_result(self, accumulator):
            return accumulator[0] / accumulator[1]

        def merge(self, acc_a, acc_b):
            return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]

    values = [("a", 0, 1), ("a", 20, 2), ("a", 10, 4), ("a", 50, 8)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return (
        stream.key_by(lambda v: v[0])
        .window(EventTimeSessionWindows.with_gap(Time.milliseconds(10)))
        .aggregate(Average())
    )


@recorded()
def window_session_bridged(env):
    """A record between two sessions makes them one."""
    values = [("a", 0, 1), ("a", 20, 2), ("a", 3, 3), ("a", 25, 4), ("a", 11, 5), ("a", 50, 6)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return stream.key_by(lambda v: v[0]).window(EventTimeSessionWindows.with_gap(Time.milliseconds(10))).process(Show())


@recorded()
def window_session_count_trigger(env):
    """Counts of sessions that become one add up."""
    values = [("a", 0, 1), ("a", 5, 2), ("a", 8, 3), ("a", 40, 4), ("a", 60, 5), ("a", 50, 6)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return (
        stream.key_by(lambda v: v[0])
        .window(EventTimeSessionWindows.with_gap(Time.milliseconds(10)))
        .trigger(CountTrigger.of(2))
        .process(Show())
    )


@recorded()
def window_session_dynamic(env):
    """The gap of a session may depend on the record."""

    class Gap(SessionWindowTimeGapExtractor):
        def extract(self, element):
            return element[2]

    values = [("a", 0, 20), ("a", 5, 2), ("a", 20, 3), ("a", 24, 2), ("a", 40, 1)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return stream.key_by(lambda v: v[0]).window(EventTimeSessionWindows.with_dynamic_gap(Gap())).process(Show())


@recorded()
def window_session_keys(env):
    """Sessions of one key do not see the records of another."""

    class Show(ProcessWindowFunction):
        def process(self, key, context, elements):
            window = context.window()
            yield key, window.start, window.end, list(elements)

    values = [("a", 3, 1), ("b", 6, 2), ("a", 9, 4), ("b", 10, 8), ("a", 7, 16), ("b", 24, 32), ("a", 30, 64)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return stream.key_by(lambda v: v[0]).window(EventTimeSessionWindows.with_gap(Time.milliseconds(5))).process(Show())


@recorded(quirk="PyFlink loses the value of one of two sessions that a record brings together; Java keeps it.")
def window_session_reduce(env):
    """A reduce over sessions that grow together."""
    values = [("a", 0, 1), ("a", 20, 2), ("a", 10, 4), ("a", 50, 8)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return (
        stream.key_by(lambda v: v[0])
        .window(EventTimeSessionWindows.with_gap(Time.milliseconds(10)))
        .reduce(lambda x, y: (x[0], y[1], x[2] + y[2]))
    )


@recorded()
def window_session_timestamp(env):
    """The time of results of sessions."""

    class Times(ProcessFunction):
        def process_element(self, value, ctx):
            yield value, ctx.timestamp()

    values = [("a", 1, 1), ("a", 4, 2), ("a", 12, 3), ("a", 9, 4), ("a", 25, 5), ("a", 10, 6)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return (
        stream.key_by(lambda v: v[0])
        .window(EventTimeSessionWindows.with_gap(Time.milliseconds(10)))
        .reduce(lambda x, y: (x[0], y[1], x[2] + y[2]))
        .process(Times())
    )
