"""Sliding windows in slices give the same results, record by record, as windows that are kept one by one."""

import tempfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ekorn.common import Types
from ekorn.datastream.functions import ProcessWindowFunction, ReduceFunction
from ekorn.datastream.state import ValueStateDescriptor
from ekorn.datastream.window import (
    CountTrigger,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
)
from ekorn.functions.rolling_aggregates import MaxFunction
from ekorn.operators.windows.pane_layout import PaneLayout
from ekorn.operators.windows.slice_layout import SliceLayout
from tests.examples_by_profile import examples
from tests.operators.windows.brute_force import evaluate
from tests.operators.windows.local_run import Run, collected, environment, graph_of, timed
from tests.operators.windows.sliced_programs import (
    CHOICES,
    FUNCTIONS,
    LATE,
    PAIR,
    SLOW_IS_FINE,
    Numbers,
    Show,
    ShowOne,
    Spoils,
    Total,
    events_of,
    functions,
    in_panes,
    in_slices,
    latenesses,
    ms,
    odd_streams,
    program,
    shown,
    streams,
    timed_values,
    window_operators,
    windows,
)


@settings(max_examples=examples(120), **SLOW_IS_FINE)
@given(streams, windows, latenesses, functions, st.integers(1, 12))
def test_windows_in_slices_give_what_the_reference_says(stream, window, lateness, function, epoch_records):
    events = events_of(stream)
    with in_slices():
        result = program(timed(environment(), timed_values(events)), function, window, lateness=lateness, late=LATE)
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


@settings(max_examples=examples(60), **SLOW_IS_FINE)
@given(st.lists(st.tuples(steps, st.booleans()), min_size=20, max_size=50), long_windows, latenesses, functions)
def test_windows_of_many_slices_follow_one_another(stream, window, lateness, function):
    """Consecutive windows of a key with records in most slices share partial aggregates."""
    now, events = 0, []
    for i, (step, marks) in enumerate(stream):
        now = max(now, now + step)
        at = now + step if step < 0 else now
        events.append(("a", ("a", i - i % 5), at, now - 2 if marks else None))
    with in_slices():
        records = collected(program(timed(environment(), timed_values(events)), function, window, lateness=lateness))
    wanted = evaluate(events, ("sliding", *window), ("event",), None, lateness)["a"]
    assert shown(records) == shown([("a", at, FUNCTIONS[function][1](values)) for at, values in wanted.fired])


@settings(max_examples=examples(60), **SLOW_IS_FINE)
@given(streams, windows, latenesses, functions)
def test_keys_come_in_the_same_order_too(stream, window, lateness, function):
    events = timed_values(events_of(stream))

    def run():
        return shown(collected(program(timed(environment(), events), function, window, lateness=lateness)))

    with in_slices():
        sliced = run()
    with in_panes():
        assert sliced == run()


@settings(max_examples=examples(120), **SLOW_IS_FINE)
@given(odd_streams, windows, latenesses, st.sampled_from(CHOICES), st.integers(1, 10))
def test_what_is_chosen_is_the_same_for_values_that_no_order_holds_for(stream, window, lateness, choose, epoch_records):
    """NaN is neither smaller nor larger than any value, True equals 1 and 1.0, and two sets may be incomparable."""
    events = [((key, value, i), time, after) for i, (key, value, time, after) in enumerate(stream)]

    def run():
        keyed = timed(environment(), events).key_by(lambda v: v[0])
        windowed = keyed.window(SlidingEventTimeWindows.of(ms(window[0]), ms(window[1]), ms(window[2])))
        result = windowed.allowed_lateness(lateness).reduce(choose, ShowOne())
        return shown(collected(result, max_records=epoch_records))

    with in_slices():
        sliced = run()
    with in_panes():
        assert sliced == run()


# ------------------------------------------------------------------------------------------- one by one


def run_of(events, function, size, slide, *, lateness=0, late=None):
    with in_slices():
        return collected(
            program(timed(environment(), events), function, (size, slide, 0), lateness=lateness, late=late)
        )


def test_a_late_record_is_in_order_of_arrival():
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
    """Clears the accumulator."""

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


def test_records_are_in_order_of_arrival_after_a_restore_too():
    events = [(("a", n), at, None) for n, at in enumerate((7, 2, 6, 1, 8))]
    with in_slices(), tempfile.TemporaryDirectory() as directory:
        stream = program(timed(environment(checkpoints=True), events), "all records", (10, 5, 0), lateness=0)
        run = Run(graph_of(stream), directory=directory)
        run.deploy()
        plan = run.checkpoint(1, max_records=3)
        run.attempt = 1
        run.deploy(plan)
        run.step()
        run.close()
    assert ("a", (0, 10), [("a", n) for n in range(5)]) in run.records


class Keeps(ProcessWindowFunction):
    """Counts the firings of each window and of the key, and keeps the windows that were cleared."""

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


def state_left(function, layout, lateness):
    """Return the output of a job, and its tables when all windows but the last one are over."""
    stream = timed(environment(checkpoints=True), KEPT).key_by(lambda v: v[0])
    windowed = stream.window(SlidingEventTimeWindows.of(ms(10), ms(5))).allowed_lateness(lateness)
    with layout():
        run = Run(graph_of(windowed.process(function)))
        run.deploy()
    run.step(max_records=len(KEPT) - 1)
    (operator,) = window_operators(run)
    entries = {n: table.whole() for n, table in operator.backend.heap.by_name.items()}
    left = {name: dict(zip(map(repr, e.keys), map(repr, e.values), strict=True)) for name, e in entries.items()}
    run.step()
    run.close()
    return run.records, {name: table for name, table in left.items() if table}, operator


@pytest.mark.parametrize("lateness", [0, 3, 100])
def test_functions_have_the_same_state_and_clear_the_same_windows(lateness):
    sliced, state, operator = state_left(Keeps(), in_slices, lateness)
    panes, expected, other = state_left(Keeps(), in_panes, lateness)
    assert type(operator.layout) is SliceLayout and type(other.layout) is PaneLayout
    assert sliced == panes
    for name in ("_window/slices", "_window/panes"):
        state.pop(name, None), expected.pop(name, None)
    assert state == expected


def test_windows_that_fired_before_a_restore_are_over_in_time_too():
    """The state of a window is dropped with the window, although the window does not fire any more."""

    def left(layout):
        def job(directory):
            stream = timed(environment(checkpoints=True), KEPT).key_by(lambda v: v[0])
            windowed = stream.window(SlidingEventTimeWindows.of(ms(10), ms(5))).allowed_lateness(20)
            return Run(graph_of(windowed.process(Keeps()).uid("windows")), directory=directory)

        with layout(), tempfile.TemporaryDirectory() as directory:
            old, new = job(directory), job(directory)
            old.deploy()
            plan = old.checkpoint(1, max_records=4)
            new.attempt = 1
            new.deploy(plan)
            new.step(max_records=2)
            (operator,) = window_operators(new)
            tables = {name: operator.backend.heap.by_name[name].whole() for name in ("window/n", "cleared")}
            old.close()
            new.close()
            return {
                name: sorted(zip(map(repr, t.keys), map(repr, t.values), strict=True)) for name, t in tables.items()
            }

    assert left(in_slices) == left(in_panes)


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
    for now, count in ((1, 2), (6, 1), (10, 1), (3, 1), (11, 0), (16, 0), (21, 0)):  # the clock is set back once
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
        records = collected(program(timed(environment(batch=True), events), "all records", (10, 5, 0), lateness=0))
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
    """A subclass may choose another record."""


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
