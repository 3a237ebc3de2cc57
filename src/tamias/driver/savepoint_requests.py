"""Requests for savepoints: from the thread that asks, through the loop that takes them, to the answer."""

from __future__ import annotations

import logging
import secrets
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Literal

from tamias.checkpoint.savepoint_files import SavepointPlace, new_savepoint
from tamias.errors import CheckpointError, TamiasError
from tamias.functions.job_status import JobStatus
from tamias.operators.epoch import SavepointOrder

__all__ = ["SavepointRequest", "SavepointRequests", "Then"]

_log = logging.getLogger(__name__)

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
    def path(self) -> str:
        """Where it lies, once it exists."""
        assert self._path is not None
        return self._path

    @property
    def exists(self) -> bool:
        """Whether it is complete."""
        return self._path is not None

    @property
    def order(self) -> SavepointOrder:
        """What the slots are told."""
        assert self.place is not None
        return SavepointOrder(self.place.files.address, self.native)

    def complete(self) -> None:
        """It exists. Where the job goes on, whoever asked hears of it now."""
        assert self.place is not None
        self._path = self.place.files.url
        if self.then == "go on":
            self.future.set_result(self._path)

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


class SavepointRequests:
    """The savepoints of one job: asked for, under way, given up. Whoever asked hears how it ended, once."""

    def __init__(self, job_id: str) -> None:
        self._job_id = job_id
        self._open: dict[str, SavepointRequest] = {}  # by their id; those who asked have not heard yet
        self._under_way: dict[int, SavepointRequest] = {}  # by their number
        self._given_up: dict[int, SavepointPlace] = {}  # by their number; a slot may still be writing to it

    def admit(self, request: SavepointRequest, refusal: str | None) -> bool:
        """Make the directory of a savepoint; False when there can be none, and whoever asked has heard why."""
        self._open[request.request_id] = request
        if refusal is None:
            try:
                request.place = new_savepoint(request.directory, self._job_id)
                return True
            except (TamiasError, OSError) as error:
                refusal = str(error)
        self.refuse(request.request_id, refusal)
        return False

    def start(self, request_id: str, checkpoint_id: int) -> SavepointOrder:
        """An epoch will carry it; answers what the slots are told."""
        request = self._under_way[checkpoint_id] = self._open[request_id]
        request.checkpoint_id = checkpoint_id
        return request.order

    def get(self, checkpoint_id: int) -> SavepointRequest | None:
        """The savepoint under way with this number; None for a checkpoint."""
        return self._under_way.get(checkpoint_id)

    def completed(self, checkpoint_id: int) -> SavepointRequest | None:
        """It exists; None for a checkpoint."""
        request = self._under_way.pop(checkpoint_id, None)
        if request is not None:
            request.complete()
            if request.then == "go on":
                del self._open[request.request_id]
        return request

    def give_up(self, checkpoint_id: int, why: str) -> bool:
        """It will not exist; False for a checkpoint."""
        request = self._under_way.pop(checkpoint_id, None)
        if request is None:
            return False
        assert request.place is not None
        self._given_up[checkpoint_id] = request.place
        self.refuse(request.request_id, why)
        return True

    def refuse(self, request_id: str, why: str) -> None:
        """It will not be started, or is given up."""
        request = self._open.pop(request_id, None)  # a checkpoint that nobody asked for has no request
        if request is not None:
            request.fail(why)
            if request.checkpoint_id is None and request.place is not None:
                _remove(request.place)

    def remove_given_up(self, checkpoint_id: int) -> bool:
        """Remove what there is of one that was given up, again if need be; False for any other."""
        place = self._given_up.get(checkpoint_id)
        if place is not None:
            _remove(place)
        return place is not None

    def remove_unfinished(self) -> None:
        """The job is over and nobody writes any more: remove what there is of savepoints that will never exist."""
        asked_for = [r.place for r in self._open.values() if r.place is not None and not r.exists]
        for place in (*asked_for, *self._given_up.values()):
            _remove(place)

    def job_ended(self, status: JobStatus) -> None:
        """Tell those who have not heard yet that the job is over."""
        for request in self._open.values():
            request.job_ended(status)
        self._open.clear()


def _remove(place: SavepointPlace) -> None:
    try:
        place.discard()
    except OSError as error:  # rubbish, but not worth the job
        _log.warning("what there is of a savepoint could not be removed from %s: %s", place.files.url, error)
