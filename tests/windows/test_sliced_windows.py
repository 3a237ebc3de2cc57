"""Sliding windows in slices give what windows that are kept one by one give: record by record, after crashes too."""

import math
import os
import tempfile
from functools import reduce
from unittest import mock

import pytest
from brute_force import evaluate
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from running import Run, collected, environment, graph_of, timed

from tamias.checkpoint.restore import plan_restore
from tamias.common import Row, Time, Types
from tamias.contracts.rolling import MaxByFunction, MaxFunction, MinByFunction, MinFunction, SumFunction
from tamias.datastream import OutputTag
from tamias.datastream.functions import AggregateFunction, ProcessWindowFunction, ReduceFunction
from tamias.datastream.state import ValueStateDescriptor
from tamias.datastream.window import CountTrigger, SlidingEventTimeWindows, SlidingProcessingTimeWindows
from tamias.errors import UserFunctionError
from tamias.runtime.operators.aligned_windows import AlignedWindowOperator
from tamias.runtime.operators.sliced_windows import SlicedWindowOperator
from tamias.runtime.windows import choice
from tamias.runtime.windows.slicing import Slicing

LATE = OutputTag("late")
MORE = int(os.environ.get("TAMIAS_MORE_EXAMPLES", "1"))
SLOW_IS_FINE = {"deadline": None, "suppress_health_check": list(HealthCheck)}


def ms(n):
    return Time.milliseconds(n)


def in_slices():
    return mock.patch.object(choice, "SLICED_FROM", 1)


def one_by_one():
    return mock.patch.object(choice, "SLICED_FROM", 1 << 40)


def window_operators(run):
    return [o for h in run.engine._hosts for s in h._subtasks.values() for o in s.operators if o.backend is not None]


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
    """Does to its records what a function should not, and others must not see."""

    def process(self, key, context, elements):
        yield from super().process(key, context, [list(e) for e in elements])
        for element in elements:
            element.append("spoilt")
        elements.clear()


class Numbers(AggregateFunction):
    """The numbers of all records, in an accumulator that changes in place; in what order they came is not to be seen."""

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

# Per name: what the window does, and what the evaluator's list of records becomes.
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


def program(stream, function, size, slide, offset, lateness, late=None):
    """Windows over records that are pairs of a key and a number."""
    stream = stream.map(lambda v: v, output_type=PAIR) if function == "sum" else stream
    windowed = stream.key_by(lambda v: v[0]).window(SlidingEventTimeWindows.of(ms(size), ms(slide), ms(offset)))
    windowed = windowed.allowed_lateness(lateness)
    if late is not None:
        windowed = windowed.side_output_late_data(late)
    return FUNCTIONS[function][0](windowed)


# ------------------------------------------------------------------------------------------- random programs

windows = st.integers(1, 5).flatmap(
    lambda slide: st.tuples(st.integers(slide, 12), st.just(slide), st.integers(1 - slide, slide - 1))
)
# Disorder and lateness come from timestamps and watermarks that are chosen freely of one another.
times, watermarks = st.integers(-3, 15), st.none() | st.none() | st.integers(-3, 15)
streams = st.lists(st.tuples(st.sampled_from("aab"), times, watermarks), min_size=1, max_size=30)
latenesses = st.sampled_from([0, 0, 1, 4, 9])


def events_of(stream):
    """(key, value, timestamp, watermark); values are (key, number) and nearly all different."""
    return [(key, (key, i - i % 5), time, after) for i, (key, time, after) in enumerate(stream)]


def timed_values(events):
    return [(value, time, after) for _, value, time, after in events]


def shown(text):
    """Records so that what equals and yet is not the same (1 and True, 0.0 and -0.0, NaN) is told apart."""
    return [repr(record) for record in text]


def of_keys(records):
    return {key: [repr(r) for r in records if r[0] == key] for key in {r[0] for r in records}}


@settings(max_examples=120 * MORE, **SLOW_IS_FINE)
@given(streams, windows, latenesses, functions, st.integers(1, 12))
def test_windows_in_slices_give_what_the_words_of_the_reference_say(stream, window, lateness, function, epoch_records):
    events = events_of(stream)
    with in_slices():
        result = program(timed(environment(), timed_values(events)), function, *window, lateness, LATE)
        late = result.get_side_output(LATE).map(lambda v: ("late", None, v))
        records = collected(result.union(late), max_records=epoch_records)
    for key, wanted in evaluate(events, ("sliding", *window), ("event",), None, lateness).items():
        became = [(key, at, FUNCTIONS[function][1](values)) for at, values in wanted.fired]
        assert shown([r for r in records if r[0] == key]) == shown(became)
        assert [v for tag, _, v in records if tag == "late" and v[0] == key] == wanted.late


@settings(max_examples=60 * MORE, **SLOW_IS_FINE)
@given(streams, windows, latenesses, functions)
def test_keys_come_in_the_same_order_too(stream, window, lateness, function):
    events = timed_values(events_of(stream))

    def run():
        return shown(collected(program(timed(environment(), events), function, *window, lateness)))

    with in_slices():
        sliced = run()
    with one_by_one():
        assert sliced == run()


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


@settings(max_examples=120 * MORE, **SLOW_IS_FINE)
@given(odd_streams, windows, latenesses, st.sampled_from(CHOICES), st.integers(1, 10))
def test_what_is_chosen_is_the_same_for_values_that_no_order_holds_for(stream, window, lateness, choose, epoch_records):
    """NaN is neither smaller nor larger than anything, True equals 1 and 1.0, and of two sets none may be the larger."""
    events = [((key, value, i), time, after) for i, (key, value, time, after) in enumerate(stream)]

    def run():
        keyed = timed(environment(), events).key_by(lambda v: v[0])
        windowed = keyed.window(SlidingEventTimeWindows.of(ms(window[0]), ms(window[1]), ms(window[2])))
        result = windowed.allowed_lateness(lateness).reduce(choose, ShowOne())
        return shown(collected(result, max_records=epoch_records))

    with in_slices():
        sliced = run()
    with one_by_one():
        assert sliced == run()


# ------------------------------------------------------------------------------------------- crashes and rescaling


def collected_in_attempts(build, cuts):
    """What a job gives that is restarted from a checkpoint after some epochs, at another parallelism each time.

    Cuts are (records of the epochs of the attempt, number of its epochs, parallelism).
    """
    records, metadata = [], None
    with tempfile.TemporaryDirectory() as directory:
        for attempt, (epoch_records, epochs, parallelism) in enumerate([*cuts, (1 << 30, 1 << 30, 1)]):
            env = environment(parallelism, checkpoints=True)
            env.set_max_parallelism(8)
            run = Run(graph_of(build(env).uid("windows")), directory=directory)
            run.attempt = attempt
            run.deploy(metadata and plan_restore(run.graph, metadata, directory, allow_non_restored_state=False))
            for epoch in range(epochs):
                run.checkpoint(attempt * 100 + epoch + 1, epoch_records)
                metadata = run.metadata
                if run.finished:
                    break
            run.close()
            records += run.records
            if run.finished:
                return records
    raise AssertionError("the last attempt goes on to the end")


attempts = st.lists(st.tuples(st.integers(1, 8), st.integers(1, 3), st.integers(1, 3)), min_size=1, max_size=4)


@settings(max_examples=50 * MORE, **SLOW_IS_FINE)
@given(streams, windows, latenesses, functions, attempts)
def test_crashes_and_other_parallelisms_do_to_slices_what_they_do_to_panes(stream, window, lateness, function, cuts):
    """Records come in any order: after a restore, when time starts anew, also for windows that were over before."""
    events = timed_values(events_of(stream))

    def run():
        return of_keys(
            collected_in_attempts(lambda env: program(timed(env, events), function, *window, lateness), cuts)
        )

    with in_slices():
        sliced = run()
    with one_by_one():
        assert sliced == run()


@settings(max_examples=50 * MORE, **SLOW_IS_FINE)
@given(odd_streams, windows, latenesses, st.sampled_from(CHOICES), attempts)
def test_subtasks_that_had_to_leave_slices_are_restored_with_those_that_had_not(stream, window, lateness, choose, cuts):
    events = [((key, value, i), time, after) for i, (key, value, time, after) in enumerate(stream)]

    def build(env):
        keyed = timed(env, events).key_by(lambda v: v[0])
        windowed = keyed.window(SlidingEventTimeWindows.of(ms(window[0]), ms(window[1]), ms(window[2])))
        return windowed.allowed_lateness(lateness).reduce(choose, ShowOne())

    with in_slices():
        sliced = of_keys(collected_in_attempts(build, cuts))
    with one_by_one():
        assert sliced == of_keys(collected_in_attempts(build, cuts))


def test_keys_that_had_come_to_different_times_go_on_from_there_in_one_subtask():
    """One of two subtasks has left slices, and its windows are in panes up to a time that the other's are far from."""
    values = [(key, number) for number in range(4) for key in "abcdefgh"]
    events = [((key, number), number * 2, None) for key, number in values]
    events[20:20] = [(("a", math.nan), 3, 3)]

    def build(env):
        keyed = timed(env, events).key_by(lambda v: v[0])
        return keyed.window(SlidingEventTimeWindows.of(ms(6), ms(2))).reduce(MaxFunction(1), ShowOne())

    def run(parallelism):
        return of_keys(collected_in_attempts(build, [(22, 1, 2), (5, 1, parallelism)]))

    with one_by_one():
        wanted = run(1)
    with in_slices():
        assert run(1) == run(3) == wanted


# ------------------------------------------------------------------------------------------- one by one


def run_of(events, function, size, slide, *, lateness=0, late=None):
    with in_slices():
        return collected(program(timed(environment(), events), function, size, slide, 0, lateness, late))


def test_a_late_record_stands_between_those_it_came_between():
    events = [(("a", 1), 6, 4), (("a", 2), 2, None), (("a", 3), 7, 20)]
    assert run_of(events, "all records", 10, 5, lateness=5) == [
        ("a", (-5, 5), [("a", 2)]),
        ("a", (0, 10), [("a", 1), ("a", 2), ("a", 3)]),
        ("a", (5, 15), [("a", 1), ("a", 3)]),
    ]
