"""Every example of the reference that was seen on Flink, and the rules around it."""

import pytest

from tamias.common import Time
from tamias.datastream import OutputTag, ProcessFunction
from tamias.datastream.functions import (
    AggregateFunction,
    AllWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    WindowFunction,
)
from tamias.datastream.state import ValueStateDescriptor
from tamias.datastream.window import (
    ContinuousEventTimeTrigger,
    CountEvictor,
    CountTrigger,
    DeltaEvictor,
    DeltaTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindows,
    NeverTrigger,
    ProcessingTimeTrigger,
    PurgingTrigger,
    SlidingEventTimeWindows,
    TimeEvictor,
    TimeWindow,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from tamias.errors import UnsupportedOperationError, UserFunctionError
from tests.operators.windows.local_run import Run, collected, environment, graph_of, timed

LATE = OutputTag("late")


def ms(n):
    return Time.milliseconds(n)


class Show(ProcessWindowFunction):
    """The window and its records."""

    def process(self, key, context, elements):
        window = context.window()
        yield (window.start, window.end) if isinstance(window, TimeWindow) else repr(window), list(elements)


class Values(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield list(elements)


def ascending(*times):
    """Records that are their timestamps, each followed by the watermark of the highest so far."""
    highest = [max(times[: i + 1]) for i in range(len(times))]
    return [(t, t, w) for t, w in zip(times, highest, strict=True)]


def windows(events, assigner, function=None, **settings):
    windowed = timed(environment(), events).key_by(lambda v: 0).window(assigner)
    for name, value in settings.items():
        windowed = getattr(windowed, name)(value)
    return windowed.process(function or Show())


def in_any_order(*times):
    return [(t, t, None) for t in times]


def test_tumbling_windows_with_a_negative_offset():
    assigner = TumblingEventTimeWindows.of(ms(10), ms(-3))
    assert collected(windows(in_any_order(-4, -3, 6, 7), assigner)) == [
        ((-13, -3), [-4]),
        ((-3, 7), [-3, 6]),
        ((7, 17), [7]),
    ]


def test_sliding_windows_overlap():
    assert collected(windows(in_any_order(9), SlidingEventTimeWindows.of(ms(10), ms(4)))) == [
        ((0, 10), [9]),
        ((4, 14), [9]),
        ((8, 18), [9]),
    ]


def test_sliding_windows_with_gaps_let_records_vanish():
    stream = windows(in_any_order(9, 11, 13, 14), SlidingEventTimeWindows.of(ms(4), ms(10)), side_output_late_data=LATE)
    assert collected(stream) == [((10, 14), [11, 13])]
    stream = windows(in_any_order(9, 11, 13, 14), SlidingEventTimeWindows.of(ms(4), ms(10)), side_output_late_data=LATE)
    assert collected(stream.get_side_output(LATE)) == []


def test_a_trigger_replaces_the_default_one():
    assert collected(
        windows(in_any_order(1, 2, 3, 11), TumblingEventTimeWindows.of(ms(10)), trigger=CountTrigger.of(2))
    ) == [((0, 10), [1, 2])]


def test_a_continuous_trigger_fires_at_every_interval_and_at_the_end():
    trigger = ContinuousEventTimeTrigger.of(ms(3))
    assert collected(
        windows(ascending(1, 4, 8, 11), TumblingEventTimeWindows.of(ms(10)), Values(), trigger=trigger)
    ) == [
        [1, 4],
        [1, 4, 8],
        [1, 4, 8],
        [11],
        [11],
        [11],
        [11],
    ]


@pytest.mark.parametrize("size", [3, 4])
def test_tumbling_count_windows(size):
    stream = timed(environment(), in_any_order(*range(1, 8))).key_by(lambda v: 0).count_window(size)
    full = [list(range(i, i + size)) for i in range(1, 8, size) if i + size <= 8]
    assert collected(stream.process(Values())) == full


def test_sliding_count_windows_fire_when_full():
    stream = timed(environment(), in_any_order(*range(1, 8))).key_by(lambda v: 0).count_window(4, 2)
    assert collected(stream.process(Values())) == [[1, 2, 3, 4], [3, 4, 5, 6]]


@pytest.mark.parametrize(
    ("size", "slide", "last", "given"),
    [
        (4, 2, 7, [[1, 2], [1, 2, 3, 4], [3, 4, 5, 6]]),
        (2, 3, 8, [[2, 3], [5, 6]]),
    ],
)
def test_javas_sliding_count_windows_are_a_trigger_and_an_evictor(size, slide, last, given):
    events = in_any_order(*range(1, last + 1))
    stream = windows(
        events, GlobalWindows.create(), Values(), trigger=CountTrigger.of(slide), evictor=CountEvictor.of(size)
    )
    assert collected(stream) == given


def test_a_window_is_late_once_the_watermark_is_at_its_last_millisecond():
    tumbling = TumblingEventTimeWindows.of(ms(10))
    on_time = [(1, 1, 8), (2, 2, None)]
    late = [(1, 1, 9), (2, 2, None)]
    assert collected(windows(on_time, tumbling)) == [((0, 10), [1, 2])]
    assert collected(windows(late, tumbling)) == [((0, 10), [1])]


class TestLateness:
    events = ascending(3, 12, 5, 25, 6)

    def test_without(self):
        assert collected(windows(self.events, TumblingEventTimeWindows.of(ms(10)), Values())) == [[3], [12], [25]]

    def test_with(self):
        stream = windows(
            self.events, TumblingEventTimeWindows.of(ms(10)), Values(), allowed_lateness=5, side_output_late_data=LATE
        )
        assert collected(stream) == [[3], [3, 5], [12], [25]]

    def test_side_output(self):
        stream = windows(
            self.events, TumblingEventTimeWindows.of(ms(10)), Values(), allowed_lateness=5, side_output_late_data=LATE
        )
        assert collected(stream.get_side_output(LATE).process(Stamped())) == [(6, 6)]

    def test_side_output_of_the_tight_way(self):
        stream = windows(self.events, TumblingEventTimeWindows.of(ms(10)), Values(), side_output_late_data=LATE)
        assert collected(stream.get_side_output(LATE).process(Stamped())) == [(5, 5), (6, 6)]

    def test_purging(self):
        stream = windows(
            ascending(3, 12, 5),
            TumblingEventTimeWindows.of(ms(10)),
            Values(),
            allowed_lateness=5,
            trigger=PurgingTrigger.of(EventTimeTrigger.create()),
        )
        assert collected(stream) == [[3], [5], [12]]

    @pytest.mark.parametrize("lateness", [0, 1])
    def test_dropped_records_are_counted(self, lateness):
        stream = windows(self.events, TumblingEventTimeWindows.of(ms(10)), Values(), allowed_lateness=lateness)
        run = Run(graph_of(stream))
        run.deploy()
        run.step()
        counted = [v.values[""] for a in run.acks for k, v in a.metrics.items() if "numLateRecordsDropped" in k]
        run.close()
        assert counted == [2]

    @pytest.mark.parametrize("lateness", [-1, 1.5, True])
    def test_is_a_number_of_milliseconds(self, lateness):
        with pytest.raises(ValueError, match="allowed_lateness"):
            windows([], TumblingEventTimeWindows.of(ms(10)), allowed_lateness=lateness)


class Stamped(ProcessFunction):
    def process_element(self, value, ctx):
        yield value, ctx.timestamp()


class TestSessions:
    def test_that_touch_merge(self):
        assert collected(windows(in_any_order(0, 10, 25), EventTimeSessionWindows.with_gap(ms(10)))) == [
            ((0, 20), [0, 10]),
            ((25, 35), [25]),
        ]

    def test_a_record_brings_two_together(self):
        assert collected(windows(in_any_order(0, 20, 10), EventTimeSessionWindows.with_gap(ms(10)))) == [
            ((0, 30), [0, 20, 10])
        ]

    def test_late_records_merge_into_live_sessions(self):
        assert collected(
            windows(ascending(0, 20, 4), EventTimeSessionWindows.with_gap(ms(5)), allowed_lateness=100)
        ) == [
            ((0, 5), [0]),
            ((0, 9), [0, 4]),
            ((20, 25), [20]),
        ]

    def test_counts_of_merged_sessions_add_up(self):
        sessions = EventTimeSessionWindows.with_gap(ms(10))
        assert collected(windows(in_any_order(0, 5, 8), sessions, Values(), trigger=CountTrigger.of(2))) == [[0, 5]]

    def test_a_dynamic_gap(self):
        sessions = EventTimeSessionWindows.with_dynamic_gap(lambda v: 20 if v == 0 else 2)
        assert collected(windows(in_any_order(0, 5, 20, 24), sessions)) == [((0, 22), [0, 5, 20]), ((24, 26), [24])]

    def test_a_gap_must_be_positive(self):
        with pytest.raises(UserFunctionError, match="positive"):
            collected(windows(in_any_order(0), EventTimeSessionWindows.with_dynamic_gap(lambda v: 0)))

    def test_a_trigger_must_be_able_to_merge(self):
        with pytest.raises(UnsupportedOperationError, match="merge"):
            windows([], EventTimeSessionWindows.with_gap(ms(1)), trigger=DeltaTrigger.of(1, lambda a, b: 0))

    def test_fold_is_refused(self):
        stream = timed(environment(), []).key_by(lambda v: v).window(EventTimeSessionWindows.with_gap(ms(1)))
        with pytest.raises(UnsupportedOperationError, match="fold"):
            stream.fold(0, lambda a, v: a)

    @pytest.mark.parametrize("lateness", [0, 1])
    def test_have_no_state_of_the_window(self, lateness):
        class Asks(ProcessWindowFunction):
            def process(self, key, context, elements):
                context.window_state()

        stream = windows(in_any_order(1), EventTimeSessionWindows.with_gap(ms(1)), Asks(), allowed_lateness=lateness)
        with pytest.raises(UserFunctionError, match="global_state"):
            collected(stream)


class TestEvictors:
    def evicted(self, evictor):
        return collected(
            windows(in_any_order(1, 4, 5, 7, 8), TumblingEventTimeWindows.of(ms(10)), Values(), evictor=evictor)
        )

    def test_by_time(self):
        assert self.evicted(TimeEvictor.of(ms(3))) == [[7, 8]]

    def test_by_count(self):
        assert self.evicted(CountEvictor.of(2)) == [[7, 8]]

    def test_by_delta(self):
        assert self.evicted(DeltaEvictor.of(3, lambda old, new: new - old)) == [[7, 8]]

    def test_afterwards(self):
        stream = windows(
            in_any_order(*range(1, 7)),
            GlobalWindows.create(),
            Values(),
            trigger=CountTrigger.of(2),
            evictor=CountEvictor.of(3, True),
        )
        assert collected(stream) == [[1, 2], [1, 2, 3, 4], [2, 3, 4, 5, 6]]

    def test_that_leave_nothing_still_call_the_function(self):
        assert self.evicted(CountEvictor.of(0)) == [[]]

    def test_apply_to_incremental_functions(self):
        stream = timed(environment(), in_any_order(1, 4, 5, 7, 8)).key_by(lambda v: 0)
        tumbling = stream.window(TumblingEventTimeWindows.of(ms(10))).evictor(CountEvictor.of(2))
        assert collected(tumbling.reduce(lambda a, b: a + b)) == [15]


def test_a_global_window_never_fires_by_itself():
    assert collected(windows(in_any_order(1), GlobalWindows.create())) == []
    assert collected(windows(in_any_order(1), GlobalWindows.create(), trigger=NeverTrigger())) == []


def test_a_global_window_may_fire_at_the_end_of_the_input():
    assert collected(windows(in_any_order(1, 2), GlobalWindows.create_with_end_of_stream_trigger(), Values())) == [
        [1, 2]
    ]


def test_a_delta_trigger_fires_when_records_drift_apart():
    trigger = DeltaTrigger.of(3, lambda old, new: new - old)
    stream = windows(in_any_order(1, 3, 5, 6, 9, 10), GlobalWindows.create(), Values(), trigger=trigger)
    assert collected(stream) == [[1, 3, 5], [1, 3, 5, 6, 9]]


@pytest.mark.parametrize("lateness", [0, 7])
def test_a_record_without_a_timestamp_is_refused(lateness):
    stream = environment().from_collection([1]).key_by(lambda v: v)
    with pytest.raises(UserFunctionError, match="assign_timestamps_and_watermarks"):
        collected(stream.window(TumblingEventTimeWindows.of(ms(1))).allowed_lateness(lateness).process(Show()))


# ------------------------------------------------------------------------------------------- functions


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
                left = {name: table.whole().keys for name, table in operator.backend._heap.by_name.items()}
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
    assert run.step() == []  # the end of the input drops what is pending
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


def test_results_have_the_time_of_what_made_the_window_fire():
    """As in PyFlink; for the default trigger that is the window's last instant, but for late records."""
    counted = timed(environment(), PAIRS).key_by(lambda v: 0).count_window(2).reduce(lambda x, y: x).process(Stamped())
    assert [time for _, time in collected(counted)] == [2, 12]
    for assigner, end in ((TumblingEventTimeWindows.of(ms(10)), 9), (EventTimeSessionWindows.with_gap(ms(4)), 6)):
        late = timed(environment(), ascending(3, 12, 5)).key_by(lambda v: 0).window(assigner).allowed_lateness(9)
        assert [time for _, time in collected(late.reduce(lambda x, y: x + y).process(Stamped()))][:2] == [end, 5]


# ------------------------------------------------------------------------------------------- changed between runs


def restored_as(before, after, events=None, max_records=2):
    """Take a checkpoint of one program and start another one from it."""
    import tempfile

    from tamias.checkpoint.restore_plan import plan_restore

    def job(windowed, directory):
        stream = timed(environment(checkpoints=True), events or in_any_order(1, 2, 3)).key_by(lambda v: 0)
        return Run(graph_of(windowed(stream).process(Values()).uid("windows")), directory=directory)

    with tempfile.TemporaryDirectory() as directory:
        old, new = job(before, directory), job(after, directory)
        old.deploy()
        old.checkpoint(1, max_records=max_records)
        new.attempt = 1
        new.deploy(plan_restore(new.graph, old.metadata, directory, allow_non_restored_state=False))
        new.step()
        old.close()
        new.close()
        return new.records


def test_lateness_may_change_between_a_savepoint_and_a_restore():
    def windowed(lateness):
        return lambda s: s.window(TumblingEventTimeWindows.of(ms(10))).allowed_lateness(lateness)

    assert restored_as(windowed(0), windowed(5)) == [[1, 2, 3]]
    assert restored_as(windowed(5), windowed(0)) == [[1, 2, 3]]


@pytest.mark.parametrize(
    ("assigner", "fires"),
    [
        (TumblingEventTimeWindows.of(ms(10)), [[1, 2]]),
        (SlidingEventTimeWindows.of(ms(10), ms(2), ms(1)), [[1, 2], [1, 2], [1, 2], [1, 2], [1, 2]]),
        (EventTimeSessionWindows.with_gap(ms(5)), [[1, 2]]),
    ],
)
def test_a_window_that_was_kept_for_late_records_gets_them_though_none_are_allowed_any_more(assigner, fires):
    """Time starts anew after a restore: what came late before is in time, and its window fires once more."""
    before, after = (lambda s, late=late: s.window(assigner).allowed_lateness(late) for late in (50, 0))
    assert restored_as(before, after, [(1, 1, 30), (2, 2, None)], max_records=1) == fires


@pytest.mark.parametrize(
    "after",
    [
        lambda s: s.window(TumblingEventTimeWindows.of(ms(10))).trigger(CountTrigger.of(2)),
        lambda s: s.window(EventTimeSessionWindows.with_gap(ms(10))),
        lambda s: s.window(TumblingEventTimeWindows.of(ms(20))),
    ],
)
def test_windows_that_are_kept_in_another_form_are_refused(after):
    with pytest.raises(UserFunctionError, match="another uid"):
        restored_as(lambda s: s.window(TumblingEventTimeWindows.of(ms(10))), after)
