"""Requests for checkpoints beside the schedule: each is answered once, with the checkpoint's number or a reason."""

from __future__ import annotations

import secrets
from concurrent.futures import Future
from dataclasses import dataclass, field

from ekorn.errors import CheckpointError
from ekorn.functions.results.job_status import JobStatus

__all__ = ["CheckpointRequest", "CheckpointRequests"]


@dataclass(eq=False)
class CheckpointRequest:
    """One requested checkpoint. The future has its number."""

    request_id: str = field(default_factory=lambda: secrets.token_hex(8))
    future: Future[int] = field(default_factory=Future)

    def __post_init__(self) -> None:
        self.future.set_running_or_notify_cancel()  # the job decides, so the future cannot be cancelled

    def fail(self, why: str) -> None:
        """Answer that the checkpoint was not taken."""
        if not self.future.done():
            self.future.set_exception(CheckpointError(f"the checkpoint was not taken: {why}"))


class CheckpointRequests:
    """The checkpoint requests of one job that are not answered yet."""

    def __init__(self) -> None:
        self._waiting: dict[str, CheckpointRequest] = {}  # by request id
        self._in_flight: dict[int, CheckpointRequest] = {}  # by checkpoint id

    def add(self, request: CheckpointRequest) -> None:
        """Note a request that waits for an epoch."""
        self._waiting[request.request_id] = request

    def start(self, request_id: str, checkpoint_id: int) -> None:
        """Note that a checkpoint is started; a periodic one has no request."""
        request = self._waiting.pop(request_id, None)
        if request is not None:
            self._in_flight[checkpoint_id] = request

    def complete(self, checkpoint_id: int) -> None:
        """Answer the request of a checkpoint that is complete, if it has one."""
        request = self._in_flight.pop(checkpoint_id, None)
        if request is not None:
            request.future.set_result(checkpoint_id)

    def abort(self, checkpoint_id: int, why: str) -> None:
        """Answer the request of a checkpoint that was aborted, if it has one."""
        request = self._in_flight.pop(checkpoint_id, None)
        if request is not None:
            request.fail(why)

    def refuse(self, request_id: str, why: str) -> None:
        """Answer a request that no epoch will carry, if it is one of these."""
        request = self._waiting.pop(request_id, None)
        if request is not None:
            request.fail(why)

    def job_ended(self, status: JobStatus) -> None:
        """Answer what is still open."""
        for request in (*self._waiting.values(), *self._in_flight.values()):
            request.fail(f"the job has ended ({status.name})")
        self._waiting.clear()
        self._in_flight.clear()
