"""What has failed of a job that runs continuously, until it restarts. Pure, and thread-safe."""

from __future__ import annotations

import threading
from collections.abc import Collection

from ekorn.engine.protocol import Failure
from ekorn.errors import DeploymentError, SlotLostError
from ekorn.graph.addresses import SubtaskId

__all__ = ["FlowFailures", "is_telling"]


def is_telling(error: BaseException) -> bool:
    """Return whether an error says what was wrong: a connection breaks when something else has failed."""
    return not isinstance(error, (SlotLostError, DeploymentError))


class FlowFailures:
    """The first telling error of every subtask that has failed, or of all of them together.

    >>> failures, one, other = FlowFailures(), SubtaskId(0, 0), SubtaskId(1, 0)
    >>> failures.add(DeploymentError("its task is gone"), {one})
    >>> failures.add(ValueError("no 42"), {other})
    >>> failures.failure.error, failures.failure.subtasks == {one, other}
    (ValueError('no 42'), True)
    >>> failures.forget({other})
    >>> failures.failure.subtasks
    frozenset({SubtaskId(vertex=0, subtask=0)})
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._errors: dict[SubtaskId, BaseException] = {}
        self._of_all: BaseException | None = None  # after it the state of every subtask is unknown

    def add(self, error: BaseException, subtasks: Collection[SubtaskId] = ()) -> None:
        """Note an error of some subtasks; without any, of all of them."""
        with self._lock:
            if not subtasks and (self._of_all is None or not is_telling(self._of_all)):
                self._of_all = error
            for subtask in subtasks:
                if subtask not in self._errors or not is_telling(self._errors[subtask]):
                    self._errors[subtask] = error

    def forget(self, subtasks: Collection[SubtaskId]) -> None:
        """Forget the errors of subtasks that restart."""
        with self._lock:
            for subtask in subtasks:
                self._errors.pop(subtask, None)

    def clear(self) -> None:
        """Forget everything: all subtasks restart."""
        with self._lock:
            self._errors.clear()
            self._of_all = None

    @property
    def failure(self) -> Failure | None:
        """The most telling error, and all subtasks that have failed; None if nothing has."""
        with self._lock:
            errors = [*self._errors.values(), *([] if self._of_all is None else [self._of_all])]
            failed = frozenset(self._errors) if self._of_all is None else frozenset()
        if not errors:
            return None
        return Failure(next(filter(is_telling, errors), errors[0]), subtasks=failed)
