"""Runs in the driver: the Spark jobs of one job of ekorn, as a group, and the session that runs them.

Spark cancels jobs by their group. The session belongs to the driver or to the user, and outlives the job.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections import Counter
from collections.abc import Mapping
from typing import Any

from ekorn.engine.slots.slot_calls import SlotCalls
from ekorn.engine.slots.slot_pool import SlotPool
from ekorn.engine.spark.driver_side.session import (
    SparkLog,
    first_line_of,
    is_started_by_us,
    loss_of,
)
from ekorn.engine.spark.driver_side.task_slots import ReservedTaskSlots, task_count, task_slot_count
from ekorn.engine.spark.task_side.level_task import HostedSubtask
from ekorn.errors import DeploymentError, SparkSessionLostError
from ekorn.graph.addresses import SubtaskId
from ekorn.graph.job_graph import JobGraph, Vertex

__all__ = ["SparkJobGroup", "StageBars", "hosted_subtask"]

_log = logging.getLogger(__name__)
_runs: Counter[str] = Counter()  # how often each job ran in this driver


class SparkJobGroup:
    """The Spark jobs of one job, which is the platform of an engine.

    Args:
        context: Spark's context.
        job_label: The job, as its group is named.
        calls: The slots of the job.
        reserved: The task slots that a continuous job has reserved in the session; None for a job in epochs.

    Attributes:
        name: Spark's name of the group.
    """

    def __init__(
        self, context: Any, job_label: str, calls: SlotCalls, reserved: ReservedTaskSlots | None = None
    ) -> None:
        self.context = context
        self._calls = calls
        self._reserved = reserved
        _runs[job_label] += 1
        self.name = f"ekorn-{job_label}"
        if _runs[job_label] > 1:  # Spark runs no further job of a group that was cancelled
            self.name += f"-{_runs[job_label]}"
        self._bars = StageBars(context)
        self._bars.hide()

    @property
    def is_local(self) -> bool:
        """Whether all of Spark is one process on this machine."""
        return bool(self.context.master.startswith("local"))

    @property
    def description(self) -> str:
        """Whose Spark runs the job, its master, and in which mode if that is not the mode of epochs."""
        master = self.context.master
        if not is_started_by_us(self.context):
            said = f"your Spark session at {master}"
        else:
            said = f"embedded Spark {master}" if self.is_local else f"Spark at {master}"
        return said if self._reserved is None else f"{said}, continuously"

    @property
    def log_path(self) -> str | None:
        """The path of Spark's log if this driver started the session."""
        return SparkLog.path if is_started_by_us(self.context) else None

    def keep_log(self) -> str | None:
        """Return the path of Spark's log if this driver started the session, and keep the file."""
        return SparkLog.keep()

    @property
    def task_slots(self) -> int | None:
        """How many tasks the session can run at the same time, beside those of other continuous jobs."""
        try:
            total = task_slot_count(self.context)
        except Exception:  # the session is gone: the next epoch says so
            return None
        return total if self._reserved is None else self._reserved.left_of(total)

    def needed_task_slots(self, graph: JobGraph) -> int:
        """Return how many tasks of a job must be able to run at the same time."""
        return graph.slot_count if self._reserved is None else task_count(graph)

    def explained(self, error: Exception) -> Exception:
        """Turn an error of a Spark job into one line, without the JVM's frames."""
        if self._calls.cancelled.is_set():
            return DeploymentError("the epoch was cancelled")
        lost = self._calls.lost_slot()
        if lost is not None:
            return lost
        why = loss_of(self.context)
        if why is not None:
            return SparkSessionLostError(why, self.keep_log())
        log = self.keep_log() or "the log of your session"
        return DeploymentError(f"Spark could not run the epoch: {first_line_of(error)}; Spark's log: {log}")

    def cancel_for_good(self, group: str | None = None) -> None:
        """Cancel the running Spark job and all later ones of a group; by default that of the job. Thread-safe."""
        with contextlib.suppress(Exception):  # the session is gone, and its jobs with it
            # This also cancels a job that another thread is about to submit.
            self.context._jsc.sc().cancelJobGroupAndFutureJobs(group or self.name)

    def cancel_running(self, group: str | None = None) -> None:
        """Cancel the running Spark job of a group, by default that of the job; later ones may run. Thread-safe."""
        with contextlib.suppress(Exception):  # no job runs, or the session is gone
            self.context.cancelJobGroup(group or self.name)

    def close(self) -> None:
        """Leave the session as it was before the job."""
        self._bars.show()
        with contextlib.suppress(Exception):  # the user may have stopped the session already
            self.context.setJobGroup("", "")


def hosted_subtask(
    graph: JobGraph, regions: Mapping[SubtaskId, int], pool: SlotPool, vertex: Vertex, index: int
) -> HostedSubtask:
    """Return a subtask with the slot that hosts it, as a task needs it."""
    subtask, slot = SubtaskId(vertex.id, index), graph.slot_of(vertex, index)
    return HostedSubtask(subtask, slot, pool.slots[slot].address, regions[subtask])


# -------------------------------------------------------------------------------------------------------- stage bars

_lock = threading.Lock()
_hidden: Counter[str] = Counter()  # jobs for which the bars of an application are hidden


class StageBars:
    """Hides the progress bars that Spark draws on the terminal for its stages, while one job runs.

    Args:
        context: Spark's context.
    """

    def __init__(self, context: Any) -> None:
        self._context = context
        self._application: str | None = None  # the application whose bars are hidden for this job

    def hide(self) -> None:
        """Draw no bars from now on."""
        try:
            with _lock:
                application = self._context.applicationId
                shown = self._context._jsc.sc().progressBar()
                if shown.isDefined():
                    self._replace(self._context._jvm.scala.Option.empty())
                    shown.get().finishAll()  # clears the line
                    shown.get().stop()
                elif not _hidden[application]:
                    return  # the session draws none
                _hidden[application] += 1
                self._application = application
        except Exception as error:  # Spark's internals differ between versions: the job runs all the same
            _log.info("Spark's progress bars could not be disabled; set spark.ui.showConsoleProgress=false: %s", error)

    def show(self) -> None:
        """Draw bars again, unless another job of the session still runs."""
        application, self._application = self._application, None
        if application is None:
            return
        with _lock:
            _hidden[application] -= 1
            if _hidden[application]:
                return
            del _hidden[application]
            try:
                bar = getattr(self._context._jvm, "org.apache.spark.ui.ConsoleProgressBar")
                self._replace(self._context._jvm.scala.Option.apply(bar(self._context._jsc.sc())))
            except Exception as error:  # the user may have stopped the session already
                _log.info("Spark's progress bars could not be enabled again: %s", error)

    def _replace(self, bar: Any) -> None:
        java = self._context._jsc.sc()
        field = java.getClass().getDeclaredField("_progressBar")
        field.setAccessible(True)
        field.set(java, bar)
