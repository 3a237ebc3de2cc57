"""The arithmetic of windows against a list of all starts and ends."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from ekorn.datastream.window import TimeWindow
from ekorn.functions.windows.window_arithmetic import TimeSpan, WindowGrid, aligned_start, window_starts

grids = st.tuples(st.integers(1, 40), st.integers(1, 12)).flatmap(
    lambda shape: st.tuples(st.just(shape[0]), st.just(shape[1]), st.integers(1 - shape[1], shape[1] - 1))
)
times = st.integers(-100, 100)


def all_starts(slide, offset):
    return [offset + n * slide for n in range(-300, 300)]


@given(grids, times)
def test_a_time_is_in_the_windows_that_start_up_to_it_and_end_after_it(shape, time):
    size, slide, offset = shape
    starts = [start for start in reversed(all_starts(slide, offset)) if start <= time < start + size]
    assert list(window_starts(time, size, slide, offset)) == starts
    assert WindowGrid(*shape).window_ends(time) == [start + size for start in starts]


@given(grids.filter(lambda shape: shape[1] <= shape[0]), times)
def test_slices_lie_between_the_starts_and_ends_of_windows(shape, time):
    size, slide, offset = shape
    grid = WindowGrid(*shape)
    marks = sorted({start + add for start in all_starts(slide, offset) for add in (0, size)})
    start, end = next((a, b) for a, b in itertools.pairwise(marks) if a <= time < b)
    assert (grid.slice_start(time), grid.slice_end(start)) == (start, end)
    assert grid.is_slice(TimeSpan(start, end)) and not grid.is_slice(TimeSpan(start, end + 1))
    assert grid.window_ends(start) == grid.window_ends(time)
    for window in grid.window_ends(start):
        starts = [mark for mark in marks if window - size <= mark < window]
        assert grid.window(window) == (starts[0], window)
        assert list(grid.slice_starts(window)) == starts
        assert list(grid.slices_ending_with(window)) == [s for s in starts if grid.window_ends(s)[0] == window]


@given(grids, times)
def test_a_gap_between_windows_is_a_slice_without_windows(shape, time):
    size, slide, _ = shape
    grid = WindowGrid(*shape)
    in_gap = not grid.window_ends(time)
    assert in_gap is (grid.window_ends(grid.slice_start(time)) == [])
    if size >= slide:
        assert not in_gap


@given(grids, times)
def test_generated_expressions_compute_the_same(shape, time):
    size, slide, offset = shape
    into_slide = eval(WindowGrid(*shape).slide_offset_expression("t"), {"t": time})
    assert time - into_slide == aligned_start(time, offset, slide)
    tumbling = WindowGrid(size, size, offset % size)
    assert [eval(tumbling.tumbling_end_expression("t"), {"t": time})] == tumbling.window_ends(time)


def test_windows_are_ordered_by_start_then_end():
    assert TimeWindow(100, 200) <= TimeWindow(100, 200)
    assert TimeWindow(100, 180) <= TimeWindow(100, 200) <= TimeWindow(150, 160)
    assert not TimeWindow(100, 200) <= TimeWindow(100, 180)
    assert not TimeWindow(150, 250) <= TimeWindow(100, 300)
