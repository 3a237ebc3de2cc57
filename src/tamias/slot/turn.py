"""The turn to run code of the user: one thread at a time, and requests of the driver before the mailbox's next step.

Whoever has the turn may let readers of state in for a moment (`give_way`), between two runs of records: they see the
state between two steps of the user's code, and never a half of one. Requests keep waiting until the turn is over.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

__all__ = ["Turn"]


class Turn:
    """A lock that the mailbox gives away between two of its steps to whoever asks for it.

    A plain lock is not fair: a thread that releases it and takes it again at once would keep all others waiting.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()  # held by whoever has the turn
        self._state = threading.Lock()  # held by whoever touches state now: the holder of the turn, or a reader
        self._asking = 0
        self._reading = 0  # readers that wait or read
        self._read = 0  # how many have read
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
        if taken:
            self._state.acquire()
        return taken

    def release(self) -> None:
        self._state.release()
        self._lock.release()

    def acquire_after_requests(self) -> None:
        """Take the turn when no request waits for it, and when the readers that wait now have read."""
        if self._asking:
            with self._changed:
                self._changed.wait_for(lambda: not self._asking)
        self._lock.acquire()
        self._wait_for_readers()
        self._state.acquire()

    # ---------------------------------------------------------------------------------------------- readers of state

    def give_way(self) -> None:
        """Let the readers that wait now read. Called by the holder of the turn, between two steps of user code."""
        if self._reading:
            self._state.release()
            self._wait_for_readers()
            self._state.acquire()

    def _wait_for_readers(self) -> None:
        """Wait for those that wait now, and not for those that come meanwhile: readers must not stop the job."""
        if self._reading:
            with self._changed:
                enough = self._read + self._reading
                self._changed.wait_for(lambda: self._read >= enough)

    @contextmanager
    def reading(self, timeout_s: float) -> Iterator[bool]:
        """Wait until state may be read; yield False if that took too long. The state may be read inside the block."""
        with self._changed:
            self._reading += 1
        allowed = self._state.acquire(timeout=timeout_s)
        try:
            yield allowed
        finally:
            if allowed:
                self._state.release()
            with self._changed:
                self._reading -= 1
                self._read += 1
                self._changed.notify_all()
