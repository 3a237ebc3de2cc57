"""The examples print and return the right results. Their jobs run on the local engine; tests/spark runs the demo."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ekorn.datastream import StreamExecutionEnvironment
from ekorn.testing.by_epoch import by_epoch
from ekorn.testing.local_run import on_local_engine
from ekorn.testing.scripted import run_scripted
from tests.example_modules import example


def test_clicks_become_visits_although_some_come_late() -> None:
    with on_local_engine():
        assert example("sessions").visits() == [
            ("ada", 0, 7, ["/", "/cart", "/nuts", "/pay"]),
            ("ada", 40, 44, ["/", "/nuts"]),
            ("bob", 1, 4, ["/", "/nuts"]),
            ("bob", 31, 33, ["/", "/cart"]),
            ("cyd", 9, 28, ["/", "/nuts", "/help"]),
            ("cyd", 45, 45, ["/"]),
        ]


def test_the_best_pages_of_a_minute_are_those_a_plain_count_finds() -> None:
    module = example("top_pages")
    counts: dict[int, dict[str, int]] = {}
    for number in range(module.VIEWS):
        page, time_ms = module.view(number)
        of_minute = counts.setdefault(time_ms // 60_000, {})
        of_minute[page] = of_minute.get(page, 0) + 1
    expected = [
        (minute, sorted(pages.items(), key=lambda p: (-p[1], p[0]))[: module.BEST]) for minute, pages in counts.items()
    ]
    with on_local_engine():
        assert module.best_pages() == expected


def test_sensors_are_reported_when_they_fall_silent_and_when_they_come_back() -> None:
    with on_local_engine():
        assert example("silent_sensors").alerts() == [
            ("attic", 28, "silent"),
            ("attic", 41, "back"),
            ("attic", 69, "silent"),
            ("cellar", 35, "silent"),
            ("garden", 66, "silent"),
        ]


def test_shapes_are_matched_by_the_rules_that_hold_when_they_come() -> None:
    module = example("shape_rules")
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    shapes = [
        [(0, "red", "square"), (1, "red", "square"), (2, "blue", "triangle")],
        [
            (3, "red", "triangle"),
            (4, "red", "circle"),
            (5, "red", "circle"),
            (6, "blue", "square"),
            (7, "red", "circle"),
        ],
        [(8, "blue", "triangle"), (9, "blue", "diamond"), (10, "red", "circle")],
        [(11, "red", "circle"), (12, "blue", "diamond")],
    ]
    rules = [
        [("house", "square", "triangle")],
        [("eyes", "circle", "circle")],
        [("house", "triangle", "diamond")],  # drops the shapes that waited for the old rule
        [("eyes", None, None)],
    ]
    job = module.matches(by_epoch(env, shapes, "shapes"), by_epoch(env, rules, "rules"))  # type: ignore[arg-type]
    found = run_scripted(job).records
    assert [news[1:] for news in found if news[0] == "rule"] == [rule for (rule,) in rules]  # type: ignore[misc]
    assert sorted(news[1:] for news in found if news[0] == "match") == [
        ("eyes", "red", (4, "circle"), (5, "circle")),
        ("eyes", "red", (5, "circle"), (7, "circle")),
        ("eyes", "red", (7, "circle"), (10, "circle")),
        ("house", "blue", (8, "triangle"), (9, "diamond")),
        ("house", "red", (0, "square"), (3, "triangle")),
        ("house", "red", (1, "square"), (3, "triangle")),
    ]


def test_shapes_and_rules_stream_in_and_every_match_is_right(capsys: pytest.CaptureFixture[str]) -> None:
    with on_local_engine():
        assert example("shape_rules").main(["--seconds", "0.5"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert sum("from now on" in line for line in shown) == 6
    assert shown[-1].endswith("0 wrong")


def test_a_buffering_sink_sends_every_reading_in_one_batch_although_the_job_fails(tmp_path: Path) -> None:
    with on_local_engine():
        batches = example("buffering_sink").batches(100, 250, 20, str(tmp_path))
    assert batches == [list(range(first, min(first + 7, 100))) for first in range(0, 100, 7)]
    log = (tmp_path / "log").read_text().splitlines()
    (restored,) = [line for line in log if line.startswith("restored")]
    waiting = json.loads(restored.removeprefix("restored "))
    assert waiting == list(range(waiting[0], waiting[-1] + 1)) if waiting else True
    assert len(waiting) < 7


def test_counters_go_on_after_a_failure_without_a_gap_and_without_a_repetition() -> None:
    with on_local_engine():
        found = example("counter_source").counted(80, 0.005, 20)
    assert [result[:3] for result in found] == [(counter, 80, 0) for counter in range(3)]
    assert all(len(went_on) == 1 and 0 < went_on[0] < 80 for *_, went_on in found)


@pytest.mark.heavy  # waits for restarts
@pytest.mark.parametrize("name", ["buffering_sink", "counter_source"])
def test_an_example_that_fails_on_purpose_says_that_all_is_right(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with on_local_engine():
        assert example(name).main(["--seconds", "1"]) == 0
    assert len(capsys.readouterr().out.splitlines()) >= 4


@pytest.mark.parametrize("name", ["sessions", "top_pages", "silent_sensors"])
def test_an_example_draws_something_to_look_at(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with on_local_engine():
        example(name).main()
    assert len(capsys.readouterr().out.splitlines()) >= 4


def test_frauds_and_probes_are_those_that_plain_python_finds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    module = example("fraud_detector")
    kinds = [alert.split(",")[0] for alert in module.expected(2_000)]
    assert kinds.count("fraud") > 20 and kinds.count("probe") > 20
    with on_local_engine():
        assert module.main(["--seconds", "1", "--folder", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "0 wrong or twice, 0 still to come"
