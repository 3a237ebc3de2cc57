"""The examples give what they promise. Their jobs run on the local engine here; the demo is in tests/spark."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from tamias.testing.local_run import on_local_engine

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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


@pytest.mark.parametrize("name", ["sessions", "top_pages", "silent_sensors"])
def test_an_example_draws_something_to_look_at(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with on_local_engine():
        example(name).main()
    assert len(capsys.readouterr().out.splitlines()) >= 4
