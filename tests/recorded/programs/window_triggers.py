"""Triggers of event-time windows, and window assigners of the program's own."""

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream.functions import ProcessFunction, ProcessWindowFunction
from pyflink.datastream.state import ReducingStateDescriptor, ValueStateDescriptor
from pyflink.datastream.window import (
    ContinuousEventTimeTrigger,
    CountTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindows,
    PurgingTrigger,
    TimeWindow,
    TimeWindowSerializer,
    Trigger,
    TriggerResult,
    TumblingEventTimeWindows,
    WindowAssigner,
)
from tests.recorded.family import recorded


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Odd(Trigger):
    """Fires at odd numbers, and at a timer five after the first record of a window."""

    def __init__(self):
        self.first = ValueStateDescriptor("first", Types.LONG())

    def on_element(self, element, timestamp, window, ctx):
        first = ctx.get_partitioned_state(self.first)
        if first.value() is None:
            first.update(timestamp)
            ctx.register_event_time_timer(timestamp + 5)
        return TriggerResult.FIRE if element[2] % 2 else TriggerResult.CONTINUE

    def on_processing_time(self, time, window, ctx):
        return TriggerResult.CONTINUE

    def on_event_time(self, time, window, ctx):
        first = ctx.get_partitioned_state(self.first).value()
        return TriggerResult.FIRE_AND_PURGE if first is not None and time == first + 5 else TriggerResult.CONTINUE

    def on_merge(self, window, ctx):
        pass

    def clear(self, window, ctx):
        ctx.get_partitioned_state(self.first).clear()


class Show(ProcessWindowFunction):
    def process(self, key, context, elements):
        window = context.window()
        yield key, window.start, window.end, [e[2] for e in elements], context.current_watermark()


@recorded(
    quirk="PyFlink forgets the timer for the next interval that its trigger registers while it fires; Java fires there.",
)
def window_continuous_timestamp(env):
    """The time of results of windows that fire before their end."""

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
        .trigger(ContinuousEventTimeTrigger.of(Time.milliseconds(3)))
        .reduce(lambda x, y: (x[0], y[1], x[2] + y[2]))
        .process(Times())
    )


@recorded(
    quirk="PyFlink forgets the timer for the next interval that its trigger registers while it fires; Java fires there.",
)
def window_continuous_trigger(env):
    """A continuous trigger fires at every interval."""
    values = [("a", 1, 1), ("a", 4, 2), ("a", 12, 3), ("a", 9, 4), ("a", 25, 5), ("a", 10, 6)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return (
        stream.key_by(lambda v: v[0])
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        .trigger(ContinuousEventTimeTrigger.of(Time.milliseconds(3)))
        .process(Show())
    )


@recorded()
def window_custom_assigner(env):
    """An assigner of one's own."""

    class Second(TimestampAssigner):
        def extract_timestamp(self, value, record_timestamp):
            return value[1]

    class Pairs(WindowAssigner):
        """Windows of two sizes."""

        def assign_windows(self, element, timestamp, context):
            return [TimeWindow(0, 10), TimeWindow(timestamp, timestamp + 3)]

        def get_default_trigger(self, env):
            return EventTimeTrigger()

        def get_window_serializer(self):
            return TimeWindowSerializer()

        def is_event_time(self):
            return True

    class Show(ProcessWindowFunction):
        def process(self, key, context, elements):
            window = context.window()
            yield key, window.start, window.end, [e[2] for e in elements], context.current_watermark()

    values = [("a", 1, 1), ("a", 4, 2), ("a", 12, 3)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return stream.key_by(lambda v: v[0]).window(Pairs()).process(Show())


@recorded()
def window_custom_trigger(env):
    """A trigger of one's own has state and timers per key and window."""
    values = [("a", 1, 1), ("a", 4, 2), ("a", 12, 3), ("a", 9, 4), ("a", 25, 5), ("a", 10, 6)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return (
        stream.key_by(lambda v: v[0])
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        .trigger(Odd())
        .process(Show())
    )


@recorded()
def window_purging_count_reduce(env):
    """A purging count trigger starts each reduce anew, and what is left over at the end of a window is lost."""
    values = [("a", n * 7 % 20, 2**n) for n in range(11)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return (
        stream.key_by(lambda v: v[0])
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        .trigger(PurgingTrigger.of(CountTrigger.of(2)))
        .reduce(lambda x, y: (x[0], y[1], x[2] + y[2]))
    )


@recorded()
def window_purging_event_time(env):
    """A purging event-time trigger fires as the default one does."""
    values = [("a", 1, 1), ("a", 4, 2), ("a", 12, 3), ("a", 9, 4), ("a", 25, 5), ("a", 10, 6)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return (
        stream.key_by(lambda v: v[0])
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        .trigger(PurgingTrigger.of(EventTimeTrigger.create()))
        .process(Show())
    )


@recorded()
def window_trigger_cannot_merge(env):
    """A trigger that cannot merge is refused on sessions."""
    values = [("a", 1, 1), ("a", 4, 2), ("a", 12, 3), ("a", 9, 4), ("a", 25, 5), ("a", 10, 6)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return (
        stream.key_by(lambda v: v[0])
        .window(EventTimeSessionWindows.with_gap(Time.milliseconds(10)))
        .trigger(Odd())
        .process(Show())
    )


@recorded()
def window_trigger_fire_and_purge(env):
    """A trigger on the global window that keeps a sum for each key, and fires and purges at a bound."""

    class Full(Trigger):
        def __init__(self):
            self.sum = ReducingStateDescriptor("sum", lambda x, y: x + y, Types.LONG())

        def on_element(self, element, timestamp, window, ctx):
            total = ctx.get_partitioned_state(self.sum)
            total.add(element[2])
            if total.get() < 10:
                return TriggerResult.CONTINUE
            total.clear()
            return TriggerResult.FIRE_AND_PURGE

        def on_processing_time(self, time, window, ctx):
            return TriggerResult.CONTINUE

        def on_event_time(self, time, window, ctx):
            return TriggerResult.CONTINUE

        def on_merge(self, window, ctx):
            pass

        def clear(self, window, ctx):
            ctx.get_partitioned_state(self.sum).clear()

    class Show(ProcessWindowFunction):
        def process(self, key, context, elements):
            yield key, [e[2] for e in elements]

    values = [("a", 1, 4), ("b", 2, 9), ("a", 3, 5), ("b", 4, 1), ("a", 5, 3), ("a", 6, 8), ("b", 7, 10), ("a", 8, 2)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return stream.key_by(lambda v: v[0]).window(GlobalWindows.create()).trigger(Full()).process(Show())


@recorded()
def window_trigger_moves_timer(env):
    """A trigger deletes its timer and registers a later one: the window fires once, at the last."""

    class Last(Trigger):
        def __init__(self):
            self.timer = ValueStateDescriptor("timer", Types.LONG())

        def on_element(self, element, timestamp, window, ctx):
            timer = ctx.get_partitioned_state(self.timer)
            if timer.value() is not None:
                ctx.delete_event_time_timer(timer.value())
            timer.update(timestamp)
            ctx.register_event_time_timer(timestamp)
            return TriggerResult.CONTINUE

        def on_processing_time(self, time, window, ctx):
            return TriggerResult.CONTINUE

        def on_event_time(self, time, window, ctx):
            return TriggerResult.FIRE if time == ctx.get_partitioned_state(self.timer).value() else TriggerResult.CONTINUE

        def on_merge(self, window, ctx):
            pass

        def clear(self, window, ctx):
            ctx.get_partitioned_state(self.timer).clear()

    class Show(ProcessWindowFunction):
        def process(self, key, context, elements):
            window = context.window()
            yield key, window.start, window.end, list(elements)

    values = [("a", 3, 1), ("a", 12, 4), ("a", 5, 32), ("a", 21, 16), ("a", 2, 64), ("a", 24, 128)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return (
        stream.key_by(lambda v: v[0])
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        .trigger(Last())
        .process(Show())
    )
