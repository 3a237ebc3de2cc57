"""Programs with sliding windows, random streams for them, and the choice between slices and panes."""

import math
from functools import reduce
from typing import Any
from unittest import mock

from hypothesis import HealthCheck
from hypothesis import strategies as st

from ekorn.common import Time, Types
from ekorn.datastream import OutputTag
from ekorn.datastream.functions import AggregateFunction, ProcessWindowFunction, ReduceFunction
from ekorn.datastream.window import (
    SlidingEventTimeWindows,
)
from ekorn.functions.rolling_aggregates import MaxByFunction, MaxFunction, MinByFunction, MinFunction, SumFunction
from ekorn.operators.windows import layout_choice

LATE = OutputTag("late")
SLOW_IS_FINE: dict[str, Any] = {"deadline": None, "suppress_health_check": list(HealthCheck)}


def ms(n):
    return Time.milliseconds(n)


def in_slices():
    return mock.patch.object(layout_choice, "slices_pay", lambda contents, windows_per_record: windows_per_record >= 1)


def in_panes():
    return mock.patch.object(layout_choice, "slices_pay", lambda contents, windows_per_record: False)


def window_operators(run):
    return [o for h in run.engine.hosts for s in h.subtasks.values() for o in s.operators if o.backend is not None]


# ------------------------------------------------------------------------------------------- functions on windows


class Show(ProcessWindowFunction):
    def process(self, key, context, elements):
        window = context.window()
        yield key, (window.start, window.end), list(elements)


class ShowOne(ProcessWindowFunction):
    def process(self, key, context, elements):
        (only,) = elements
        window = context.window()
        yield key, (window.start, window.end), only


class Spoils(Show):
    """Changes its records, as no function should. Other windows must not see it."""

    def process(self, key, context, elements):
        yield from super().process(key, context, [list(e) for e in elements])
        for element in elements:
            element.append("spoilt")
        elements.clear()


class Numbers(AggregateFunction):
    """Collects the numbers of all records, in any order, in an accumulator that changes in place."""

    combines_exactly = True

    def create_accumulator(self):
        return []

    def add(self, value, accumulator):
        accumulator.append(value[1])
        return accumulator

    def get_result(self, accumulator):
        accumulator.sort()
        return accumulator

    def merge(self, acc_a, acc_b):
        acc_a.extend(acc_b)
        acc_b.clear()
        return acc_a


class Total(ReduceFunction):
    combines_exactly = True

    def reduce(self, value1, value2):
        return value1[0], value1[1] + value2[1]


PAIR = Types.TUPLE([Types.STRING(), Types.LONG()])

# By name: how the window is evaluated, and the same for the evaluator's list of records.
FUNCTIONS = {
    "all records": (lambda w: w.process(Show()), lambda records: records),
    "promised merge": (lambda w: w.aggregate(Numbers(), ShowOne()), lambda r: sorted(number for _, number in r)),
    "promised reduce": (lambda w: w.reduce(Total(), ShowOne()), lambda r: (r[0][0], sum(number for _, number in r))),
    "sum": (lambda w: w.reduce(SumFunction(1), ShowOne()), lambda r: reduce(SumFunction(1).reduce, r)),
    "max": (lambda w: w.reduce(MaxFunction(1), ShowOne()), lambda r: reduce(MaxFunction(1).reduce, r)),
    "max_by": (lambda w: w.reduce(MaxByFunction(1), ShowOne()), lambda r: reduce(MaxByFunction(1).reduce, r)),
    "min_by last": (
        lambda w: w.reduce(MinByFunction(1, first=False), ShowOne()),
        lambda r: reduce(MinByFunction(1, first=False).reduce, r),
    ),
}
functions = st.sampled_from(sorted(FUNCTIONS))


def program(stream, function, window, *, lateness, late=None):
    """Return windows over records that are pairs of a key and a number."""
    size, slide, offset = window
    stream = stream.map(lambda v: v, output_type=PAIR) if function == "sum" else stream
    windowed = stream.key_by(lambda v: v[0]).window(SlidingEventTimeWindows.of(ms(size), ms(slide), ms(offset)))
    windowed = windowed.allowed_lateness(lateness)
    if late is not None:
        windowed = windowed.side_output_late_data(late)
    return FUNCTIONS[function][0](windowed)


# ------------------------------------------------------------------------------------------- random streams

windows = st.integers(1, 5).flatmap(
    lambda slide: st.tuples(st.integers(slide, 12), st.just(slide), st.integers(1 - slide, slide - 1))
)
# Timestamps and watermarks are independent, so records are out of order and late.
times, watermarks = st.integers(-3, 15), st.none() | st.none() | st.integers(-3, 15)
streams = st.lists(st.tuples(st.sampled_from("aab"), times, watermarks), min_size=1, max_size=30)
latenesses = st.sampled_from([0, 0, 1, 4, 9])


def events_of(stream):
    """Return events (key, value, timestamp, watermark). Values are (key, number) and nearly all different."""
    return [(key, (key, i - i % 5), time, after) for i, (key, time, after) in enumerate(stream)]


def timed_values(events):
    return [(value, time, after) for _, value, time, after in events]


def shown(records):
    """Return texts of records that tell apart values that are equal but not the same (1 and True, 0.0 and -0.0)."""
    return [repr(record) for record in records]


def of_keys(records):
    return {key: [repr(r) for r in records if r[0] == key] for key in {r[0] for r in records}}


odd_numbers = st.sampled_from([0, 1, 2, True, 0.0, -0.0, 1.0, 2.5, math.nan, math.nan, 10**30])
odd_texts = st.sampled_from(["", "a", "ab", "b", "ü"])
odd_sets = st.sampled_from([{1}, {1, 2}, {2}, {1, 2, 3}, set()])
odd_streams = st.sampled_from([odd_numbers, odd_numbers, odd_texts, odd_sets]).flatmap(
    lambda values: st.lists(st.tuples(st.sampled_from("aab"), values, times, watermarks), min_size=1, max_size=20)
)
CHOICES = [
    MaxFunction(1),
    MinFunction(1),
    MaxByFunction(1),
    MinByFunction(1),
    MaxByFunction(1, first=False),
    MinByFunction(1, first=False),
]
