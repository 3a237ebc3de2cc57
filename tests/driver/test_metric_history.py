"""The figures of the last hours: fine for the last minutes, coarser before, of a fixed size."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from ekorn.clock import ManualClock
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.driver.statistics.job_statistics import JobStatistics
from ekorn.driver.statistics.metric_history import Memory, MetricHistory
from ekorn.driver.statistics.vertex_history import MetricPart
from ekorn.functions.results.job_status import JobStatus
from ekorn.graph.job_graph import VertexId
from ekorn.operators.epoch import Ack
from ekorn.testing.drawn_job import drawn_job


def figures(**given: Any) -> dict[str, Any]:
    nothing = dict.fromkeys(("state_bytes", "checkpoint_ms", "checkpoint_bytes"))
    return {"busy": 0.0, "blocked": 0.0, "restarts": 0, "memory": Memory(1 << 20, None)} | nothing | given


def filled(seconds: int) -> MetricHistory:
    """Return the history of a job that reads 7 records in every second, and is busier every second."""
    history = MetricHistory(0.0)
    for second in range(1, seconds + 1):
        history.count(7, float(second))
        history.add(float(second), second * 1000, **figures(busy=second / seconds, checkpoint_ms=second))
    return history


def test_a_point_has_the_rate_and_the_longest_epoch_since_the_last_one() -> None:
    history = MetricHistory(10.0)
    history.count(30, 5.0)
    history.count(10, 3.0)
    assert not history.is_due(10.9) and history.is_due(11.0)
    history.add(12.0, 2000, **figures(state_bytes=9))
    history.add(13.0, 3000, **figures())
    first, second = history.points()
    assert (first.records_per_second, first.latency_ms, first.state_bytes) == (20.0, 5.0, 9)
    assert (second.records_per_second, second.latency_ms, second.state_bytes) == (0.0, 0.0, None)


def test_the_last_minutes_are_fine_and_what_was_before_is_coarser_without_a_gap() -> None:
    points = filled(5000).points()
    times = [each.at_ms for each in points]
    assert times == sorted(set(times)), "no moment is told twice"
    assert times[-300:] == list(range(4701_000, 5000_001, 1000))
    steps = {late - early for early, late in pairwise(times)}
    assert {1000, 10_000, 60_000} <= steps and max(steps) == 60_000
    assert {round(each.records_per_second, 6) for each in points} == {7.0}
    assert points[0].at_ms == 60_000 and (points[0].latency_ms, points[0].checkpoint_ms) == (60.0, 60)
    assert points[0].busy == 60 / 5000


def test_a_long_job_takes_no_more_room_than_a_day() -> None:
    assert len(filled(95_000).points()) <= 300 + 360 + 1440


def test_only_what_is_newer_than_a_moment_is_returned() -> None:
    history = filled(20)
    assert [each.at_ms for each in history.points(18_000)] == [19_000, 20_000]
    assert history.points(20_000) == []


def test_the_statistics_of_a_job_remember_a_point_a_second() -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    env.from_sequence(1, 9).key_by(lambda v: v).map(lambda v: v).print()
    graph, settings = drawn_job(env)
    clock = ManualClock(1_000_000)
    statistics = JobStatistics(graph, settings, clock)
    statistics.enter(JobStatus.RUNNING)
    for _ in range(5):
        clock.advance(400)
        acks = [Ack(0, 0, 1, records_in=100, busy_ms=200.0), Ack(1, 0, 1, records_in=100, busy_ms=400.0)]
        statistics.metrics.add(acks)
        statistics.epoch(acks, 30.0)
        statistics.restart()
        statistics.enter(JobStatus.RUNNING)
    (point,) = statistics.history.points()
    assert point.records_per_second == pytest.approx(250.0), "records of the source alone"
    assert point.busy == pytest.approx(1.0)
    assert (point.latency_ms, point.restarts) == (30.0, 2)
    assert point.memory.driver > 1 << 20 and point.memory.slots is None, "the subtasks run in this process"
    (read,) = statistics.vertex_history.series([MetricPart(VertexId(0), "numRecordsIn", "sum")]).values.values()
    assert read == [300.0]
