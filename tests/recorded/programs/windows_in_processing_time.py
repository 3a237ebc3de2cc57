"""Windows in processing time."""

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream.functions import ProcessAllWindowFunction, ProcessWindowFunction
from pyflink.datastream.window import (
    ContinuousProcessingTimeTrigger,
    CountTrigger,
    ProcessingTimeSessionWindows,
    ProcessingTimeTrigger,
    PurgingTrigger,
    SessionWindowTimeGapExtractor,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from tests.recorded.family import recorded


class Show(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, [element[1] for element in elements], context.current_watermark()


VALUES = [("a", 1), ("b", 2), ("a", 3), ("a", 4), ("b", 5), ("a", 6), ("a", 7)]


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


def timed(env, values):
    return env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )


@recorded()
def window_continuous_processing_time_ends(env):
    """A continuous trigger of processing time whose time has not come does not fire at the end."""
    keyed = env.from_collection(VALUES).key_by(lambda value: value[0])
    windows = keyed.window(TumblingProcessingTimeWindows.of(Time.days(10000)))
    return windows.trigger(ContinuousProcessingTimeTrigger.of(Time.days(9000))).process(Show())


@recorded()
def window_processing_time_all(env):
    """Processing-time windows over all records fire by count."""

    class Show(ProcessAllWindowFunction):
        def process(self, context, elements):
            yield [element[1] for element in elements]

    VALUES = [("a", 1), ("b", 2), ("a", 3), ("a", 4), ("b", 5), ("a", 6), ("a", 7)]

    windows = env.from_collection(VALUES).window_all(TumblingProcessingTimeWindows.of(Time.days(10000)))
    return windows.trigger(CountTrigger.of(3)).process(Show())


@recorded(
    mode="BATCH",
    quirk="PyFlink has dropped the contents of the windows when their timers fire, and fails or gives too little.",
)
def window_processing_time_batch(env):
    """In a batch job open processing-time windows fire at the end of their key."""
    keyed = env.from_collection(VALUES).key_by(lambda value: value[0], Types.STRING())
    return keyed.window(TumblingProcessingTimeWindows.of(Time.days(10000))).process(Show())


@recorded()
def window_processing_time_count_trigger(env):
    """Processing-time windows fire by count."""
    keyed = env.from_collection(VALUES).key_by(lambda value: value[0])
    return keyed.window(TumblingProcessingTimeWindows.of(Time.days(10000))).trigger(CountTrigger.of(2)).process(Show())


@recorded()
def window_processing_time_dynamic_session(env):
    """Processing-time sessions with a gap of each record's own."""

    class Days(SessionWindowTimeGapExtractor):
        def extract(self, element):
            return element[1] * 86_400_000

    keyed = env.from_collection(VALUES).key_by(lambda value: value[0])
    windows = keyed.window(ProcessingTimeSessionWindows.with_dynamic_gap(Days()))
    return windows.trigger(CountTrigger.of(3)).process(Show())


@recorded()
def window_processing_time_ends(env):
    """Processing-time windows that are open at the end of the input do not fire."""

    class Show(ProcessWindowFunction):
        def process(self, key, context, elements):
            window = context.window()
            yield key, window.start, window.end, [e[2] for e in elements], context.current_watermark()

    values = [("a", 1, 1), ("a", 4, 2), ("a", 12, 3), ("a", 9, 4), ("a", 25, 5), ("a", 10, 6)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return stream.key_by(lambda v: v[0]).window(TumblingProcessingTimeWindows.of(Time.days(1000))).process(Show())


@recorded()
def window_processing_time_purging(env):
    """Processing-time windows that fire by count and forget."""
    keyed = env.from_collection(VALUES).key_by(lambda value: value[0])
    windows = keyed.window(TumblingProcessingTimeWindows.of(Time.days(10000)))
    return windows.trigger(PurgingTrigger.of(CountTrigger.of(2))).process(Show())


@recorded()
def window_processing_time_reduce(env):
    """Processing-time windows that reduce and fire by count."""
    keyed = env.from_collection(VALUES).key_by(lambda value: value[0])
    windows = keyed.window(TumblingProcessingTimeWindows.of(Time.days(10000))).trigger(CountTrigger.of(2))
    return windows.reduce(lambda a, b: (a[0], a[1] + b[1]))


@recorded()
def window_processing_time_session(env):
    """A processing-time session that grows with each record fires by count."""
    keyed = env.from_collection(VALUES).key_by(lambda value: value[0])
    windows = keyed.window(ProcessingTimeSessionWindows.with_gap(Time.days(10000)))
    return windows.trigger(CountTrigger.of(2)).process(Show())


@recorded(
    mode="BATCH",
    quirk="PyFlink has dropped the contents of the windows when their timers fire, and fails or gives too little.",
)
def window_processing_time_session_batch(env):
    """In a batch job an open processing-time session fires at the end of its key."""
    keyed = env.from_collection(VALUES).key_by(lambda value: value[0], Types.STRING())
    return keyed.window(ProcessingTimeSessionWindows.with_gap(Time.days(10000))).process(Show())


@recorded()
def window_processing_time_session_ends(env):
    """A processing-time session that is open at the end does not fire."""
    keyed = env.from_collection(VALUES).key_by(lambda value: value[0])
    return keyed.window(ProcessingTimeSessionWindows.with_gap(Time.days(1))).process(Show())


@recorded()
def window_processing_time_sliding(env):
    """A record is in two sliding processing-time windows; both fire by count."""
    keyed = env.from_collection(VALUES).key_by(lambda value: value[0])
    windows = keyed.window(SlidingProcessingTimeWindows.of(Time.days(20000), Time.days(10000)))
    return windows.trigger(CountTrigger.of(2)).process(Show())


@recorded()
def window_processing_time_trigger_ends(env):
    """Event-time windows with a trigger of processing time do not fire when the input ends."""

    class Show(ProcessWindowFunction):
        def process(self, key, context, elements):
            yield key, [element[2] for element in elements]

    stream = timed(env, [("a", 10**15, 1), ("a", 10**15 + 4, 2), ("b", 10**15 + 12, 3)])
    windows = stream.key_by(lambda value: value[0]).window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
    return windows.trigger(ProcessingTimeTrigger.create()).process(Show())
