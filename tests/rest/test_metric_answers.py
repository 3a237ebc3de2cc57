"""Metrics as they are answered: names and values, combined over subtasks and jobs, and over time."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

from ekorn.driver.statistics.vertex_history import MetricPart
from ekorn.functions.results.job_status import JobStatus
from ekorn.rest import metric_answers
from ekorn.rest.metric_answers import _chosen, _evenly, _shown, _skew
from ekorn.rest.summaries import summary
from ekorn.web.http_messages import HttpError
from tests.rest.fakes import asked, job, vertex


def test_metrics_are_named_or_those_that_are_wanted_told():
    values = {"a": 1, "b": None, "c": True, "op,1.x": 2.5}
    assert metric_answers.answer(values, asked()) == [{"id": name} for name in values]
    assert metric_answers.answer(values, asked(get=["c,b,z", "op,1.x", ""])) == [
        {"id": "c", "value": "true"},
        {"id": "b", "value": "n/a"},
        {"id": "op,1.x", "value": "2.5"},
    ]


@pytest.mark.parametrize(
    ("values", "skew"),
    [([5.0], 0.0), ([0.0, 0.0], 0.0), ([1.0, 3.0], 50.0), ([-1.0, -3.0], 50.0), ([0.0, 0.0, 0.0, 8.0], 100.0)],
)
def test_skew_is_the_average_deviation_in_percent_and_a_hundred_at_most(values, skew):
    assert _skew(values) == skew


PARTS: list[dict[str, Any]] = [{"a": 1, "b": True, "c": 3}, {"a": 4, "b": "x", "d": math.nan}]


def test_numbers_are_combined_and_what_is_no_number_is_left_out():
    request = asked(get="a,b,c,d,z", agg="min,max,sum,avg,skew")
    assert metric_answers.aggregated(PARTS, request) == [
        {"id": "a", "min": 1.0, "max": 4.0, "sum": 5.0, "avg": 2.5, "skew": 60.0},
        {"id": "c", "min": 3.0, "max": 3.0, "sum": 3.0, "avg": 3.0, "skew": 0.0},
    ]
    assert metric_answers.aggregated(PARTS, asked()) == [{"id": name} for name in "abcd"]
    (found,) = metric_answers.aggregated([{"a": 1}, {"a": 1}, {"a": 2}], asked(get="a", agg="avg"))
    assert found == {"id": "a", "avg": 1.333333}


def test_all_aggregations_are_told_unless_some_are_asked_for():
    (found,) = metric_answers.aggregated(PARTS, asked(get="a"))
    assert set(found) >= {"id", "min", "max", "sum", "avg", "skew"}


def test_an_unknown_aggregation_is_named_and_cut():
    with pytest.raises(HttpError, match=f"unknown aggregation '{'x' * 40}': choose from min, ") as refused:
        metric_answers.aggregated(PARTS, asked(get="a", agg="x" * 50))
    assert refused.value.status == 400


@pytest.mark.parametrize(
    ("given", "chosen"),
    [
        (None, [0, 1, 2, 3]),
        ([], []),
        (["1"], [1]),
        (["3", "4"], [3]),
        (["2-9", "0"], [0, 2, 3]),
        (["1-2", "2-3"], [1, 2, 3]),
        (["3-1"], []),
        (["0-1000000000000"], [0, 1, 2, 3]),
    ],
)
def test_a_list_names_subtasks_that_there_are(given, chosen):
    assert _chosen(given, 4) == chosen


@pytest.mark.parametrize("given", ["x", "-1", "1-", "1-x"])
def test_a_wrong_list_of_subtasks_is_refused(given):
    with pytest.raises(HttpError, match="a subtask is "):
        _chosen([given], 4)


@pytest.mark.parametrize(
    ("count", "most", "points"),
    [(0, 3, []), (3, None, [0, 1, 2]), (3, 3, [0, 1, 2]), (4, 3, [0, 1, 3]), (10, 2, [4, 9]), (7, 1, [6])],
)
def test_points_are_chosen_evenly_with_the_last_among_them(count, most, points):
    assert list(_evenly(count, most)) == points


def test_numbers_are_as_short_as_json_can_have_them():
    found = [_shown(value) for value in (2.0, 2.5, 1.23456789, math.nan, -3.0)]
    assert found == [2, 2.5, 1.234568, None, -3]
    assert isinstance(found[0], int)


class Subtasks:
    """The metrics of subtasks."""

    def of_subtask(self, subtask: Any) -> dict[str, Any]:
        return {"n": subtask.subtask * 10 + subtask.vertex}

    def totals(self, subtask: Any) -> Any:
        return SimpleNamespace(watermark=subtask.subtask - 5)


def test_the_metrics_of_a_vertex_are_those_of_its_subtasks():
    of = vertex(3, 2)
    found = job(of, metrics=Subtasks())
    assert metric_answers.vertex_metrics(found, of) == {"0.n": 3, "1.n": 13}
    assert metric_answers.watermarks(found, of) == [
        {"id": "0.currentInputWatermark", "value": "-5"},
        {"id": "1.currentInputWatermark", "value": "-4"},
    ]
    request = asked(get="n", agg="sum")
    assert metric_answers.over_subtasks(found, of, request) == [{"id": "n", "sum": 16.0}]
    request = asked(get="n", agg="sum", subtasks="1")
    assert metric_answers.over_subtasks(found, of, request) == [{"id": "n", "sum": 13.0}]


def change(status: JobStatus, at_ms: int) -> Any:
    return SimpleNamespace(status=status, at_ms=at_ms)


def record(**more: Any) -> Any:
    given = {"ended_ms": 700, "triggered_ms": 500, "written_bytes": 5, "state_bytes": 9, "checkpoint_id": 4}
    return SimpleNamespace(**{**given, "path": "/chk-4", "in_flight_bytes": 2, **more})


def counted(last: Any = None, restored: Any = None) -> Any:
    return SimpleNamespace(completed=3, failed=2, in_progress=1, last_completed=last, last_restored=restored)


def metrics_of(status: JobStatus, *, ended_ms: int | None = None, checkpoints: Any = None) -> dict[str, Any]:
    line = [
        change(JobStatus.CREATED, 1_000),
        change(JobStatus.RUNNING, 2_000),
        change(JobStatus.RESTARTING, 4_000),
        change(JobStatus.RUNNING, 4_500),
        change(status, 9_000),
    ]
    found = job(status=status, time_line=line, ended_ms=ended_ms, checkpoints=checkpoints or counted())
    found.view.progress = lambda: SimpleNamespace(restarts=1)
    return metric_answers.job_metrics(found)


def test_the_times_of_a_job_are_those_in_each_status():
    found = metrics_of(JobStatus.RUNNING)
    assert (found["uptime"], found["downtime"]) == (1_000, 0)
    assert (found["runningTime"], found["restartingTime"], found["failingTime"]) == (7_500, 500, 0)
    assert found["runningTimeTotal"] == 7_500 and found["numRestarts"] == found["fullRestarts"] == 1
    found = metrics_of(JobStatus.RESTARTING)
    assert (found["uptime"], found["downtime"], found["restartingTime"]) == (0, 1_000, 1_500)
    found = metrics_of(JobStatus.CANCELLING, ended_ms=9_300)
    assert (found["uptime"], found["downtime"], found["cancellingTime"]) == (0, 0, 300)


def test_the_checkpoints_of_a_job_are_counted_and_the_last_is_told():
    found = metrics_of(JobStatus.RUNNING)
    assert [found[f"numberOf{kind}Checkpoints"] for kind in ("Completed", "Failed", "InProgress")] == [3, 2, 1]
    assert found["totalNumberOfCheckpoints"] == 6
    kinds = ("Duration", "Size", "FullSize", "RestoreTimestamp")
    assert [found[f"lastCheckpoint{kind}"] for kind in kinds] == [-1, -1, -1, -1]
    assert (found["lastCompletedCheckpointId"], found["lastCheckpointExternalPath"]) == (-1, "n/a")
    assert (found["lastCheckpointPersistedData"], found["lastCheckpointProcessedData"]) == (0, 0)
    restored = SimpleNamespace(restored_ms=77)
    found = metrics_of(JobStatus.RUNNING, checkpoints=counted(record(), restored))
    assert [found[f"lastCheckpoint{kind}"] for kind in kinds] == [200, 5, 9, 77]
    assert (found["lastCompletedCheckpointId"], found["lastCheckpointExternalPath"]) == (4, "/chk-4")
    assert found["lastCheckpointPersistedData"] == 2
    assert metrics_of(JobStatus.RUNNING, checkpoints=counted(record(ended_ms=None)))["lastCheckpointDuration"] == -1


def test_metrics_are_combined_over_the_jobs_that_are_asked_for():
    made = [
        job(job_id=name, time_line=[change(JobStatus.RUNNING, 1_000)], ended_ms=None, checkpoints=counted())
        for name in ("a", "b")
    ]
    for each, restarts in zip(made, (1, 4), strict=True):
        each.view.progress = lambda restarts=restarts: SimpleNamespace(restarts=restarts)
    (found,) = metric_answers.over_jobs(made, asked(get="numRestarts", agg="sum"))
    assert found == {"id": "numRestarts", "sum": 5.0}
    (found,) = metric_answers.over_jobs(made, asked(get="numRestarts", agg="sum", jobs="b,c"))
    assert found == {"id": "numRestarts", "sum": 4.0}


def test_the_latencies_of_a_job_have_the_names_of_their_paths():
    class Path:
        def variables(self) -> dict[str, str]:
            return {"source_id": "s", "operator_id": "o"}

    histogram = SimpleNamespace(values=lambda: {"mean": 3, "p99": 7})
    found = job(latencies=SimpleNamespace(by_path={Path(): histogram}))
    assert metric_answers.job_latencies(found) == {
        "latency.source_id.s.operator_id.o.latency_mean": 3,
        "latency.source_id.s.operator_id.o.latency_p99": 7,
    }


class History:
    """The metrics a and b of vertex 3: combined, and of two subtasks."""

    def __init__(self) -> None:
        self.kept = [MetricPart(3, name, part) for name in ("a", "b") for part in ("min", "max", 0, 1)]  # type: ignore[arg-type]
        self.asked: list[Any] = []

    def columns(self, of: int) -> list[MetricPart]:
        return [column for column in self.kept if column.vertex == of]

    def series(self, wanted: list[MetricPart], since_ms: int) -> Any:
        self.asked.append((wanted, since_ms))
        values = {column: [float(n) for n in range(4)] for column in wanted}
        return SimpleNamespace(times_ms=[10, 20, 30, 40], values=values)


def history(**query: Any) -> tuple[dict[str, Any], Any]:
    kept, of = History(), vertex(3, 2)
    found = metric_answers.vertex_history(job(of, vertex_history=kept), of, asked(**query))
    return found, kept.asked[0][1]


def test_a_vertex_is_shown_over_time_combined_or_by_its_subtasks():
    found, since_ms = history()
    assert since_ms == -1 and found["timestamps"] == [10, 20, 30, 40]
    assert [(each["id"], each["agg"]) for each in found["series"]] == [
        ("a", "min"),
        ("a", "max"),
        ("b", "min"),
        ("b", "max"),
    ]
    assert found["series"][0]["values"] == [0, 1, 2, 3]
    found, _ = history(subtasks="1", get="b")
    assert found["series"] == [{"id": "1.b", "values": [0, 1, 2, 3]}]
    found, _ = history(subtasks="0", get="a", agg="max")
    assert [each["id"] for each in found["series"]] == ["a", "0.a"]
    found, since_ms = history(get="a,z", agg="min", since="20", points="2")
    assert since_ms == 20
    assert found == {"timestamps": [20, 40], "series": [{"id": "a", "agg": "min", "values": [1, 3]}]}
    with pytest.raises(HttpError, match="'points' is '0'"):
        history(points="0")


def test_a_summary_has_the_percentiles_of_flink():
    found = summary(range(1, 1_001))
    assert found == {
        "min": 1,
        "max": 1_000,
        "avg": 500,
        "p50": 501.0,
        "p90": 901.0,
        "p95": 951.0,
        "p99": 991.0,
        "p999": 1_000.0,
    }
    assert summary([3])["p999"] == 3.0
    empty = summary([])
    assert (empty["min"], empty["max"], empty["avg"], empty["p999"]) == (0, 0, 0, "NaN")
