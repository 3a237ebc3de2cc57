"""When an iteration ends, decided from what a superstep gave."""

from __future__ import annotations

from typing import Any

import pytest

from ekorn.batch.iterations.iteration_runner import SuperstepEnd, is_last, merged_aggregates
from ekorn.batch.plan.iteration_specs import Convergence, IterationLimits
from ekorn.dataset import (
    Aggregator,
    ConvergenceCriterion,
    DoubleSumAggregator,
    DoubleZeroConvergence,
    LongSumAggregator,
    LongZeroConvergence,
)


@pytest.mark.parametrize(
    ("number", "goes_on_with", "last"), [(1, None, False), (2, 5, False), (2, 0, True), (3, 5, True), (3, None, True)]
)
def test_an_iteration_ends_at_its_limit_or_without_records(number: int, goes_on_with: int | None, last: bool) -> None:
    assert is_last(SuperstepEnd(number, {}, goes_on_with), IterationLimits(3)) is last


class BelowAfterTwo(ConvergenceCriterion[float]):
    def is_converged(self, iteration: int, value: float) -> bool:
        return iteration > 2 and value < 0.5


def test_a_convergence_criterion_ends_an_iteration() -> None:
    limits = IterationLimits(10, {}, Convergence("change", BelowAfterTwo()))
    found = [is_last(SuperstepEnd(n, {"change": 1.0 / n, "other": 0}, None), limits) for n in range(1, 5)]
    assert found == [False, False, True, True]
    zero = IterationLimits(10, {}, Convergence("n", LongZeroConvergence()))
    assert [is_last(SuperstepEnd(1, {"n": n}, None), zero) for n in (1, 0)] == [False, True]
    assert DoubleZeroConvergence().is_converged(1, 0.0)


def test_aggregates_of_subtasks_are_merged_into_fresh_aggregators() -> None:
    registered: dict[str, Aggregator[Any]]
    registered = {"n": LongSumAggregator(), "x": DoubleSumAggregator(), "unused": LongSumAggregator()}
    registered["n"].aggregate(100)
    merged = merged_aggregates(registered, [{"n": 2}, {"n": 3, "x": 0.5}, {}])
    assert merged == {"n": 5, "x": 0.5, "unused": 0}
    assert registered["n"].get_aggregate() == 100
