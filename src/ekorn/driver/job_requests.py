"""What is asked of a running job: to be cancelled, savepoints, checkpoints, another parallelism.

Any thread makes a request. The job loop takes the requests between two epochs, and answers each by its future.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future

from ekorn.driver.checkpoints.checkpoint_requests import CheckpointRequest
from ekorn.driver.checkpoints.savepoint_requests import SavepointRequest, Then
from ekorn.driver.rescaling.rescale_requests import RescaleRequest
from ekorn.errors import ConfigurationError
from ekorn.functions.results.job_status import JobStatus

__all__ = ["JobRequests"]


class JobRequests:
    """The requests to one job. Thread-safe.

    Attributes:
        savepoint_directory: Where savepoints go that are requested without a directory.
        savepoint_requested: Whether a savepoint was ever requested, so that one may refer to the job's input.
        refusal: Why nothing but a cancellation may be requested; None if all else may be.
    """

    def __init__(self) -> None:
        self.savepoint_directory: str | None = None
        self.savepoint_requested = False
        self.refusal: str | None = None
        self._lock = threading.Lock()
        self._savepoints: list[SavepointRequest] = []
        self._rescales: list[RescaleRequest] = []
        self._checkpoints: list[CheckpointRequest] = []
        self._cancel = threading.Event()
        self._suspend = threading.Event()
        self._ended_as: JobStatus | None = None
        self._on_cancel: Callable[[], None] = _do_nothing
        self._on_request: Callable[[], None] = _do_nothing
        self._on_stop: Callable[[], None] = _do_nothing

    def cancel(self) -> None:
        """Cancel the job and return at once."""
        self._cancel.set()
        self._on_cancel()

    def suspend(self) -> None:
        """End the job as `cancel` does, but keep its checkpoints, whatever their retention: it is to be resumed."""
        self._suspend.set()
        self.cancel()

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
        if self.refusal is not None:
            refused = SavepointRequest(directory or "", native, then)
            refused.fail(self.refusal)
            return refused.future
        if directory is None:
            raise ConfigurationError(
                "the savepoint has no directory: give one, or set a default "
                "(env.set_default_savepoint_directory, execution.checkpointing.savepoint-dir)"
            )
        request = SavepointRequest(directory, native, then)
        self.savepoint_requested = True
        with self._lock:
            if self._ended_as is not None:
                request.job_ended(self._ended_as)
            else:
                self._savepoints.append(request)
        if request.synchronous:
            self._on_stop()
        self._on_request()
        return request.future

    def request_checkpoint(self) -> Future[int]:
        """Request a checkpoint beside the schedule. The future has its number, or the reason why it was not taken."""
        request = CheckpointRequest()
        with self._lock:
            if self.refusal is not None:
                request.fail(self.refusal)
            elif self._ended_as is not None:
                request.fail(_over(self._ended_as))
            else:
                self._checkpoints.append(request)
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
        with self._lock:
            if self.refusal is not None:
                request.refuse(self.refusal)
            elif self._ended_as is not None:
                request.refuse(_over(self._ended_as))
            else:
                self._rescales.append(request)
        self._on_request()
        return request.future

    @property
    def suspend_requested(self) -> bool:
        """Whether `suspend` was called."""
        return self._suspend.is_set()

    @property
    def cancel_requested(self) -> bool:
        """Whether `cancel` was called."""
        return self._cancel.is_set()

    # ------------------------------------------------------------------------------ for the loop that runs the job

    def refuse_all_but_cancel(self, why: str) -> None:
        """Refuse every request but a cancellation, with this sentence."""
        self.refusal = why

    def wake_with(
        self,
        *,
        on_cancel: Callable[[], None],
        on_request: Callable[[], None],
        on_stop: Callable[[], None] | None = None,
    ) -> None:
        """Set what `cancel` calls, and what every other request calls, on the requesting thread.

        Args:
            on_cancel: Called by `cancel`.
            on_request: Called by every other request.
            on_stop: Called before that by a request for the savepoint that the job ends with.
        """
        self._on_cancel, self._on_request, self._on_stop = on_cancel, on_request, on_stop or _do_nothing

    def wait_for_cancel(self, seconds: float) -> bool:
        """Sleep until the time is up or `cancel` is called; return whether it was called."""
        return self._cancel.wait(seconds)

    def take_savepoints(self) -> list[SavepointRequest]:
        """Return the savepoints requested since the last call."""
        with self._lock:
            taken, self._savepoints = self._savepoints, []
        return taken

    def take_rescales(self) -> list[RescaleRequest]:
        """Return the rescales requested since the last call."""
        with self._lock:
            taken, self._rescales = self._rescales, []
        return taken

    def take_checkpoints(self) -> list[CheckpointRequest]:
        """Return the checkpoints requested since the last call."""
        with self._lock:
            taken, self._checkpoints = self._checkpoints, []
        return taken

    def end(self, status: JobStatus) -> None:
        """Refuse the requests that the loop has not taken, and all later ones: the job is over."""
        with self._lock:
            self._ended_as = status
        self._on_cancel = self._on_request = self._on_stop = _do_nothing  # they lead to the loop and the engine
        for savepoint in self.take_savepoints():
            savepoint.job_ended(status)
        for rescale in self.take_rescales():
            rescale.refuse(_over(status))
        for checkpoint in self.take_checkpoints():
            checkpoint.fail(_over(status))


def _over(status: JobStatus) -> str:
    return f"the job has ended ({status.name})"


def _do_nothing() -> None:
    pass
