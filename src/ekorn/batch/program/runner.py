"""Chooses what runs a program's plans: Spark, or a runner that a test installs for its thread."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ekorn.batch.plan.operators import Plan
from ekorn.batch.planner.plan_runner import PlanResult, RunSettings, cancel, default_parallelism, run, start
from ekorn.config.configuration import Configuration
from ekorn.config.restart_strategy import resolve
from ekorn.driver.recovery.failures import job_error
from ekorn.driver.recovery.restarts import restart_strategy
from ekorn.errors import JobExecutionError, may_be_retried

__all__ = ["cancel_plan", "parallelism_of_runner", "plans_run_by", "run_plan", "runs_on_spark", "start_runner"]

_log = logging.getLogger(__name__)

Runner = Callable[[Plan, RunSettings], PlanResult]

_runner: ContextVar[Runner | None] = ContextVar("_runner", default=None)


def run_plan(plan: Plan, settings: RunSettings, cancelled: threading.Event | None = None) -> PlanResult:
    """Run a plan, from its beginning again after a failure if the restart strategy says so.

    Args:
        plan: The plan.
        settings: The settings of the run.
        cancelled: Another thread sets it when the plan must not be restarted.

    Raises:
        JobExecutionError: A function failed, and the strategy allows no other attempt.
    """
    configured = resolve(settings.restart, Configuration.from_dict(settings.configuration), checkpointing=False)
    strategy = restart_strategy(configured, random.Random())
    restarts = 0
    while True:
        try:
            return (_runner.get() or run)(plan, settings)
        except JobExecutionError as error:
            if error.cause is None or not may_be_retried(error.cause):
                raise
            decision = strategy.on_failure(int(time.time() * 1000))
            if not decision.restart and not restarts:
                raise
            if not decision.restart:
                raise job_error(
                    settings.job_name, error.cause, log_path=error.log_path, restarts=restarts, refusal=decision.reason
                ) from None
            restarts += 1
            _log.warning("job %r starts again (restart %d): %s", settings.job_name, restarts, error.cause)
            if (cancelled or threading.Event()).wait(decision.delay_ms / 1000):
                raise


def cancel_plan(settings: RunSettings) -> None:
    """Cancel the current Spark jobs of a run. A plan that runs in process continues to its end."""
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
