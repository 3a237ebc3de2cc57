"""The programs of the gallery give the results that plain Python gives. Their jobs run on the local engine."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from ekorn.datastream import StreamExecutionEnvironment
from ekorn.testing.by_epoch import by_epoch
from ekorn.testing.local_run import on_local_engine
from ekorn.testing.scripted import run_scripted
from tests.example_modules import example

NEW = ["enrichment", "change_capture", "rule_alerts", "deduplication", "scoring", "funnel", "backfill"]
NEW += ["trade_candles", "batch_scoring"]


def test_orders_are_enriched_in_their_order_with_many_requests_at_a_time():
    module = example("enrichment")
    with on_local_engine():
        found = module.enriched()
    assert [(number, name) for number, name, _ in found] == [
        (number, module.NAMES.get(customer, "unknown")) for number, customer in map(module.order, range(module.ORDERS))
    ]
    assert 10 < max(most for *_, most in found) <= 50


def test_the_copy_of_a_table_equals_it_although_changes_come_in_disorder_and_twice(tmp_path: Path):
    module = example("change_capture")
    assert len(module.arriving()) > module.CHANGES
    assert [c for c in module.arriving() if c[1] == 0] != sorted(c for c in module.arriving() if c[1] == 0)
    with on_local_engine():
        module.copy_table(tmp_path / "copy.db")
        assert module.table(tmp_path / "copy.db") == module.expected()
        module.copy_table(tmp_path / "copy.db")  # all of it once more
    assert module.table(tmp_path / "copy.db") == module.expected()


def test_alerts_follow_the_rules_that_hold_when_a_reading_comes():
    module = example("rule_alerts")
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    readings = [[("oven", 0, 90)], [("oven", 1, 90), ("press", 1, 50)], [("oven", 2, 90)], [("oven", 3, 90)]]
    rules = [[("hot", 80)], [], [("hot", 95)], [("hot", None), ("warm", 60)]]
    job = module.alerts(by_epoch(env, readings, "readings"), by_epoch(env, rules, "rules"))  # type: ignore[arg-type]
    assert sorted(run_scripted(job).records) == [
        ("oven", 0, "hot", 90, 1),
        ("oven", 1, "hot", 90, 2),
        ("oven", 3, "warm", 90, 1),
    ]


def test_a_rule_that_went_and_came_back_counts_from_one():
    module = example("rule_alerts")
    env = StreamExecutionEnvironment.get_execution_environment()
    readings = [[("oven", 0, 90)], [("oven", 1, 90)], [("oven", 2, 90)]]
    rules = [[("hot", 80)], [("hot", None)], [("hot", 80)]]
    job = module.alerts(by_epoch(env, readings, "readings"), by_epoch(env, rules, "rules"))  # type: ignore[arg-type]
    assert sorted(run_scripted(job).records) == [("oven", 0, "hot", 90, 1), ("oven", 2, "hot", 90, 1)]


def test_each_event_passes_once():
    module = example("deduplication")
    with on_local_engine():
        found, dropped = module.unique()
    assert found == [(f"event-{number:03d}", number) for number in range(module.EVENTS)]
    assert dropped == len(module.arriving()) - module.EVENTS > 100


@pytest.mark.parametrize("parallelism", [1, 3])
def test_every_subtask_loads_the_model_once_and_scores_as_a_plain_loop_does(parallelism: int):
    module = example("scoring")
    with on_local_engine():
        found, loaded = module.scored(parallelism)
    assert loaded == parallelism
    weights = module.MODEL["weights"]
    logits = [
        module.MODEL["bias"] + sum(weight * module.customer(number)[name] for name, weight in weights.items())
        for number in range(module.CUSTOMERS)
    ]
    assert found == [(number, round(1 / (1 + math.exp(-logit)), 3)) for number, logit in enumerate(logits)]


def test_the_funnel_counts_the_attempts_that_plain_python_counts():
    module = example("funnel")
    with on_local_engine():
        found = module.attempts()
    expected: Counter[str] = Counter()
    for number in range(module.VISITORS):
        clicks = module.visit(number)
        within = [page for _, page, time_ms in clicks if time_ms <= clicks[0][2] + module.HOUR_MS]
        expected[within[-1]] += 1  # what comes after the hour begins at no first page, and is ignored
    assert found == expected
    assert [count for _, count in module.came_to(found)] == sorted((c for _, c in module.came_to(found)), reverse=True)


def test_days_that_begin_in_files_and_end_live_are_counted_as_one(tmp_path: Path):
    module = example("backfill")
    module.write_history(tmp_path)
    with on_local_engine():
        found = module.revenue(tmp_path)
    expected: Counter[int] = Counter()
    for time_ms, cents in (map(int, module.sale(number).split(",")) for number in range(module.SALES)):
        expected[time_ms // module.DAY_MS] += cents
    assert found == sorted(expected.items())


@pytest.mark.parametrize("name", NEW)
def test_a_program_of_the_gallery_draws_something_to_look_at(name: str, capsys: pytest.CaptureFixture[str]):
    with on_local_engine():
        assert not example(name).main()
    assert len(capsys.readouterr().out.splitlines()) >= 3


def test_candles_are_those_of_a_loop_over_the_trades_that_were_not_cancelled():
    module = example("trade_candles")
    expected: dict[tuple[str, str, int], list[int]] = {}
    for symbol, cents, size, cancelled, at in map(module.trade, range(module.TRADES)):
        if not cancelled:
            candle = expected.setdefault((*symbol.split("@"), at - at % 60_000), [cents, cents, cents, cents, 0])
            candle[1:] = [max(candle[1], cents), min(candle[2], cents), cents, candle[4] + size]
    with on_local_engine():
        found = module.candles()
    names = ("opening", "highest", "lowest", "last", "volume")
    assert {(c["symbol"], c["venue"], c["window_start"]): [c[name] for name in names] for c in found} == expected


def test_a_model_scores_batches_as_it_scores_each_customer(tmp_path: Path):
    module = example("batch_scoring")
    with on_local_engine():
        found, loaded, calls = module.scored()
    assert loaded == 2
    assert loaded < calls < module.CUSTOMERS / 100
    module.write_model(tmp_path / "model.npz")
    customers = module.customers(0, module.CUSTOMERS).to_pylist()
    with np.load(tmp_path / "model.npz") as model:
        for number in range(0, module.CUSTOMERS, 1_000):
            features = np.array([[customers[number][name] for name in module.FEATURES]])
            assert found[number] == pytest.approx(float(module.predict(model, features)[0]))
    assert sorted(found) == list(range(module.CUSTOMERS))
