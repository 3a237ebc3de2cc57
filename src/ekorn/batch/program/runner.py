"""Chooses what runs a program's plans: Spark, or a runner that a test installs for its thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ekorn.batch.plan.operators import Plan
from ekorn.batch.planner.plan_runner import (
    PlanResult,
    RunSettings,
    cancel,
    default_parallelism,
    run_as_this_thread,
    start,
)

__all__ = ["Runner", "cancel_plan", "parallelism_of_runner", "plans_run_by", "runner", "runs_on_spark", "start_runner"]

Runner = Callable[[Plan, RunSettings], PlanResult]

_runner: ContextVar[Runner | None] = ContextVar("_runner", default=None)


def runner(plan: Plan, settings: RunSettings) -> Runner:
    """Return what runs a plan of this thread. Another thread may call it."""
    return _runner.get() or run_as_this_thread(plan, settings)


def cancel_plan(settings: RunSettings) -> None:
    """Cancel the current Spark jobs of a run. Tasks that run in process continue to their end."""
    if _runner.get() is None:
        cancel(settings)


def runs_on_spark() -> bool:
    """Return whether Spark runs the plans of this thread."""
    return _runner.get() is None


def start_runner(settings: RunSettings) -> None:
    """Start Spark if it runs the plans and does not run yet."""
    if _runner.get() is None:
        start(settings)


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
