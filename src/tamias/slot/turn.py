"""The turn to run code of the user: one thread at a time, and requests of the driver before the mailbox's next step."""

from __future__ import annotations

import threading
from types import TracebackType

__all__ = ["Turn"]


class Turn:
    """A lock that the mailbox gives away between two of its steps to whoever asks for it.

    A plain lock is not fair: a thread that releases it and takes it again at once would keep all others waiting.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asking = 0
        self._changed = threading.Condition(threading.Lock())

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def acquire(self, timeout_s: float = -1) -> bool:
        """Take the turn as soon as the running step has ended; return False if that took too long."""
        with self._changed:
            self._asking += 1
        taken = self._lock.acquire(timeout=timeout_s)
        with self._changed:
            self._asking -= 1
            self._changed.notify_all()
        return taken

    def release(self) -> None:
        self._lock.release()

    def acquire_after_requests(self) -> None:
        """Take the turn when no request waits for it."""
        if self._asking:
            with self._changed:
                self._changed.wait_for(lambda: not self._asking)
        self._lock.acquire()
