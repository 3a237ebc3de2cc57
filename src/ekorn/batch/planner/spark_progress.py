"""How the tasks of a run tell the driver on Spark what they do: reports at their end, and Spark's own status before.

Reports travel as updates of an accumulator of Spark: it delivers those of a task before a result that needs the task.
There is one accumulator for each application, because Spark's driver never forgets one.
"""

from __future__ import annotations

import contextlib
import json
import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ekorn.batch.planner.run_watch import RunningTask, RunWatch
from ekorn.batch.tasks.task_reports import TaskReport

__all__ = ["ReportMailbox", "Updates", "watched_on_spark"]

_log = logging.getLogger(__name__)

_INTERVAL_S = 1.0  # a job that is shorter asks nothing: the first question takes the JVM a third of a second
_MOST_TASKS = 1000  # of one stage


@contextlib.contextmanager
def watched_on_spark(context: Any, job_id: str, watch: RunWatch) -> Iterator[None]:
    """Let a run inside the block tell its watch what its tasks do."""
    mailbox = _mailbox_of(context)
    watch.report_through(mailbox.open(job_id, watch.take))
    ended = threading.Event()
    thread = threading.Thread(target=_look, args=(context, watch, ended), name="ekorn-spark-tasks", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        mailbox.close(job_id)


# ------------------------------------------------------------------------------------------------------- the reports


class Updates:
    """What Spark's accumulator calls: in a task to gather reports, and in the driver to deliver them.

    It is pickled to the tasks by the name of its class. Spark asks for no more than these two methods.
    """

    def zero(self, value: Any) -> list[Any]:
        """Return the value that a task begins with."""
        return []

    def addInPlace(self, value: Any, more: list[Any]) -> Any:
        """Add reports to those of a task; or deliver them, in the driver."""
        if isinstance(value, ReportMailbox):
            value.deliver(more)
            return value
        return [*value, *more]


@dataclass(frozen=True)
class _JobReports:
    """Takes the reports of one job in a task."""

    job_id: str
    accumulator: Any

    def add(self, term: list[TaskReport]) -> None:
        """Take reports."""
        self.accumulator.add([(self.job_id, term)])


class ReportMailbox:
    """The value of the accumulator in the driver: hands reports to the jobs that they are about. Thread-safe."""

    def __init__(self) -> None:
        self.accumulator: Any = None
        self._takers: dict[str, Callable[[Iterable[TaskReport]], None]] = {}

    def open(self, job_id: str, take: Callable[[Iterable[TaskReport]], None]) -> _JobReports:
        """Deliver the reports of a job from now on; return what its tasks report through."""
        self._takers[job_id] = take
        return _JobReports(job_id, self.accumulator)

    def close(self, job_id: str) -> None:
        """Deliver no more reports of a job."""
        self._takers.pop(job_id, None)

    def deliver(self, updates: Iterable[tuple[str, list[TaskReport]]]) -> None:
        """Hand over reports. A job that has ended gets none."""
        for job_id, reports in updates:
            take = self._takers.get(job_id)
            if take is not None:
                try:
                    take(reports)
                except Exception:  # a defect of ekorn; Spark fails the whole application on an error here
                    _log.exception("the report of a task of job %s could not be read", job_id)


_lock = threading.Lock()
_mailboxes: dict[str, ReportMailbox] = {}  # by application


def _mailbox_of(context: Any) -> ReportMailbox:
    with _lock:
        found = _mailboxes.get(context.applicationId)
        if found is None:
            found = ReportMailbox()
            found.accumulator = context.accumulator(found, Updates())
            _mailboxes.clear()  # a process has one application at a time
            _mailboxes[context.applicationId] = found
        return found


# ------------------------------------------------------------------------------------------------- Spark's own status


def _look(context: Any, watch: RunWatch, ended: threading.Event) -> None:
    """Tell a watch which tasks run, again and again."""
    while not ended.wait(_INTERVAL_S):
        try:
            watch.run_now(list(_running_tasks(context)))
        except Exception as error:  # py4j raises many types when the session ends; the job says what happened to it
            _log.debug("Spark does not tell which tasks run: %s", error)


def _running_tasks(context: Any) -> Iterator[RunningTask]:
    """Yield the tasks of Spark that run. Its status has them as the answers of its own REST API."""
    store = context._jsc.sc().statusStore()
    as_json = context._jvm.org.apache.spark.status.api.v1.JacksonMessageWriter().mapper().writeValueAsString
    for stage in context.statusTracker().getActiveStageIds():
        found = store.lastStageAttempt(stage)
        rdds = tuple(json.loads(as_json(found))["rddIds"])
        for task in json.loads(as_json(store.taskList(stage, found.attemptId(), _MOST_TASKS))):
            if task["status"] == "RUNNING":
                yield RunningTask(task["partitionId"], rdds)
