"""Changes of the plan of a running job: a switch to another plan over a savepoint, or a rescale inside its driver."""

from __future__ import annotations

import threading
from dataclasses import replace

from ekorn.config import options
from ekorn.errors import ConfigurationError
from ekorn.service.api.driver_poller import driver_client
from ekorn.service.client.remote_job import RemoteJob
from ekorn.service.jobs.job_record import JobPlan, JobRecord
from ekorn.service.jobs.job_store import JobStore
from ekorn.service.jobs.job_table import JobTable
from ekorn.service.jobs.slot_budget import SlotBudget
from ekorn.web.http_client import RefusedRequest, ServerGone

__all__ = ["PlanChanges"]

_LOOK_S = 0.2  # the interval of checking the progress of a change


class PlanChanges:
    """Changes plans. The thread of the service carries out a switch: it records the end, and starts the next driver.

    Args:
        jobs: The records.
        store: The files of the service.
        budget: The slots that all jobs share.
        wake: Wakes the thread of the service.
        closed: Set when the service ends.
    """

    def __init__(
        self, jobs: JobTable, store: JobStore, budget: SlotBudget, wake: threading.Event, closed: threading.Event
    ) -> None:
        self._jobs = jobs
        self._store = store
        self._budget = budget
        self._wake = wake
        self._closed = closed
        self._rescaling: set[str] = set()  # jobs whose drivers are changing their parallelism

    def switch(self, job_id: str, plan: JobPlan, directory: str | None) -> str:
        """Stop a job with a savepoint and continue it with another plan, under the same id; return the savepoint.

        If the job does not start to run with the new plan, it continues with the previous one. The next plan is on disk
        before the job stops, so a service that is killed meanwhile continues the change.

        Raises:
            ConfigurationError: The job does not run, it would not fit, or it continues as before.
        """
        with self._jobs.lock:
            record = self._running(job_id)
            self._check_fit(record.running(plan))
            self._jobs.save(replace(record, then=plan))
        try:
            path = self._stop(record, directory)
        except BaseException:
            with self._jobs.lock:
                if self._jobs[job_id].phase == "STARTED":
                    self._jobs.save(replace(self._jobs[job_id], then=None))
            raise
        self._wake.set()
        self._wait_for_change(job_id, plan)
        return path

    def rescale(self, job_id: str, plan: JobPlan, directory: str | None) -> str:
        """Rescale a job inside its driver; return the checkpoint that the job continued from.

        The new plan is on disk before the driver is asked, so a driver that is started later starts with that plan.
        Until the driver has answered, the job claims the slots of both plans.

        Raises:
            ConfigurationError: The job does not run, or would not fit.
            RescaleError: The driver refuses, and the job continues unchanged.
        """
        with self._jobs.lock:
            record = self._running(job_id)
            self._check_fit(record.running(plan))
            self._rescaling.add(job_id)
            self._jobs.save(record.running(replace(plan, slots=max(plan.slots, record.slots))))
        kept = record.plan
        try:
            remote = RemoteJob(driver_client(record), job_id)
            path = remote.request_rescale(plan.slots, directory, most_slots=plan.slots).result()
            kept = plan
            return path
        finally:
            with self._jobs.lock:
                self._rescaling.discard(job_id)
                if self._jobs[job_id].phase == "STARTED":
                    self._jobs.save(self._jobs[job_id].running(kept))
            self._wake.set()

    def _check_fit(self, changed: JobRecord) -> None:
        others = [each for each in self._jobs.all() if each.phase == "STARTED" and each.job_id != changed.job_id]
        obstacle = self._budget.refusal(changed) or self._budget.obstacle(changed, others)
        if obstacle is not None:
            raise ConfigurationError(f"the job would not fit: {obstacle}")

    def _running(self, job_id: str) -> JobRecord:
        record = self._jobs.find(job_id)
        if record is None or record.phase != "STARTED":
            raise ConfigurationError(f"job {job_id} is not running")
        if record.is_changing or job_id in self._rescaling:
            raise ConfigurationError(f"job {job_id} is already being changed")
        return record

    def _stop(self, record: JobRecord, directory: str | None) -> str:
        """Stop a job with a savepoint; return its path."""
        remote = RemoteJob(driver_client(record), record.job_id)
        try:
            try:
                future = remote.request_savepoint(directory, then="stop")
            except RefusedRequest as refused:
                if directory is not None or "no directory" not in str(refused):
                    raise
                own = str(self._store.job_folder(record.job_id) / "savepoints")
                future = remote.request_savepoint(own, then="stop")
            return future.result()
        except ServerGone:  # the job stopped, and its driver ended before it was asked again
            path = self._continued_from(record.job_id)
            if path is None:
                raise
            return path

    def _continued_from(self, job_id: str) -> str | None:
        """Wait until the end of a driver is recorded; return what the job continues from, or None if it has ended."""
        while (record := self._jobs.find(job_id)) is not None and record.phase != "ENDED":
            if record.then is None:
                return record.settings.get(options.RESTORE_PATH.key)
            if self._closed.wait(_LOOK_S):
                break
        return None

    def _wait_for_change(self, job_id: str, plan: JobPlan) -> None:
        """Return when a job runs with a new plan.

        Raises:
            ConfigurationError: The job has ended, or continues with the previous plan.
        """
        while not self._closed.wait(_LOOK_S):
            record = self._jobs.find(job_id)
            if record is None or record.phase == "ENDED":
                raise ConfigurationError(f"job {job_id} has ended: {record.why if record else 'it is no longer kept'}")
            is_changed = (record.program, record.slots) == (plan.program, plan.slots)
            if record.then is None and not is_changed:
                raise ConfigurationError(f"job {job_id} was not changed: {record.why}")
            if record.then is None and record.fallback is None:
                return
