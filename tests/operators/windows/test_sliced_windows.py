"""Sliding windows in slices give what windows that are kept one by one give: record by record, after crashes too."""

import itertools
import math
import os
import tempfile
from functools import reduce
from unittest import mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tamias.checkpoint.restore_plan import plan_restore
from tamias.common import Time, Types
from tamias.datastream import OutputTag
from tamias.datastream.functions import AggregateFunction, ProcessWindowFunction, ReduceFunction
from tamias.datastream.state import ValueStateDescriptor
from tamias.datastream.window import (
    CountTrigger,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
)
from tamias.errors import UserFunctionError
from tamias.functions.rolling_aggregates import MaxByFunction, MaxFunction, MinByFunction, MinFunction, SumFunction
from tamias.operators.windows import layout_choice
from tamias.operators.windows.pane_layout import PaneLayout
from tamias.operators.windows.slice_layout import SliceLayout
from tests.operators.windows.brute_force import evaluate
from tests.operators.windows.local_run import Run, collected, environment, graph_of, timed

LATE = OutputTag("late")
MORE = int(os.environ.get("TAMIAS_MORE_EXAMPLES", "1"))
SLOW_IS_FINE = {"deadline": None, "suppress_health_check": list(HealthCheck)}


def ms(n):
    return Time.milliseconds(n)


def in_slices():
    return mock.patch.object(layout_choice, "slices_pay", lambda contents, windows_per_record: windows_per_record >= 1)


def one_by_one():
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
    """Does to its records what a function should not, and others must not see."""

    def process(self, key, context, elements):
        yield from super().process(key, context, [list(e) for e in elements])
        for element in elements:
            element.append("spoilt")
        elements.clear()


class Numbers(AggregateFunction):
    """The numbers of all records, in an accumulator that changes in place; in what order they came does not show."""

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


def program(stream, function, size, slide, offset, lateness, late=None):  # noqa: PLR0917
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
        result = program(timed(environment(), timed_values(events)), function, *window, lateness=lateness, late=LATE)
        late = result.get_side_output(LATE).map(lambda v: ("late", None, v))
        records = collected(result.union(late), max_records=epoch_records)
    for key, wanted in evaluate(events, ("sliding", *window), ("event",), None, lateness).items():
        became = [(key, at, FUNCTIONS[function][1](values)) for at, values in wanted.fired]
        assert shown([r for r in records if r[0] == key]) == shown(became)
        assert [v for tag, _, v in records if tag == "late" and v[0] == key] == wanted.late


long_windows = st.integers(1, 2).flatmap(
    lambda slide: st.tuples(st.integers(8, 20), st.just(slide), st.integers(1 - slide, slide - 1))
)
steps = st.sampled_from([0, 0, 1, 1, 1, 2, 3, -4])


@settings(max_examples=60 * MORE, **SLOW_IS_FINE)
@given(st.lists(st.tuples(steps, st.booleans()), min_size=20, max_size=50), long_windows, latenesses, functions)
def test_windows_of_many_slices_follow_one_another(stream, window, lateness, function):
    """Of a key that has something in most slices, where little comes late: what one window gave helps the next."""
    now, events = 0, []
    for i, (step, marks) in enumerate(stream):
        now = max(now, now + step)
        at = now + step if step < 0 else now
        events.append(("a", ("a", i - i % 5), at, now - 2 if marks else None))
    with in_slices():
        records = collected(program(timed(environment(), timed_values(events)), function, *window, lateness=lateness))
    wanted = evaluate(events, ("sliding", *window), ("event",), None, lateness)["a"]
    assert shown(records) == shown([("a", at, FUNCTIONS[function][1](values)) for at, values in wanted.fired])


@settings(max_examples=60 * MORE, **SLOW_IS_FINE)
@given(streams, windows, latenesses, functions)
def test_keys_come_in_the_same_order_too(stream, window, lateness, function):
    events = timed_values(events_of(stream))

    def run():
        return shown(collected(program(timed(environment(), events), function, *window, lateness=lateness)))

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
    """NaN is neither smaller nor larger than anything, True equals 1 and 1.0, and of two sets neither may be larger."""
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


def collected_in_attempts(build, cuts, form):
    """What a job gives that is restarted from a checkpoint after some epochs, at another parallelism each time.

    Cuts are (records of the epochs of the attempt, number of its epochs, parallelism); `form` says for the number of an
    attempt how windows are kept.
    """
    records, metadata = [], None
    with tempfile.TemporaryDirectory() as directory:
        for attempt, (epoch_records, epochs, parallelism) in enumerate([*cuts, (1 << 30, 1 << 30, 1)]):
            env = environment(parallelism, checkpoints=True)
            env.set_max_parallelism(8)
            keeps, backend = form(attempt)
            run = Run(graph_of(build(env).uid("windows")), directory=directory, state_backend=backend)
            run.attempt = attempt
            with keeps():
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
SLICES, PANES, ROCKSDB = (in_slices, "hashmap"), (one_by_one, "hashmap"), (in_slices, "rocksdb")
forms = st.lists(st.sampled_from([SLICES, SLICES, SLICES, SLICES, PANES, ROCKSDB]), min_size=5, max_size=5)


def always_in_panes(attempt):
    return PANES


@settings(max_examples=50 * MORE, **SLOW_IS_FINE)
@given(streams, windows, st.lists(latenesses, min_size=1, max_size=2), functions, attempts, forms)
def test_crashes_and_other_parallelisms_do_to_slices_what_they_do_to_panes(  # noqa: PLR0917
    stream, window, lateness, function, cuts, form
):
    """Records come in any order: after a restore, when time starts anew, also for windows that were over before.

    The form in which windows are kept may be another one in every attempt, and unless RocksDB is among them the allowed
    lateness too.
    """
    events = timed_values(events_of(stream))
    lateness = lateness[:1] if ROCKSDB in form else lateness

    def run(form):
        turns = itertools.cycle(lateness)
        build = lambda env: program(timed(env, events), function, *window, lateness=next(turns))  # noqa: E731
        return of_keys(collected_in_attempts(build, cuts, form))

    assert run(lambda attempt: form[attempt]) == run(always_in_panes)


@settings(max_examples=50 * MORE, **SLOW_IS_FINE)
@given(odd_streams, windows, latenesses, st.sampled_from(CHOICES), attempts, forms)
def test_subtasks_that_had_to_leave_slices_are_restored_with_those_that_had_not(  # noqa: PLR0917
    stream, window, lateness, choose, cuts, form
):
    events = [((key, value, i), time, after) for i, (key, value, time, after) in enumerate(stream)]

    def build(env):
        keyed = timed(env, events).key_by(lambda v: v[0])
        windowed = keyed.window(SlidingEventTimeWindows.of(ms(window[0]), ms(window[1]), ms(window[2])))
        return windowed.allowed_lateness(lateness).reduce(choose, ShowOne())

    sliced = of_keys(collected_in_attempts(build, cuts, lambda attempt: form[attempt]))
    assert sliced == of_keys(collected_in_attempts(build, cuts, always_in_panes))


def test_keys_that_had_come_to_different_times_go_on_from_there_in_one_subtask():
    """One of two subtasks has left slices, and its windows are in panes up to a time that the other's are far from."""
    values = [(key, number) for number in range(4) for key in "abcdefgh"]
    events = [((key, number), number * 2, None) for key, number in values]
    events[20:20] = [(("a", math.nan), 3, 3)]

    def build(env):
        keyed = timed(env, events).key_by(lambda v: v[0])
        return keyed.window(SlidingEventTimeWindows.of(ms(6), ms(2))).reduce(MaxFunction(1), ShowOne())

    def run(parallelism, form):
        return of_keys(collected_in_attempts(build, [(22, 1, 2), (5, 1, parallelism)], form))

    wanted = run(1, always_in_panes)
    assert run(1, lambda attempt: SLICES) == run(3, lambda attempt: SLICES) == wanted


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


def test_functions_cannot_spoil_records_for_other_windows():
    events = [(["a", n], n, None) for n in (1, 4, 7)]
    stream = timed(environment(), events).key_by(lambda v: v[0])
    with in_slices():
        shown = collected(stream.window(SlidingEventTimeWindows.of(ms(6), ms(3))).process(Spoils()))
    assert shown == [
        ("a", (-3, 3), [["a", 1]]),
        ("a", (0, 6), [["a", 1], ["a", 4]]),
        ("a", (3, 9), [["a", 4], ["a", 7]]),
        ("a", (6, 12), [["a", 7]]),
    ]


def test_functions_cannot_spoil_what_was_restored():
    events = [(["a", n], n, None) for n in (1, 4, 7)]
    stream = timed(environment(checkpoints=True), events).key_by(lambda v: v[0])
    with in_slices(), tempfile.TemporaryDirectory() as directory:
        drawn = stream.window(SlidingEventTimeWindows.of(ms(9), ms(3))).process(Spoils())
        run = Run(graph_of(drawn), directory=directory)
        run.deploy()
        plan = run.checkpoint(1, max_records=2)
        run.attempt, run.records = 1, []
        run.deploy(plan)
        run.step()
        run.close()
    assert [numbers for _, _, numbers in run.records][2:4] == [[["a", 1], ["a", 4], ["a", 7]], [["a", 4], ["a", 7]]]


class Emptied(Numbers):
    """Leaves nothing of an accumulator."""

    def get_result(self, accumulator):
        numbers = sorted(accumulator)
        accumulator.clear()
        return numbers


def test_functions_cannot_spoil_accumulators_for_other_windows():
    events = [(("a", n), n, n - 1) for n in range(12)]
    stream = timed(environment(), events).key_by(lambda v: v[0])
    with in_slices():
        shown = collected(stream.window(SlidingEventTimeWindows.of(ms(6), ms(1))).aggregate(Emptied()))
    assert shown == [[n for n in range(end - 6, end) if 0 <= n < 12] for end in range(1, 18)]


def test_records_are_in_the_order_in_which_they_came_after_a_restore_too():
    events = [(("a", n), at, None) for n, at in enumerate((7, 2, 6, 1, 8))]
    with in_slices(), tempfile.TemporaryDirectory() as directory:
        stream = program(timed(environment(checkpoints=True), events), "all records", 10, 5, 0, 0)
        run = Run(graph_of(stream), directory=directory)
        run.deploy()
        plan = run.checkpoint(1, max_records=3)
        run.attempt = 1
        run.deploy(plan)
        run.step()
        run.close()
    assert ("a", (0, 10), [("a", n) for n in range(5)]) in run.records


class Keeps(ProcessWindowFunction):
    """Counts the firings of each window and of the key, and says when it is told that a window is over."""

    def process(self, key, context, elements):
        of_window = context.window_state().get_state(ValueStateDescriptor("n"))
        of_key = context.global_state().get_state(ValueStateDescriptor("n"))
        for state in (of_window, of_key):
            state.update((state.value() or 0) + 1)
        yield key, context.window().end, of_window.value(), of_key.value()

    def clear(self, context):
        state = context.window_state().get_state(ValueStateDescriptor("n"))
        cleared = context.global_state().get_state(ValueStateDescriptor("cleared"))
        assert state.value() is not None, "told once"
        state.clear()
        cleared.update([*(cleared.value() or []), context.window().end])


KEPT = [
    (("a", 0), 1, None),
    (("b", 1), 3, 4),
    (("a", 2), 2, None),
    (("a", 3), 9, 9),
    (("b", 4), 1, None),
    (("a", 5), 40, 40),
    (("c", 6), 100, None),
]


def state_left(function, form, lateness):
    """What a job gives, and the tables it has when all windows but the last one are over."""
    stream = timed(environment(checkpoints=True), KEPT).key_by(lambda v: v[0])
    windowed = stream.window(SlidingEventTimeWindows.of(ms(10), ms(5))).allowed_lateness(lateness)
    with form():
        run = Run(graph_of(windowed.process(function)))
        run.deploy()
    run.step(max_records=len(KEPT) - 1)
    (operator,) = window_operators(run)
    entries = {n: table.whole() for n, table in operator.backend._heap.by_name.items()}
    left = {name: dict(zip(map(repr, e.keys), map(repr, e.values), strict=True)) for name, e in entries.items()}
    run.step()
    run.close()
    return run.records, {name: table for name, table in left.items() if table}, operator


@pytest.mark.parametrize("lateness", [0, 3, 100])
def test_functions_have_the_same_state_and_are_told_the_same(lateness):
    sliced, state, operator = state_left(Keeps(), in_slices, lateness)
    panes, expected, other = state_left(Keeps(), one_by_one, lateness)
    assert type(operator.layout) is SliceLayout and type(other.layout) is PaneLayout
    assert sliced == panes
    for name in ("_window/slices", "_window/panes"):
        state.pop(name, None), expected.pop(name, None)
    assert state == expected


def test_windows_that_fired_before_a_restore_are_over_in_time_too():
    """What a function keeps for a window goes with it, though the window fires no more."""

    def left(form):
        def job(directory):
            stream = timed(environment(checkpoints=True), KEPT).key_by(lambda v: v[0])
            windowed = stream.window(SlidingEventTimeWindows.of(ms(10), ms(5))).allowed_lateness(20)
            return Run(graph_of(windowed.process(Keeps()).uid("windows")), directory=directory)

        with form(), tempfile.TemporaryDirectory() as directory:
            old, new = job(directory), job(directory)
            old.deploy()
            plan = old.checkpoint(1, max_records=4)
            new.attempt = 1
            new.deploy(plan)
            new.step(max_records=2)
            (operator,) = window_operators(new)
            tables = {name: operator.backend._heap.by_name[name].whole() for name in ("window/n", "cleared")}
            old.close()
            new.close()
            return {
                name: sorted(zip(map(repr, t.keys), map(repr, t.values), strict=True)) for name, t in tables.items()
            }

    assert left(in_slices) == left(one_by_one)


def test_nothing_is_left_of_windows_that_are_over():
    _, state, operator = state_left(Show(), in_slices, 3)
    assert state.keys() == {"_window/slices"}
    assert set(state["_window/slices"]) == {"('a', (40, 45))"}
    table = operator.layout.table
    assert not table.data and not table.slices and not table._firing_keys and not table._unfired
    assert not table._disordered
    assert not operator.layout.ends._known


def test_by_the_clock_windows_in_slices_fire_when_it_has_passed_them():
    stream = environment().from_collection(list(range(10))).key_by(lambda v: "a")
    with in_slices():
        run = Run(graph_of(stream.window(SlidingProcessingTimeWindows.of(ms(10), ms(5))).process(Show())))
        run.deploy()
    given = []
    for now, count in ((1, 2), (6, 1), (10, 1), (3, 1), (11, 0), (16, 0), (21, 0)):  # it is set back once
        run.clock.set_ms(now)
        given.append(run.step(max_records=count))
    run.close()
    assert given == [
        [],
        [("a", (-5, 5), [0, 1])],
        [("a", (0, 10), [0, 1, 2])],
        [],
        [("a", (-5, 5), [4]), ("a", (0, 10), [4])],
        [("a", (5, 15), [2, 3])],
        [("a", (10, 20), [3])],
    ]


def test_in_batch_mode_windows_in_slices_fire_key_by_key():
    events = [(("b", 1), 1, 50), (("a", 2), 12, 50), (("b", 3), 3, None), (("a", 4), 2, None)]
    with in_slices():
        records = collected(program(timed(environment(batch=True), events), "all records", 10, 5, 0, 0))
    assert records == [
        ("a", (-5, 5), [("a", 4)]),
        ("a", (0, 10), [("a", 4)]),
        ("a", (5, 15), [("a", 2)]),
        ("a", (10, 20), [("a", 2)]),
        ("b", (-5, 5), [("b", 1), ("b", 3)]),
        ("b", (0, 10), [("b", 1), ("b", 3)]),
    ]


# ------------------------------------------------------------------------------------------- which, and from what


class OwnMax(MaxFunction):
    """May do something else."""


class Adds(ReduceFunction):
    def reduce(self, value1, value2):
        return value1 + value2


ROW = Types.ROW_NAMED(["name", "price"], [Types.STRING(), Types.INT()])


@pytest.mark.parametrize(
    ("type_info", "size", "draw", "sliced"),
    [
        (None, 5, lambda w: w.process(Show()), True),
        (None, 4, lambda w: w.process(Show()), False),
        (None, 5, lambda w: w.max(1), True),
        (None, 5, lambda w: w.min_by(1), True),
        (None, 5, lambda w: w.reduce(OwnMax(1)), False),
        (None, 60, lambda w: w.reduce(lambda one, other: one), False),
        (None, 60, lambda w: w.reduce(Adds()), False),
        (None, 60, lambda w: w.fold(0, lambda total, value: total), False),
        (None, 10, lambda w: w.reduce(Total()), True),
        (None, 10, lambda w: w.aggregate(Numbers()), True),
        (None, 9, lambda w: w.aggregate(Numbers()), False),
        (None, 60, lambda w: w.sum(1), False),
        (PAIR, 5, lambda w: w.sum(1), True),
        (PAIR, 5, lambda w: w.sum(-1), True),
        (PAIR, 60, lambda w: w.sum(0), False),
        (PAIR, 60, lambda w: w.sum(2), False),
        (Types.TUPLE([Types.STRING(), Types.DOUBLE()]), 60, lambda w: w.sum(1), False),
        (ROW, 5, lambda w: w.sum("price"), True),
        (ROW, 60, lambda w: w.sum("weight"), False),
        (Types.LONG(), 5, lambda w: w.sum(0), True),
        (None, 60, lambda w: w.trigger(CountTrigger.of(3)).process(Show()), False),
    ],
)
def test_slices_are_used_where_they_give_the_same_and_pay(type_info, size, draw, sliced):
    env = environment()
    stream = env.from_collection([("a", 1)]) if type_info is None else env.from_collection([], type_info)
    run = Run(graph_of(draw(stream.key_by(lambda v: 0).window(SlidingEventTimeWindows.of(ms(size), ms(1))))))
    run.deploy()
    (operator,) = window_operators(run)
    run.close()
    assert (type(getattr(operator, "layout", None)) is SliceLayout) is sliced


def restored_as(before, after):
    """Take a checkpoint of one program and start another one from it."""

    def job(draw, directory):
        stream = timed(environment(checkpoints=True), [(("a", n), n, None) for n in (1, 2, 3)]).key_by(lambda v: v[0])
        return Run(graph_of(draw(stream).uid("windows")), directory=directory)

    with in_slices(), tempfile.TemporaryDirectory() as directory:
        old, new = job(before, directory), job(after, directory)
        old.deploy()
        old.checkpoint(1, max_records=2)
        new.attempt = 1
        new.deploy(plan_restore(new.graph, old.metadata, directory, allow_non_restored_state=False))
        new.step()
        old.close()
        new.close()
        return new.records


def sliding(size, slide, offset=0):
    return lambda stream: stream.window(SlidingEventTimeWindows.of(ms(size), ms(slide), ms(offset)))


@pytest.mark.parametrize(
    "after",
    [
        lambda s: sliding(10, 2)(s).process(Show()),
        lambda s: sliding(10, 5, 1)(s).process(Show()),
        lambda s: sliding(20, 5)(s).process(Show()),
        lambda s: sliding(10, 5)(s).reduce(lambda one, other: one),
        lambda s: sliding(10, 5)(s).trigger(CountTrigger.of(2)).process(Show()),
        lambda s: s.window(TumblingEventTimeWindows.of(ms(10))).process(Show()),
    ],
)
def test_slices_are_not_restored_as_other_windows(after):
    with pytest.raises(UserFunctionError, match="another uid"):
        restored_as(lambda s: sliding(10, 5)(s).process(Show()), after)


def test_a_checkpoint_has_what_changed_and_no_more():
    """A record is written once, not with each of its windows, and a key's other slices are not written again."""
    events = [((str(key), slide), slide, None) for slide in range(20) for key in range(50)]
    events += [(("7", n), 19, None) for n in range(3)]
    stream = timed(environment(checkpoints=True), events)
    with in_slices(), tempfile.TemporaryDirectory() as directory:
        run = Run(graph_of(program(stream, "all records", 20, 1, 0, 0)), directory=directory)
        run.deploy()
        run.checkpoint(1, max_records=1000)
        (operator,) = window_operators(run)
        whole = operator.backend._heap.by_name["_window/slices"].whole()
        run.step(max_records=2)
        table = operator.backend._heap.by_name["_window/slices"]
        changed = table.some(table.take_changed())
        run.close()
    assert len(whole.keys) == 1000 and sum(len(contents) for contents, _ in whole.values) == 1000
    assert (changed.keys, changed.gone) == ([("7", (19, 20))], [])
    assert changed.values[0][0] == [("7", 19), ("7", 0), ("7", 1)]
