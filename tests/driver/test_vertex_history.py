"""The metrics of vertices over the last day: combined and by subtask, of a fixed size, with holes where nothing was."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest

from ekorn.driver.statistics.vertex_history import MetricPart, VertexHistory, numbers_of
from ekorn.graph.job_graph import VertexId

VERTEX = VertexId(3)


def filled(points: int, subtasks: int = 2, history: VertexHistory | None = None, first: int = 1) -> VertexHistory:
    """Return a history of a point a second: subtask 0 counts seconds, and each later subtask ten times as many."""
    history = history or VertexHistory()
    for second in range(first, first + points):
        numbers = [{"count": float(second * 10**index), "PerSecond": float(second)} for index in range(subtasks)]
        history.add(second * 1000, {VERTEX: numbers})
    return history


def of(part: str | int, name: str = "count") -> MetricPart:
    return MetricPart(VERTEX, name, part)


@pytest.mark.parametrize(
    ("part", "value"), [("sum", 33.0), ("avg", 16.5), ("min", 3.0), ("max", 30.0), (0, 3.0), (1, 30.0)]
)
def test_a_metric_is_remembered_combined_and_by_subtask(part: str | int, value: float) -> None:
    times, values = filled(3).series([of(part)])
    assert times == [1000, 2000, 3000]
    assert values[of(part)][-1] == value


def test_the_last_minutes_are_fine_and_what_was_before_is_coarser_without_a_gap() -> None:
    times, values = filled(5000).series([of("max"), of("max", "PerSecond"), of(0)])
    assert times == sorted(set(times)) and times[-300:] == list(range(4701_000, 5000_001, 1000))
    steps = {late - early for early, late in pairwise(times)}
    assert {1000, 10_000, 60_000} <= steps and max(steps) == 60_000
    assert values[of("max")] == [at / 100 for at in times], "the latest value of each stretch"
    assert values[of("max", "PerSecond")][0] == pytest.approx(30.5), "the mean of the first minute"
    assert math.isnan(values[of(0)][0]), "a subtask is remembered for an hour"
    hour = sum(at > 1_400_000 for at in times)
    assert values[of(0)][-hour:] == [at / 1000 for at in times[-hour:]]


def test_only_what_is_newer_than_a_moment_is_returned() -> None:
    assert filled(20).series([of("sum")], 18_000).times_ms == [19_000, 20_000]
    assert filled(20).series([of("sum")], 20_000).times_ms == []


def test_a_metric_that_was_not_reported_is_a_hole_and_no_zero() -> None:
    history = filled(2)
    history.add(3000, {VERTEX: [{"frauds": 1.0}]})
    filled(1, history=history, first=4)
    times, values = history.series([of("sum"), of("sum", "frauds"), of("sum", "never")])
    assert times == [1000, 2000, 3000, 4000]
    assert [math.isnan(each) for each in values[of("sum")]] == [False, False, True, False]
    assert [math.isnan(each) for each in values[of("sum", "frauds")]] == [True, True, False, True]
    assert all(map(math.isnan, values[of("sum", "never")]))


def test_many_metrics_shorten_the_history_and_what_is_gone_leaves_it() -> None:
    history = filled(100, subtasks=8, history=VertexHistory(most_values=3 * 24 * 50))
    kept = [*range(10, 51, 10), *range(51, 101)]
    assert history.series([of("sum")]).times_ms == [at * 1000 for at in kept], "24 columns of 50 values a second apart"
    assert of(7) in history.columns(VERTEX)
    filled(2000, subtasks=1, history=history, first=101)
    assert of(0) in history.columns(VERTEX) and of(7) not in history.columns(VERTEX)


def test_a_point_that_takes_long_is_taken_rarely() -> None:
    history = VertexHistory()
    assert history.is_due(5.0)
    history.rest(5.0, took_s=0.02)
    assert not history.is_due(8.9) and history.is_due(9.0), "half a percent of the time"
    history.rest(10.0, took_s=0.001)
    history.rest(20.0, took_s=9.0)
    assert history.is_due(20.2), "a single slow one is chance"
    history.rest(30.0, took_s=9.0)
    assert not history.is_due(1000.0)


def test_only_numbers_are_remembered() -> None:
    given = {"a": 1, "b": 2.5, "c": "text", "d": True, "e": None, "f": math.inf, "g": math.nan}
    assert numbers_of(given) == {"a": 1.0, "b": 2.5}
