"""Requests for savepoints: from the thread that asks, through the loop that takes the savepoint, to the answer."""

from __future__ import annotations

import logging
import secrets
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Literal

from ekorn.checkpoint.savepoint_files import SavepointDirectory, new_savepoint
from ekorn.errors import CheckpointError, EkornError
from ekorn.functions.results.job_status import JobStatus
from ekorn.operators.epoch import SavepointOrder

__all__ = ["SavepointRequest", "SavepointRequests", "Then"]

_log = logging.getLogger(__name__)

Then = Literal["go on", "stop", "drain", "cancel"]

_WANTED_END = {"stop": JobStatus.FINISHED, "drain": JobStatus.FINISHED, "cancel": JobStatus.CANCELED}


@dataclass(eq=False)
class SavepointRequest:
    """One requested savepoint.

    The future has the savepoint's path. It is done as soon as the savepoint exists if the job keeps running, and at
    the job's end if the job is to end with the savepoint. A request is answered once; later answers change nothing.

    Args:
        directory: The directory in which the savepoint's own directory is created.
        native: Write the format of the state backend, instead of the one that all backends read.
        then: What the job does after the savepoint.
        restarts: The job goes on by restoring the savepoint, so its sinks commit with it.
    """

    directory: str
    native: bool = False
    then: Then = "go on"
    restarts: bool = False
    request_id: str = field(default_factory=lambda: secrets.token_hex(8))
    future: Future[str] = field(default_factory=Future)
    target: SavepointDirectory | None = None  # set once the directory exists
    checkpoint_id: int | None = None  # set once the savepoint is started
    failed: bool = False
    _path: str | None = None  # set once the savepoint exists

    def __post_init__(self) -> None:
        self.future.set_running_or_notify_cancel()  # the job decides, so the future cannot be cancelled

    @property
    def synchronous(self) -> bool:
        """Whether the job finishes with the savepoint and reads nothing after it."""
        return self.then in ("stop", "drain")

    @property
    def commits(self) -> bool:
        """Whether sinks commit with the savepoint: nothing older is restored after it."""
        return self.synchronous or self.restarts

    @property
    def path(self) -> str:
        """The path of the completed savepoint."""
        assert self._path is not None
        return self._path

    @property
    def exists(self) -> bool:
        """Whether the savepoint is complete."""
        return self._path is not None

    @property
    def order(self) -> SavepointOrder:
        """The order that the slots receive."""
        assert self.target is not None
        return SavepointOrder(self.target.files.address, self.native)

    def complete(self) -> None:
        """Note that the savepoint exists."""
        assert self.target is not None
        self._path = self.target.files.url

    def answer(self) -> None:
        """Answer the request if the job keeps running. What is shown of the job has the savepoint by now."""
        if self.then == "go on":
            self.future.set_result(self.path)

    def fail(self, why: str) -> None:
        """Answer that the savepoint was not taken."""
        self.failed = True
        self._answer_with_error(f"the savepoint was not taken: {why}")

    def job_ended(self, status: JobStatus) -> None:
        """Answer the request at the end of the job, unless it was answered before."""
        if self._path is None:
            self.fail(f"the job has ended ({status.name})")
        elif status is _WANTED_END.get(self.then):
            if not self.future.done():
                self.future.set_result(self._path)
        else:
            self.job_did_not_end(f"the job is {status.name}")

    def job_did_not_end(self, why: str) -> None:
        """Answer that the job did not end with the savepoint, whether the savepoint exists or not."""
        if self._path is not None:
            self._answer_with_error(
                f"the savepoint was taken, at {self._path!r}, but the job did not end with it: {why}"
            )
        else:
            self.fail(why)

    def _answer_with_error(self, message: str) -> None:
        if not self.future.done():
            self.future.set_exception(CheckpointError(message))


class SavepointRequests:
    """The savepoint requests of one job: open, in flight, aborted. Every request is answered once."""

    def __init__(self, job_id: str) -> None:
        self._job_id = job_id
        self._open: dict[str, SavepointRequest] = {}  # by request id: not answered yet
        self._in_flight: dict[int, SavepointRequest] = {}  # by checkpoint id
        self._aborted: dict[int, SavepointDirectory] = {}  # by checkpoint id: a slot may still write to it

    def admit(self, request: SavepointRequest, refusal: str | None) -> bool:
        """Create the directory of a savepoint. If there can be none, answer the request and return False.

        Args:
            request: The request.
            refusal: Why checkpointing is suspended, or None if it is active.
        """
        self._open[request.request_id] = request
        if refusal is None:
            try:
                request.target = new_savepoint(request.directory, self._job_id)
                return True
            except (EkornError, OSError) as error:
                refusal = str(error)
        self.refuse(request.request_id, refusal)
        return False

    def start(self, request_id: str, checkpoint_id: int) -> SavepointOrder:
        """Let the next epoch carry a savepoint; return what the slots are told."""
        request = self._in_flight[checkpoint_id] = self._open[request_id]
        request.checkpoint_id = checkpoint_id
        return request.order

    def in_flight(self, checkpoint_id: int) -> SavepointRequest | None:
        """Return the request of a savepoint in flight; None for a checkpoint."""
        return self._in_flight.get(checkpoint_id)

    def complete(self, checkpoint_id: int) -> SavepointRequest | None:
        """Note that a savepoint exists and return its request; None for a checkpoint."""
        request = self._in_flight.pop(checkpoint_id, None)
        if request is not None:
            request.complete()
            if request.then == "go on":
                del self._open[request.request_id]
        return request

    def abort(self, checkpoint_id: int, why: str) -> bool:
        """Answer the request of an aborted savepoint; return False for a checkpoint."""
        request = self._in_flight.pop(checkpoint_id, None)
        if request is None:
            return False
        assert request.target is not None
        self._aborted[checkpoint_id] = request.target
        self.refuse(request.request_id, why)
        return True

    def refuse(self, request_id: str, why: str) -> None:
        """Answer that a savepoint is not taken, and remove its directory if it was never started."""
        request = self._open.pop(request_id, None)  # a periodic checkpoint has no request
        if request is not None:
            request.fail(why)
            if request.checkpoint_id is None and request.target is not None:
                _remove(request.target)

    def remove_aborted(self, checkpoint_id: int) -> bool:
        """Remove the files of an aborted savepoint, again if need be; return False for anything else."""
        target = self._aborted.get(checkpoint_id)
        if target is not None:
            _remove(target)
        return target is not None

    def remove_unfinished(self) -> None:
        """Remove the files of savepoints that will never exist, at the end of the job, when no slot writes any more."""
        requested = [r.target for r in self._open.values() if r.target is not None and not r.exists]
        for target in (*requested, *self._aborted.values()):
            _remove(target)

    def job_ended(self, status: JobStatus) -> None:
        """Answer the open requests: the job is over."""
        for request in self._open.values():
            request.job_ended(status)
        self._open.clear()


def _remove(target: SavepointDirectory) -> None:
    try:
        target.discard()
    except OSError as error:  # files left behind are no reason to fail the job
        _log.warning("files of an unfinished savepoint could not be removed from %s: %s", target.files.url, error)
