"""The handle of a submitted job: its status, result and collected records, its cancellation and its savepoints."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any

from ekorn.config.job_id import JobID
from ekorn.driver.checkpoints.checkpoint_requests import CheckpointRequest
from ekorn.driver.checkpoints.savepoint_requests import SavepointRequest, Then
from ekorn.driver.display.job_progress import Fact, JobProgress, html_table
from ekorn.driver.output.collect_queue import CollectQueue, WaitingRun
from ekorn.driver.queries.query_address import QueryAddress
from ekorn.driver.queries.state_reader import StateReader
from ekorn.driver.rescaling.rescale_requests import RescaleRequest
from ekorn.driver.statistics.job_statistics import JobStatistics
from ekorn.errors import ConfigurationError, JobCancelledError
from ekorn.functions.results.job_execution_result import JobExecutionResult
from ekorn.functions.results.job_status import JobStatus
from ekorn.metrics.thread_stacks import ThreadStack
from ekorn.slot_protocol.diagnostics import SamplingPlan, SlotLogs, StackSample

__all__ = ["JobHandle"]

_log = logging.getLogger(__name__)


@dataclass
class JobHandle:
    """A submitted job. Thread-safe.

    Attributes:
        savepoint_directory: Where savepoints go that are requested without a directory.
        queries_at: Where queries of the job's state are answered; None if they are not.
        state_reader: Reads the job's state; None if queries are not answered, and when the job has ended.
        savepoint_requested: Whether a savepoint was ever requested, so that one may refer to the job's input.
        statistics: What is remembered about the job; None until its loop is assembled.
    """

    job_id: JobID
    job_name: str
    savepoint_directory: str | None = None
    savepoint_requested: bool = False
    statistics: JobStatistics | None = None
    queries_at: QueryAddress | None = None
    state_reader: StateReader | None = None
    _progress: JobProgress = field(default_factory=JobProgress)
    _ended: threading.Event = field(default_factory=threading.Event)
    _cancel: threading.Event = field(default_factory=threading.Event)
    _suspend: threading.Event = field(default_factory=threading.Event)
    _collected: CollectQueue = field(default_factory=CollectQueue)
    _accumulators: dict[str, Any] = field(default_factory=dict)
    _result: JobExecutionResult | None = None
    _error: BaseException | None = None
    _on_cancel: Callable[[], None] = lambda: None
    _metrics: Callable[[], dict[str, Any]] | None = None
    _requests: list[SavepointRequest] = field(default_factory=list)
    _rescales: list[RescaleRequest] = field(default_factory=list)
    _checkpoint_requests: list[CheckpointRequest] = field(default_factory=list)
    _requests_lock: threading.Lock = field(default_factory=threading.Lock)
    _on_request: Callable[[], None] = lambda: None
    _stacks: Callable[[int], list[ThreadStack]] = lambda slot: []
    _samples: Callable[[int, SamplingPlan], list[StackSample]] = lambda slot, plan: []
    _slot_log: Callable[[int], SlotLogs | None] = lambda slot: None
    _before_end: Callable[[], None] | None = None
    _after_end: Callable[[], None] | None = None
    is_in_foreground: bool = False  # the program waits for the job, and writes nothing meanwhile
    _at_end: list[Callable[[JobStatus, bool], None]] = field(default_factory=list)

    def status(self) -> JobStatus:
        """Return the job's current status."""
        return self._progress.status

    def progress(self) -> JobProgress:
        """Return the job's progress as of the last epoch or checkpoint."""
        return self._progress

    def cancel(self) -> None:
        """Cancel the job and return at once. `wait` returns when the job is over."""
        self._cancel.set()
        self._on_cancel()

    def suspend(self) -> None:
        """End the job as `cancel` does, but keep its checkpoints, whatever their retention: it is to be resumed."""
        self._suspend.set()
        self.cancel()

    def wait(self, timeout: float | None = None) -> JobExecutionResult:
        """Wait for the end of the job, and until its last line is shown.

        Raises:
            JobExecutionError: The job failed.
            JobCancelledError: The job was cancelled.
            TimeoutError: The job is still running after `timeout` seconds.
        """
        if not self._ended.wait(timeout):
            raise TimeoutError(f"job {self.job_name!r} is still {self.status().name} after {timeout} s")
        if self._after_end is not None:
            self._after_end()
        if self._error is not None:
            raise self._error
        assert self._result is not None
        return self._result

    def wait_for_end(self, timeout_s: float) -> bool:
        """Wait for the end of the job; return whether it has come."""
        return self._ended.wait(timeout_s)

    def request_savepoint(
        self, directory: str | None = None, *, native: bool = False, then: Then = "go on"
    ) -> Future[str]:
        """Request a savepoint. The future has its path, or the reason why it was not taken.

        Args:
            directory: The directory in which the savepoint's own directory is created; None for the job's default.
            native: Write the format of the state backend, instead of the one that all backends read.
            then: `go on` to keep running; `stop` to finish without reading more; `drain` to finish as if the input had
                ended, so that event time advances to its end; `cancel`. If the job is to end, the future is done at
                the job's end.

        Raises:
            ConfigurationError: No directory is given, and there is no default.
        """
        directory = directory or self.savepoint_directory
        if directory is None:
            raise ConfigurationError(
                "no directory for the savepoint: give one, or set a default "
                "(env.set_default_savepoint_directory, execution.checkpointing.savepoint-dir)"
            )
        request = SavepointRequest(directory, native, then)
        self.savepoint_requested = True
        with self._requests_lock:
            if self._ended.is_set():
                request.job_ended(self.status())
            else:
                self._requests.append(request)
        self._on_request()
        return request.future

    def request_checkpoint(self) -> Future[int]:
        """Request a checkpoint beside the schedule. The future has its number, or the reason why it was not taken."""
        request = CheckpointRequest()
        with self._requests_lock:
            if self._ended.is_set():
                request.fail(f"the job is over ({self.status().name})")
            else:
                self._checkpoint_requests.append(request)
        self._on_request()
        return request.future

    def request_rescale(
        self,
        parallelism: int,
        directory: str | None = None,
        *,
        most_slots: int | None = None,
        cause: str = "a request",
    ) -> Future[str]:
        """Request another parallelism, while the job runs.

        Args:
            parallelism: The default parallelism. Operators whose parallelism the program sets keep it.
            directory: Go on from a savepoint in this directory; None for a checkpoint, if the job takes any.
            most_slots: The slots that the job may take from now on; None for as many as before.
            cause: The reason, for people to read.

        Returns:
            A future of the checkpoint or savepoint that the job went on from, done when it runs with the new
            parallelism. It has a `RescaleError` with the reason if the job goes on as it was.
        """
        request = RescaleRequest(parallelism, most_slots, directory, cause)
        with self._requests_lock:
            if self._ended.is_set():
                request.refuse(f"the job is over ({self.status().name})")
            else:
                self._rescales.append(request)
        self._on_request()
        return request.future

    def accumulators(self) -> dict[str, Any]:
        """Return the accumulators' values as of the last epoch."""
        return {name: a.get_local_value() for name, a in self._accumulators.items()}

    def thread_stacks(self, slot: int) -> list[ThreadStack]:
        """Return the stacks of a slot's threads; none if the job has no slots.

        Raises:
            SlotLostError: The slot does not answer.
        """
        return self._stacks(slot)

    def sample_stacks(self, slot: int, plan: SamplingPlan) -> list[StackSample]:
        """Sample the stacks of a slot's subtasks, which lasts as long as the plan says; none if the job has no slots.

        Raises:
            SlotLostError: The slot does not answer.
        """
        return self._samples(slot, plan)

    def slot_log(self, slot: int) -> SlotLogs | None:
        """Return the last lines of a slot's log; None if the slot has no log of its own.

        Raises:
            SlotLostError: The slot does not answer.
        """
        return self._slot_log(slot)

    def merged_accumulators(self) -> dict[str, Any]:
        """Return the accumulators as of the last epoch, each merged over all subtasks."""
        return dict(self._accumulators)

    def metrics(self) -> dict[str, Any]:
        """Return the metrics as of the last epoch, by name. The names of the job's own metrics begin with `job.`."""
        progress = self._progress
        own = {
            "job.numRestarts": progress.restarts,
            "job.numberOfCompletedCheckpoints": progress.checkpoints_completed,
            "job.numberOfFailedCheckpoints": progress.checkpoints_failed,
            "job.lastCheckpointSize": progress.last_checkpoint_bytes,
            "job.lastCheckpointDuration": progress.last_checkpoint_ms,
            "job.lastCheckpointExternalPath": progress.last_checkpoint_path,
        }
        return own | (self._metrics() if self._metrics is not None else {})

    def collected(self) -> Iterator[Any]:
        """Yield the records of a collecting job as they come; end with the job, and raise the error it failed with."""
        while (run := self._collected.take()) is not None:
            yield from run.records()
        if self._error is not None and not isinstance(self._error, JobCancelledError):
            raise self._error

    @property
    def collected_count(self) -> int:
        """The number of collected records that wait for the program now."""
        return self._collected.count

    @property
    def collected_bytes(self) -> int:
        """The size of the collected records that wait for the program now, in memory and on disk."""
        return self._collected.size_bytes

    def discard_collected(self) -> None:
        """Forget the collected records that wait: the program reads no further."""
        self._collected.clear()

    def __repr__(self) -> str:
        return f"JobHandle({self.job_name!r}, {self.job_id}, {self.status().name})"

    def _repr_html_(self) -> str:
        own = (Fact("job", self.job_name), Fact("job id", str(self.job_id)))
        return html_table((*own, *self.progress().facts()))

    # ------------------------------------------------------------------------------ for the loop that runs the job

    @property
    def suspend_requested(self) -> bool:
        """Whether `suspend` was called."""
        return self._suspend.is_set()

    @property
    def cancel_requested(self) -> bool:
        """Whether `cancel` was called."""
        return self._cancel.is_set()

    def wait_for_cancel(self, seconds: float) -> bool:
        """Sleep until the time is up or `cancel` is called; return whether it was called."""
        return self._cancel.wait(seconds)

    def on_cancel(self, call: Callable[[], None]) -> None:
        """Set what `cancel` calls, on the cancelling thread."""
        self._on_cancel = call

    def on_request(self, call: Callable[[], None]) -> None:
        """Set what `request_savepoint` calls, on the requesting thread."""
        self._on_request = call

    def before_end(self, call: Callable[[], None]) -> None:
        """Set what `end` calls before it publishes the end of the job."""
        self._before_end = call

    def after_end(self, call: Callable[[], None]) -> None:
        """Set what `wait` calls once the job has ended."""
        self._after_end = call

    def at_end(self, call: Callable[[JobStatus, bool], None]) -> None:
        """Add what `end` calls before it publishes the end of the job; called at once if the job is over.

        Args:
            call: Takes the final status, and whether a savepoint of the job may exist.
        """
        with self._requests_lock:
            if not self._ended.is_set():
                self._at_end.append(call)
                return
        call(self.status(), self.savepoint_requested)

    def take_requests(self) -> list[SavepointRequest]:
        """Return the savepoints requested since the last call."""
        with self._requests_lock:
            taken, self._requests = self._requests, []
        return taken

    def take_rescales(self) -> list[RescaleRequest]:
        """Return the rescales requested since the last call."""
        with self._requests_lock:
            taken, self._rescales = self._rescales, []
        return taken

    def take_checkpoint_requests(self) -> list[CheckpointRequest]:
        """Return the checkpoints requested since the last call."""
        with self._requests_lock:
            taken, self._checkpoint_requests = self._checkpoint_requests, []
        return taken

    def update(self, progress: JobProgress) -> None:
        """Publish progress."""
        self._progress = progress

    def deliver(self, run: WaitingRun) -> None:
        """Hand over collected records."""
        self._collected.put(run)

    def end(self, status: JobStatus, result: JobExecutionResult | None, error: BaseException | None) -> None:
        """Publish the end of the job, and answer the savepoint requests that the loop has not taken."""
        if self._before_end is not None:
            self._before_end()
        self._call_at_end(status)
        self._progress = replace(self._progress, status=status)
        self._result, self._error = result, error
        self._collected.end()
        self._forget_engine()
        with self._requests_lock:
            self._ended.set()
        self._call_at_end(status)  # what was added since
        for request in self.take_requests():
            request.job_ended(status)
        for rescale in self.take_rescales():
            rescale.refuse(f"the job is over ({status.name})")
        for wanted in self.take_checkpoint_requests():
            wanted.fail(f"the job is over ({status.name})")

    def _forget_engine(self) -> None:
        """Drop everything that leads to the engine and the loop: programs and pages keep the handles of ended jobs."""
        self.state_reader = None
        self._on_cancel = self._on_request = lambda: None
        self._stacks = lambda slot: []
        self._samples = lambda slot, plan: []
        self._slot_log = lambda slot: None

    def _call_at_end(self, status: JobStatus) -> None:
        with self._requests_lock:
            calls, self._at_end = self._at_end, []
        for call in calls:
            try:
                call(status, self.savepoint_requested)
            except Exception:  # the job's outcome stands; what could not be released is in the log
                _log.exception("job %s: what ran beside it could not be ended in order", self.job_name)

    def on_stacks(self, call: Callable[[int], list[ThreadStack]]) -> None:
        """Set what returns the stacks of a slot's threads. Any thread may call it."""
        self._stacks = call

    def on_samples(self, call: Callable[[int, SamplingPlan], list[StackSample]]) -> None:
        """Set what samples the stacks of a slot's subtasks. Any thread may call it."""
        self._samples = call

    def on_slot_log(self, call: Callable[[int], SlotLogs | None]) -> None:
        """Set what returns the last lines of a slot's log. Any thread may call it."""
        self._slot_log = call

    def publish_metrics(self, values: Callable[[], dict[str, Any]]) -> None:
        """Set what returns the latest metrics of all subtasks. Any thread may call it."""
        self._metrics = values

    def set_accumulators(self, merged: dict[str, Any]) -> None:
        """Publish the merged accumulators."""
        self._accumulators = merged
