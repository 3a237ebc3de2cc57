"""The functions of windows, their state, the timestamps of their results, and both time domains."""

import pytest

from ekorn.datastream.functions import (
    AggregateFunction,
    AllWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    WindowFunction,
)
from ekorn.datastream.state import ValueStateDescriptor
from ekorn.datastream.window import (
    ContinuousEventTimeTrigger,
    CountTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    ProcessingTimeTrigger,
    PurgingTrigger,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from ekorn.state.heap.heap_backend import HeapStateBackend
from tests.operators.windows.local_run import Run, collected, environment, graph_of, timed
from tests.operators.windows.window_programs import Show, Stamped, Values, ascending, ms, windows


class Average(AggregateFunction):
    def create_accumulator(self):
        return 0, 0

    def add(self, value, accumulator):
        return accumulator[0] + value[1], accumulator[1] + 1

    def get_result(self, accumulator):
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a, acc_b):
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class Label(ProcessWindowFunction):
    def process(self, key, context, elements):
        (only,) = elements
        yield key, context.window().end, only


class Applied(WindowFunction):
    def apply(self, key, window, inputs):
        return [(key, window.start, sorted(inputs))]


PAIRS = [(("a", 1), 1, None), (("b", 5), 2, None), (("a", 3), 3, None), (("b", 2), 12, None)]


def tumbling(lateness=0, events=PAIRS):
    stream = timed(environment(), events).key_by(lambda v: v[0]).window(TumblingEventTimeWindows.of(ms(10)))
    return stream.allowed_lateness(lateness)


@pytest.mark.parametrize("lateness", [0, 3])
class TestFunctions:
    def test_reduce(self, lateness):
        assert collected(tumbling(lateness).reduce(lambda x, y: (x[0], x[1] + y[1]))) == [("a", 4), ("b", 5), ("b", 2)]

    def test_reduce_and_process(self, lateness):
        assert collected(tumbling(lateness).reduce(lambda x, y: (x[0], x[1] + y[1]), Label())) == [
            ("a", 10, ("a", 4)),
            ("b", 10, ("b", 5)),
            ("b", 20, ("b", 2)),
        ]

    def test_aggregate(self, lateness):
        assert collected(tumbling(lateness).aggregate(Average())) == [2.0, 5.0, 2.0]

    def test_aggregate_and_process(self, lateness):
        assert collected(tumbling(lateness).aggregate(Average(), Label())) == [
            ("a", 10, 2.0),
            ("b", 10, 5.0),
            ("b", 20, 2.0),
        ]

    def test_fold(self, lateness):
        assert collected(tumbling(lateness).fold("", lambda acc, v: acc + str(v[1]))) == ["13", "5", "2"]

    def test_apply(self, lateness):
        assert collected(tumbling(lateness).apply(Applied())) == [
            ("a", 0, [("a", 1), ("a", 3)]),
            ("b", 0, [("b", 5)]),
            ("b", 10, [("b", 2)]),
        ]

    def test_sum_and_its_kin(self, lateness):
        assert collected(tumbling(lateness).sum(1)) == [("a", 4), ("b", 5), ("b", 2)]
        assert collected(tumbling(lateness).max(1)) == [("a", 3), ("b", 5), ("b", 2)]
        assert collected(tumbling(lateness).min(1)) == [("a", 1), ("b", 5), ("b", 2)]
        assert collected(tumbling(lateness).max_by(1)) == [("a", 3), ("b", 5), ("b", 2)]
        assert collected(tumbling(lateness).min_by(1)) == [("a", 1), ("b", 5), ("b", 2)]

    def test_results_have_the_last_time_of_their_window(self, lateness):
        assert [t for _, t in collected(tumbling(lateness).sum(1).process(Stamped()))] == [9, 9, 19]

    def test_results_line_up_with_a_second_window(self, lateness):
        top = tumbling(lateness).sum(1).window_all(TumblingEventTimeWindows.of(ms(10)))
        assert collected(top.apply(Everything())) == [((0, 10), [("a", 4), ("b", 5)]), ((10, 20), [("b", 2)])]


class Everything(AllWindowFunction):
    def apply(self, window, inputs):
        yield (window.start, window.end), sorted(inputs)


class Top(ProcessAllWindowFunction):
    def process(self, context, elements):
        yield context.window().end, max(elements, key=lambda e: e[1])


def test_windows_over_a_whole_stream():
    stream = timed(environment(2), PAIRS).window_all(TumblingEventTimeWindows.of(ms(10)))
    assert collected(stream.process(Top())) == [(10, ("b", 5)), (20, ("b", 2))]


def test_a_count_window_over_a_whole_stream():
    assert collected(timed(environment(), PAIRS).count_window_all(2).reduce(lambda x, y: x[1] + y[1])) == [6, 5]


class Keeps(ProcessWindowFunction):
    """Counts the firings of a window, and of the key."""

    def process(self, key, context, elements):
        counts = []
        for store in (context.window_state(), context.global_state()):
            state = store.get_state(ValueStateDescriptor("n"))
            state.update((state.value() or 0) + 1)
            counts.append(state.value())
        yield *counts, len(list(elements))

    def clear(self, context):
        context.window_state().get_state(ValueStateDescriptor("n")).clear()


def test_state_of_the_window_and_of_the_key():
    events = ascending(3, 12, 5, 25, 6, 29)
    stream = windows(events, TumblingEventTimeWindows.of(ms(10)), Keeps(), allowed_lateness=5)
    assert collected(stream) == [(1, 1, 1), (2, 2, 2), (1, 3, 1), (1, 4, 2)]


def test_a_window_that_is_over_leaves_nothing_behind():
    events = [*ascending(3, 12, 5, 25, 6, 29, 60), (0, 100, None)]
    for assigner in (TumblingEventTimeWindows.of(ms(10)), EventTimeSessionWindows.with_gap(ms(4))):
        for lateness in (0, 5):
            for trigger in (EventTimeTrigger(), ContinuousEventTimeTrigger(2), PurgingTrigger.of(CountTrigger.of(2))):
                keeps = Values() if isinstance(assigner, EventTimeSessionWindows) else Keeps()
                stream = windows(events, assigner, keeps, allowed_lateness=lateness, trigger=trigger)
                run = Run(graph_of(stream))
                run.deploy()
                run.step(max_records=len(events) - 1)
                (operator,) = [
                    s.operators[0]
                    for h in run.engine.hosts
                    for s in h.subtasks.values()
                    if s.operators[0].backend is not None
                ]
                assert isinstance(operator.backend, HeapStateBackend)
                left = {name: table.whole().keys for name, table in operator.backend.heap.by_name.items()}
                run.close()
                assert {name for name, keys in left.items() if keys} <= {
                    "n",
                    "_window/panes",
                    "_window/sessions",
                    "_window/contents",
                    "_window/open",
                    "trigger/count",
                    "trigger/fire-time",
                    "_window/timers/event",
                }
                for name, keys in left.items():
                    if name not in ("n", "_window/sessions", "_window/open"):
                        windows_left = {k[1][1] if name.startswith("_window/timers") else k[1] for k in keys}
                        assert windows_left <= {(60, 70), (60, 64)}, (name, assigner, lateness, trigger)


# ------------------------------------------------------------------------------------------- processing time


def at_the_clock(assigner, *, trigger=None):
    stream = environment().from_collection(list(range(10))).key_by(lambda v: 0).window(assigner)
    if trigger is not None:
        stream = stream.trigger(trigger)
    run = Run(graph_of(stream.process(Show())))
    run.deploy()
    return run


@pytest.mark.parametrize("trigger", [None, PurgingTrigger.of(ProcessingTimeTrigger.create())])
def test_processing_time_windows_fire_when_the_clock_has_passed_them(trigger):
    run = at_the_clock(TumblingProcessingTimeWindows.of(ms(5000)), trigger=trigger)
    run.clock.set_ms(100)
    run.step(max_records=2)
    run.clock.set_ms(4999)
    assert run.step(max_records=1) == []
    assert [a.next_timer_ms for a in run.acks if a.next_timer_ms] == [5000]
    run.clock.set_ms(5000)
    assert run.step(max_records=0) == [((0, 5000), [0, 1, 2])]
    assert run.step() == []  # the end of the input drops pending windows
    run.close()


def test_in_batch_mode_windows_fire_key_by_key():
    env = environment(batch=True)
    events = [(("b", 1), 1, 50), (("a", 2), 12, 50), (("b", 3), 3, None), (("a", 4), 2, None)]
    stream = timed(env, events).key_by(lambda v: v[0]).window(TumblingEventTimeWindows.of(ms(10)))
    assert collected(stream.process(Show())) == [
        ((0, 10), [("a", 4)]),
        ((10, 20), [("a", 2)]),
        ((0, 10), [("b", 1), ("b", 3)]),
    ]


def test_results_have_the_timestamp_of_the_record_or_timer_that_made_the_window_fire():
    """As in PyFlink. With the default trigger that is the window's last instant, except for late records."""
    counted = timed(environment(), PAIRS).key_by(lambda v: 0).count_window(2).reduce(lambda x, y: x).process(Stamped())
    assert [time for _, time in collected(counted)] == [2, 12]
    for assigner, end in ((TumblingEventTimeWindows.of(ms(10)), 9), (EventTimeSessionWindows.with_gap(ms(4)), 6)):
        late = timed(environment(), ascending(3, 12, 5)).key_by(lambda v: 0).window(assigner).allowed_lateness(9)
        assert [time for _, time in collected(late.reduce(lambda x, y: x + y).process(Stamped()))][:2] == [end, 5]
