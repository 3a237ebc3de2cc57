"""Which runs the plans of a program: Spark, unless a test of this thread puts another runner in its place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from tamias.batch.plan.operators import Plan
from tamias.batch.planner.execution import PlanResult, RunSettings, default_parallelism, run

__all__ = ["parallelism_of_runner", "plans_run_by", "run_plan"]

Runner = Callable[[Plan, RunSettings], PlanResult]

_runner: ContextVar[Runner | None] = ContextVar("_runner", default=None)


def run_plan(plan: Plan, settings: RunSettings) -> PlanResult:
    """Run a plan."""
    return (_runner.get() or run)(plan, settings)


def parallelism_of_runner(settings: RunSettings) -> int:
    """Return the parallelism of operators for which nothing else sets one."""
    return default_parallelism(settings) if _runner.get() is None else 1


@contextmanager
def plans_run_by(runner: Runner) -> Iterator[None]:
    """Let a function run the plans of this thread."""
    token = _runner.set(runner)
    try:
        yield
    finally:
        _runner.reset(token)
