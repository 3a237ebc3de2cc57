"""Requests for savepoints: from the thread that asks, through the loop that takes them, to the answer."""

from __future__ import annotations

import secrets
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Literal

from tamias.checkpoint.savepoints import SavepointPlace
from tamias.common.job_status import JobStatus
from tamias.errors import CheckpointError
from tamias.runtime.epoch import SavepointOrder

__all__ = ["SavepointRequest", "Then"]

Then = Literal["go on", "stop", "drain", "cancel"]

_WANTED_END = {"stop": JobStatus.FINISHED, "drain": JobStatus.FINISHED, "cancel": JobStatus.CANCELED}


@dataclass(eq=False)
class SavepointRequest:
    """One savepoint that somebody asked for.

    Its future is answered with the savepoint's path: as soon as the savepoint exists when the job goes on, and at the
    job's end when the savepoint was to be its last deed. Answered once; later answers change nothing.

    Args:
        directory: Where the user wants it.
        native: In the format of the state backend, instead of the one that all backends read.
        then: What becomes of the job.
    """

    directory: str
    native: bool = False
    then: Then = "go on"
    request_id: str = field(default_factory=lambda: secrets.token_hex(8))
    future: Future[str] = field(default_factory=Future)
    place: SavepointPlace | None = None  # once its directory is made
    checkpoint_id: int | None = None  # once it is started
    failed: bool = False
    _path: str | None = None  # once it exists

    def __post_init__(self) -> None:
        self.future.set_running_or_notify_cancel()  # it cannot be given up: the job decides

    @property
    def synchronous(self) -> bool:
        """Whether the job ends with it."""
        return self.then in ("stop", "drain")

    @property
    def exists(self) -> bool:
        """Whether it is complete."""
        return self._path is not None

    @property
    def order(self) -> SavepointOrder:
        """What the slots are told."""
        assert self.place is not None
        return SavepointOrder(self.place.files.address, self.native)

    def complete(self) -> str:
        """It exists. Where the job goes on, whoever asked hears of it now."""
        assert self.place is not None
        self._path = self.place.files.url
        if self.then == "go on":
            self.future.set_result(self._path)
        return self._path

    def fail(self, why: str) -> None:
        """It will not exist."""
        self.failed = True
        self._answer_with_error(f"the savepoint was not taken: {why}")

    def job_ended(self, status: JobStatus) -> None:
        """The job is over: answer, if that has not happened."""
        if self._path is None:
            self.fail(f"the job is over ({status.name})")
        elif status is _WANTED_END.get(self.then):
            if not self.future.done():
                self.future.set_result(self._path)
        else:
            self.not_ended(f"the job is {status.name}")

    def not_ended(self, why: str) -> None:
        """The savepoint exists, but the job did not end with it."""
        if self._path is not None:
            self._answer_with_error(f"the savepoint was taken, at {self._path!r}, but the job did not end so: {why}")
        else:
            self.fail(why)

    def _answer_with_error(self, message: str) -> None:
        if not self.future.done():
            self.future.set_exception(CheckpointError(message))
