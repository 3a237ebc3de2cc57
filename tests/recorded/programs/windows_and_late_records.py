"""Windows and late records."""

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import OutputTag
from pyflink.datastream.functions import ProcessAllWindowFunction, ProcessWindowFunction
from pyflink.datastream.window import (
    EventTimeTrigger,
    TimeWindow,
    TimeWindowSerializer,
    TumblingEventTimeWindows,
    WindowAssigner,
)
from tests.recorded.family import recorded


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


def timed(env, values):
    return env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )


LOWEST = -(2**63)
LATE = OutputTag("late", Types.PICKLED_BYTE_ARRAY())
TAG = OutputTag("late", Types.PICKLED_BYTE_ARRAY())


class AtTheBeginning(WindowAssigner):
    """Odd numbers go to the first millisecond there is, which even the first watermark has passed."""

    def assign_windows(self, element, timestamp, context):
        return [TimeWindow(LOWEST, LOWEST + 1) if element[2] % 2 else TimeWindow(0, 10)]

    def get_default_trigger(self, env):
        return EventTimeTrigger()

    def get_window_serializer(self):
        return TimeWindowSerializer()

    def is_event_time(self):
        return True


class Show(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, context.window().end, [e[2] for e in elements], context.current_watermark()


@recorded(ordered=False)
def window_late_and_main(env):
    """The main output and the late records, side by side."""

    class Show(ProcessWindowFunction):
        def process(self, key, context, elements):
            yield key, context.window().end, [element[2] for element in elements]

    stream = timed(env, [("a", LOWEST, 1), ("b", 4, 2), ("a", LOWEST, 3), ("a", 9, 4), ("b", 5, 5), ("a", LOWEST, 6)])
    windowed = stream.key_by(lambda v: v[0]).window(AtTheBeginning()).side_output_late_data(LATE).process(Show())
    return windowed.map(lambda v: ("main", v)).union(windowed.get_side_output(LATE).map(lambda v: ("late", v)))


@recorded()
def window_late_dropped(env):
    """Records of windows that the watermark has passed are dropped."""
    values = [("a", 1, 1), ("a", 4, 2), ("a", 3, 3), ("a", 9, 4), ("a", 5, 5), ("a", 6, 6)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return stream.key_by(lambda v: v[0]).window(AtTheBeginning()).process(Show())


@recorded()
def window_late_nothing(env):
    """Nothing is late while the watermark has not moved."""

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
        .allowed_lateness(2)
        .side_output_late_data(TAG)
        .process(Show())
    )


@recorded()
def window_late_of_all(env):
    """Late records of windows over all records."""

    class Show(ProcessAllWindowFunction):
        def process(self, context, elements):
            yield context.window().end, [element[2] for element in elements]

    stream = timed(env, [("a", LOWEST, 1), ("b", 4, 2), ("a", LOWEST, 3), ("a", 9, 4), ("b", 5, 5), ("a", LOWEST, 6)])
    return stream.window_all(AtTheBeginning()).side_output_late_data(LATE).process(Show()).get_side_output(LATE)


@recorded()
def window_late_of_reduce(env):
    """Late records of windows that reduce."""
    stream = timed(env, [("a", LOWEST, 1), ("b", 4, 2), ("a", LOWEST, 3), ("a", 9, 4), ("b", 5, 5), ("a", LOWEST, 6)])
    windows = stream.key_by(lambda v: v[0]).window(AtTheBeginning()).side_output_late_data(LATE)
    return windows.reduce(lambda a, b: (a[0], a[1], a[2] + b[2])).get_side_output(LATE)


@recorded()
def window_late_refires(env):
    """Within the allowed lateness, a window fires again with every late record."""
    values = [("a", 1, 1), ("a", 4, 2), ("a", 3, 3), ("a", 9, 4), ("a", 5, 5), ("a", 6, 6)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return stream.key_by(lambda v: v[0]).window(AtTheBeginning()).allowed_lateness(5).process(Show())


@recorded()
def window_late_refires_reduce(env):
    """A reduce goes on within the allowed lateness, and its value so far is given at each late record."""
    values = [("a", 1, 1), ("a", 4, 2), ("a", 3, 3), ("a", 9, 4), ("a", 5, 5), ("a", 6, 6)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return (
        stream.key_by(lambda v: v[0])
        .window(AtTheBeginning())
        .allowed_lateness(5)
        .reduce(lambda x, y: (x[0], y[1], x[2] + y[2]))
    )


@recorded()
def window_late_side_output(env):
    """Late records go to the side output when the watermark has passed their own time, too."""
    values = [("a", LOWEST, 1), ("a", 4, 2), ("a", LOWEST, 3), ("a", 9, 4), ("a", 5, 5), ("a", LOWEST, 6)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    windowed = stream.key_by(lambda v: v[0]).window(AtTheBeginning()).side_output_late_data(TAG).process(Show())
    return windowed.get_side_output(TAG)
