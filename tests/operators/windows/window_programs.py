"""Small programs with windows over streams that are given event by event."""

from ekorn.common import Time
from ekorn.datastream import OutputTag, ProcessFunction
from ekorn.datastream.functions import (
    ProcessWindowFunction,
)
from ekorn.datastream.window import (
    TimeWindow,
)
from tests.operators.windows.local_run import environment, timed

LATE = OutputTag("late")


def ms(n):
    return Time.milliseconds(n)


class Show(ProcessWindowFunction):
    """Emits the window and its records."""

    def process(self, key, context, elements):
        window = context.window()
        yield (window.start, window.end) if isinstance(window, TimeWindow) else repr(window), list(elements)


class Values(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield list(elements)


class Stamped(ProcessFunction):
    def process_element(self, value, ctx):
        yield value, ctx.timestamp()


def ascending(*times):
    """Return records that are their timestamps, each followed by the highest timestamp so far as watermark."""
    highest = [max(times[: i + 1]) for i in range(len(times))]
    return [(t, t, w) for t, w in zip(times, highest, strict=True)]


def windows(events, assigner, function=None, **settings):
    windowed = timed(environment(), events).key_by(lambda v: 0).window(assigner)
    for name, value in settings.items():
        windowed = getattr(windowed, name)(value)
    return windowed.process(function or Show())


def in_any_order(*times):
    return [(t, t, None) for t in times]
