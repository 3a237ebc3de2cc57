"""Every example of the reference that was observed on Flink, and the rules around it."""

import pytest

from ekorn.datastream.functions import (
    ProcessWindowFunction,
)
from ekorn.datastream.window import (
    ContinuousEventTimeTrigger,
    CountEvictor,
    CountTrigger,
    DeltaEvictor,
    DeltaTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindows,
    NeverTrigger,
    PurgingTrigger,
    SlidingEventTimeWindows,
    TimeEvictor,
    TumblingEventTimeWindows,
)
from ekorn.errors import UnsupportedOperationError, UserFunctionError
from tests.operators.windows.local_run import Run, collected, environment, graph_of, timed
from tests.operators.windows.window_programs import LATE, Show, Stamped, Values, ascending, in_any_order, ms, windows


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

    def test_side_output_with_the_default_trigger(self):
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
