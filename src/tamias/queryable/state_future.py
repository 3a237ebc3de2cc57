"""The future of a query: one of `concurrent.futures` that consists of fewer objects.

A client may have tens of thousands of futures in a second. Python's collector counts objects: where many are on their
way, it walked the whole heap of the client twice a second, and every query of that time waited for it. A plain future
has ten objects, because of the condition on which a caller may wait. Here the condition is made when somebody waits.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import Generic, TypeVar

__all__ = ["StateFuture"]

T = TypeVar("T")


class StateFuture(Future[T], Generic[T]):
    """A future of an answer that is on its way: it cannot be cancelled."""

    def __init__(self) -> None:
        super().__init__()
        self._condition: _LateCondition = _LateCondition()  # type: ignore[assignment]  # what a future uses of one
        self.set_running_or_notify_cancel()


class _LateCondition:
    """A condition over a lock of its own, of which only the lock is there until somebody waits."""

    __slots__ = ("_condition", "_lock")

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._condition: threading.Condition | None = None

    def acquire(self) -> bool:
        return self._lock.acquire()

    def release(self) -> None:
        self._lock.release()

    def __enter__(self) -> bool:
        return self._lock.acquire()

    def __exit__(self, *raised: object) -> None:
        self._lock.release()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for `notify_all`. Called with the lock, which is free meanwhile."""
        if self._condition is None:
            self._condition = threading.Condition(self._lock)
        return self._condition.wait(timeout)

    def notify_all(self) -> None:
        """Wake whoever waits. Called with the lock."""
        if self._condition is not None:
            self._condition.notify_all()
