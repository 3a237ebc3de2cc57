"""Operations that take longer than a request.

A client triggers one, gets an id, and polls until the operation is done.
"""

from __future__ import annotations

import re
import secrets
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import Any, TypeVar

from ekorn.errors import EkornError
from ekorn.web.http_messages import HttpError, not_found

__all__ = ["Operations", "checkpoint_scope", "in_background"]

_MOST_OPERATIONS = 1000
_TRIGGER_ID = re.compile("[0-9a-fA-F]{32}")

T = TypeVar("T")

Outcome = Callable[[Any], dict[str, Any]]


@dataclass(frozen=True)
class _Operation:
    future: Future[Any]
    outcome: Outcome
    failure_field: str


def checkpoint_scope(job_id: str) -> str:
    """Return the scope of a job's requested checkpoints.

    Their trigger ids are separate from those of its savepoints.
    """
    return f"checkpoints of {job_id}"


class Operations:
    """The latest operations of a server, by scope (what the operation is done to) and trigger id. Thread-safe.

    An operation is remembered after it is done, so that every client that waits for it learns the outcome. The oldest
    ones are forgotten.
    """

    def __init__(self, most: int = _MOST_OPERATIONS) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._operations: dict[tuple[str, str], _Operation] = {}

    def begin(
        self,
        scope: str,
        trigger_id: Any,
        start: Callable[[], Future[Any]],
        outcome: Outcome = lambda result: {},
        *,
        failure_field: str = "failure-cause",
    ) -> dict[str, str]:
        """Start an operation; return the answer with its id.

        Args:
            scope: What it is done to.
            trigger_id: The id that the client chose; None for a new one. A second request with the same id starts
                nothing: the client did not hear the first answer.
            start: Starts it.
            outcome: Makes the answer of the result.
            failure_field: The name of the field with the reason for a failure.

        Raises:
            HttpError: The id is malformed, or the operation cannot be started.
        """
        if trigger_id is None:
            trigger_id = secrets.token_hex(16)
        if not isinstance(trigger_id, str) or not _TRIGGER_ID.fullmatch(trigger_id):
            raise HttpError(400, "a triggerId has 32 hex digits")
        key = scope, trigger_id.lower()
        with self._lock:
            if key not in self._operations:
                try:
                    self._operations[key] = _Operation(start(), outcome, failure_field)
                except EkornError as error:
                    raise HttpError(400, str(error)) from error
                self._forget()
        return {"request-id": key[1]}

    def answer(self, scope: str, trigger_id: str, *, when_done: bool = False) -> dict[str, Any]:
        """Return the state of an operation and, once it is done, its outcome.

        Args:
            scope: What it is done to.
            trigger_id: The id of the operation.
            when_done: Whether to wait until it is done.

        Raises:
            HttpError: There is no such operation, or it is no longer kept.
        """
        with self._lock:
            found = self._operations.get((scope, trigger_id.lower()))
        if found is None:
            not_found(f"there is no operation {trigger_id[:40]!r}, or it is no longer kept")
        if when_done:
            wait([found.future])
        if not found.future.done():
            return {"status": {"id": "IN_PROGRESS"}, "operation": None}
        error = found.future.exception()
        if error is not None:
            return {"status": {"id": "COMPLETED"}, "operation": {found.failure_field: failure_cause(error)}}
        return {"status": {"id": "COMPLETED"}, "operation": found.outcome(found.future.result())}

    def done(self, scope: str) -> list[str]:
        """Return the trigger ids of the completed operations of a scope that are remembered."""
        with self._lock:
            return [key[1] for key, each in self._operations.items() if key[0] == scope and each.future.done()]

    def _forget(self) -> None:
        surplus = len(self._operations) - self._most
        done = [key for key, each in self._operations.items() if each.future.done()]
        for key in done[: max(surplus, 0)]:
            del self._operations[key]


def failure_cause(error: BaseException) -> dict[str, str]:
    """Return an error in Flink's form, without a serialized object of Java."""
    return {
        "class": f"{type(error).__module__}.{type(error).__qualname__}",
        "stack-trace": str(error) or type(error).__name__,
        "serialized-throwable": "",
    }


def in_background(work: Callable[[], T]) -> Future[T]:
    """Do work on a thread of its own; return a future of its result."""
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # the client gets it as the outcome
            future.set_exception(error)

    threading.Thread(target=run, name="ekorn-rest-operation", daemon=True).start()
    return future
