"""The seam between a run of a plan and the job that shows it: which stages there are, and how far they have come.

A run tells its watch what it does. The watch decides nothing about the run, except that a cancelled one ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from ekorn.batch.plan.operators import PlanOperator
from ekorn.batch.tasks.stage_task import StageReports
from ekorn.batch.tasks.task_reports import TaskReport, TaskReports

__all__ = ["NoWatch", "RunWatch", "RunningTask", "StageKey"]


class StageKey(NamedTuple):
    """The place of a stage in its plan, which is the same whenever the plan is translated.

    Attributes:
        operator: The number of the operator of the plan.
        step: The number of the stage's last step among what the operator became. The exits of stages without steps are
            numbered by themselves.
        is_exit: Whether the stage has no steps.
    """

    operator: int
    step: int
    is_exit: bool = False


class RunningTask(NamedTuple):
    """A task that runs: its partition, and the RDDs that its stage computes."""

    partition: int
    rdds: tuple[int, ...]


class RunWatch(Protocol):
    """Watches one run."""

    def check(self) -> None:
        """Return if the run is to go on.

        Raises:
            JobCancelledError: It was cancelled.
        """

    def begin(self) -> None:
        """Note that the plan runs from its beginning."""

    def number_of(self, operator: PlanOperator) -> int | None:
        """Return the number of an operator in the plan; None for one inside an iteration."""

    def reports_of(self, key: StageKey) -> StageReports | None:
        """Return how the tasks of a stage report; None if they need not."""

    def report_through(self, channel: TaskReports) -> None:
        """Let the tasks report through a channel, because they run in other processes."""

    def staged(self, rdd: int | None, key: StageKey) -> None:
        """Note the number of the RDD that a stage computes; None where RDDs have no numbers."""

    def run_now(self, tasks: Iterable[RunningTask]) -> None:
        """Note the tasks that run at this moment."""

    def take(self, reports: Iterable[TaskReport]) -> None:
        """Take the reports of tasks that have ended."""

    def superstep(self, operator: PlanOperator, number: int) -> None:
        """Note that an iteration begins a superstep."""

    def ended(self, operator: PlanOperator) -> None:
        """Note that an iteration has ended."""


class NoWatch:
    """Watches nothing."""

    def check(self) -> None:
        pass

    def begin(self) -> None:
        pass

    def number_of(self, operator: PlanOperator) -> None:
        return None

    def reports_of(self, key: StageKey) -> None:
        return None

    def report_through(self, channel: TaskReports) -> None:
        pass

    def staged(self, rdd: int | None, key: StageKey) -> None:
        pass

    def run_now(self, tasks: Iterable[RunningTask]) -> None:
        pass

    def take(self, reports: Iterable[TaskReport]) -> None:
        pass

    def superstep(self, operator: PlanOperator, number: int) -> None:
        pass

    def ended(self, operator: PlanOperator) -> None:
        pass
