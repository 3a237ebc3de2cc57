"""Programs with windows of every layout, whose windows are open when the savepoint is taken."""

from ekorn.common import Time, Types, WatermarkStrategy
from ekorn.datastream.functions import ProcessWindowFunction
from ekorn.datastream.state import ValueStateDescriptor
from ekorn.datastream.window import (
    CountEvictor,
    CountTrigger,
    EventTimeSessionWindows,
    GlobalWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from tests.state_processor.programs import COUNT, KEYS, Average, Larger, numbers

COUNTED = ValueStateDescriptor("counted")


class ListWindow(ProcessWindowFunction):
    """Emits the records of a window, and counts its firings in state of the window and of the key."""

    def process(self, key, context, elements):
        for store in (context.window_state(), context.global_state()):
            counted = store.get_state(COUNTED)
            counted.update((counted.value() or 0) + 1)
        yield key, tuple(elements)


class ListSession(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, tuple(elements)


def timed(env, given):
    """Return the numbers with the number as the time, and no watermark before the end of the input."""
    strategy = WatermarkStrategy.no_watermarks().with_timestamp_assigner(lambda n, _: n)
    return numbers(env, given, splits=1).map(lambda n: n, Types.LONG()).assign_timestamps_and_watermarks(strategy)


def windows(env, assigner, given):
    return timed(env, given).key_by(lambda n: n % KEYS, Types.LONG()).window(assigner)


TUMBLING = TumblingEventTimeWindows.of(Time.milliseconds(20))
SLIDING = SlidingEventTimeWindows.of(Time.milliseconds(20), Time.milliseconds(5))
OVERLAPPING = SlidingEventTimeWindows.of(Time.milliseconds(40), Time.milliseconds(1))  # so many are kept in slices
SESSIONS = EventTimeSessionWindows.with_gap(Time.milliseconds(6))


def tumbling_reduce(env, given=range(COUNT)):
    return windows(env, TUMBLING, given).reduce(Larger()).uid("windows")


def sliding_aggregate(env, given=range(COUNT)):
    return windows(env, SLIDING, given).aggregate(Average()).uid("windows")


def sliced_process(env, given=range(COUNT)):
    return windows(env, OVERLAPPING, given).process(ListSession()).uid("windows")


def session_process(env, given=range(COUNT)):
    return windows(env, SESSIONS, given).process(ListSession()).uid("windows")


def counted_process(env, given=range(COUNT)):
    return windows(env, GlobalWindows.create(), given).trigger(CountTrigger.of(2)).process(ListWindow()).uid("windows")


def evicted_reduce(env, given=range(COUNT)):
    return windows(env, TUMBLING, given).evictor(CountEvictor.of(2)).reduce(Larger()).uid("windows")
