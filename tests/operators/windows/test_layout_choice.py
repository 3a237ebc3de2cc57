"""Checks which windows ask no trigger, and which layout stores them."""

from functools import partial

import pytest

from ekorn.common import Types
from ekorn.datastream.window import (
    CountEvictor,
    CountTrigger,
    CountTumblingWindowAssigner,
    DynamicEventTimeSessionWindows,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindows,
    ProcessingTimeSessionWindows,
    ProcessingTimeTrigger,
    PurgingTrigger,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    WindowStagger,
)
from ekorn.functions.windows.window_arithmetic import SessionGap, WindowGrid
from ekorn.graph.specs import ListContents, ReduceContents, WindowSpec
from ekorn.operators.windows.layout_choice import default_arithmetic, layout_for
from ekorn.operators.windows.pane_layout import PaneLayout
from ekorn.operators.windows.session_layout import SessionLayout
from ekorn.operators.windows.slice_layout import SliceLayout


def spec(assigner, trigger=None, evictor=None, contents=None):
    return WindowSpec(
        assigner, trigger or assigner.get_default_trigger(None), contents or ListContents(), evictor=evictor
    )


def shortest(record):
    return 1


class OwnTumbling(TumblingEventTimeWindows):
    """A subclass may assign other windows."""


class OwnSessions(EventTimeSessionWindows):
    """A subclass may assign other windows."""


class OwnTrigger(EventTimeTrigger):
    """A subclass may fire at other times."""


@pytest.mark.parametrize(
    ("assigner", "arithmetic"),
    [
        (TumblingEventTimeWindows(10, 3), WindowGrid(10, 10, 3)),
        (TumblingProcessingTimeWindows(10, -3), WindowGrid(10, 10, -3)),
        (SlidingEventTimeWindows(10, 4, 1), WindowGrid(10, 4, 1)),
        (SlidingProcessingTimeWindows(4, 10, 0), WindowGrid(4, 10, 0)),
    ],
)
def test_tumbling_and_sliding_windows_with_their_default_trigger_are_on_a_grid(assigner, arithmetic):
    assert default_arithmetic(spec(assigner)) == arithmetic


@pytest.mark.parametrize(
    ("assigner", "gap_ms", "fixed_ms"),
    [
        (EventTimeSessionWindows(5), 5, 5),
        (ProcessingTimeSessionWindows(5), 5, 5),
        (DynamicEventTimeSessionWindows(shortest), 1, None),
    ],
)
def test_sessions_with_their_default_trigger_have_a_gap(assigner, gap_ms, fixed_ms):
    gap = default_arithmetic(spec(assigner))
    assert isinstance(gap, SessionGap)
    assert (gap.after("a record"), gap.fixed_ms) == (gap_ms, fixed_ms)


@pytest.mark.parametrize(
    "asked",
    [
        spec(TumblingEventTimeWindows(10, 0), CountTrigger(2)),
        spec(TumblingEventTimeWindows(10, 0), PurgingTrigger(EventTimeTrigger())),
        spec(TumblingEventTimeWindows(10, 0), OwnTrigger()),
        spec(TumblingEventTimeWindows(10, 0), ProcessingTimeTrigger()),
        spec(TumblingProcessingTimeWindows(10, 0), EventTimeTrigger()),
        spec(TumblingEventTimeWindows(10, 0), evictor=CountEvictor(2)),
        spec(TumblingEventTimeWindows(10, 0, WindowStagger.RANDOM)),
        spec(OwnTumbling(10, 0)),
        spec(OwnSessions(5)),
        spec(GlobalWindows.create()),
        spec(CountTumblingWindowAssigner(3)),
    ],
)
def test_all_other_windows_ask_their_trigger(asked):
    assert default_arithmetic(asked) is None


@pytest.mark.parametrize(
    ("assigner", "contents", "layout"),
    [
        (TumblingEventTimeWindows(10, 0), ListContents(), PaneLayout),
        (SlidingEventTimeWindows(10, 1, 0), ListContents(), SliceLayout),
        (SlidingEventTimeWindows(10, 5, 0), ListContents(), PaneLayout),
        (SlidingEventTimeWindows(10, 1, 0), ReduceContents(max), PaneLayout),
        (EventTimeSessionWindows(5), ListContents(), SessionLayout),
    ],
)
def test_a_layout_stores_windows_with_their_default_trigger(assigner, contents, layout):
    asked = spec(assigner, contents=contents)
    make_layout = layout_for(asked, default_arithmetic(asked), Types.LONG())  # type: ignore[arg-type]
    assert isinstance(make_layout, partial) and make_layout.func is layout
