"""The lock under which user code runs: one thread at a time, and requests of the driver before the mailbox's next step.

Readers of state do not need the lock. A reader hands over a function, which is called in a pause: between two runs of
records. The thread that holds the lock calls it (`give_way`), or the reader itself if the lock is free. So a reader
never sees the state in the middle of a step, and the job does not wait for the system to schedule the reader's thread.
A reader may also leave a function that answers its queries in every pause; then its thread need not run at all.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import NamedTuple

__all__ = ["UserCodeLock"]


class _Visit:
    """A function of a reader that waits for a pause."""

    __slots__ = ("call", "done")

    def __init__(self, call: Callable[[], None]) -> None:
        self.call = call
        self.done = threading.Lock()  # free once the call has returned
        self.done.acquire()


class _Reader(NamedTuple):
    """A reader whose queries may come at any time: `answer` is called in each pause, `freed` after each release."""

    answer: Callable[[], None]
    freed: Callable[[], None]


def _nothing() -> None:
    pass


class UserCodeLock:
    """A lock that the mailbox hands over between two steps if a request waits for it.

    A plain lock is not fair: a thread that releases it and acquires it again at once starves all others.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()  # held while a thread may run user code
        self._state = threading.Lock()  # held while a thread touches state: the holder of `_lock`, or a reader
        self._waiting_requests = 0
        self._visits: deque[_Visit] = deque()
        self._readers: tuple[_Reader, ...] = ()
        self._pauses = 0  # pauses in which readers were answered
        self._changed = threading.Condition(threading.Lock())

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def acquire(self, timeout_s: float = -1) -> bool:
        """Acquire the lock when the running step has ended; return False if that takes too long."""
        with self._changed:
            self._waiting_requests += 1
        taken = self._lock.acquire(timeout=timeout_s)
        with self._changed:
            self._waiting_requests -= 1
            self._changed.notify_all()
        if taken:
            self._state.acquire()
        return taken

    def release(self, *, resumes: bool = False) -> None:
        """Release the lock.

        Args:
            resumes: Whether the caller acquires it again at once. If so, readers leave their queries to the caller.
        """
        self._state.release()
        self._lock.release()
        self._answer_if_free()
        if not resumes:
            for reader in self._readers:
                reader.freed()

    @property
    def has_waiting_requests(self) -> bool:
        """Whether a request waits for the lock."""
        return self._waiting_requests > 0

    def acquire_after_requests(self) -> None:
        """Acquire the lock when no request waits for it, and answer the readers that wait."""
        if self._waiting_requests:
            with self._changed:
                self._changed.wait_for(lambda: not self._waiting_requests)
        self._lock.acquire()
        self._state.acquire()
        self.give_way()

    # ---------------------------------------------------------------------------------------------- readers of state

    def give_way(self) -> bool:
        """Answer the readers that wait now; return whether others may come soon.

        Called by the holder of the lock, between two steps of user code.
        """
        if self._visits:
            self._answer()
        readers = self._readers
        if not readers:
            return False
        self._pauses += 1
        for reader in readers:
            reader.answer()
        return True

    def pauses_since(self, pauses: int) -> int | None:
        """Return the number of pauses so far, or None if it has not grown beyond `pauses` or the lock is free.

        If None, the holder of the lock does not answer queries soon: there is no holder, or a step takes long.
        """
        return self._pauses if self._pauses != pauses and self._lock.locked() else None

    def at_pause(self, call: Callable[[], None], timeout_s: float) -> bool:
        """Have a function called between two steps of user code, on any thread; return False if that takes too long.

        The function must not raise.
        """
        visit = _Visit(call)
        self._visits.append(visit)
        self._answer_if_free()
        if visit.done.acquire(timeout=timeout_s):
            return True
        try:
            self._visits.remove(visit)
        except ValueError:  # it is being called now
            visit.done.acquire()
            return True
        return False

    @contextmanager
    def expecting_readers(
        self, answer: Callable[[], None] = _nothing, freed: Callable[[], None] = _nothing
    ) -> Iterator[None]:
        """Announce that readers may come at any time in this block: the holder of the lock then gives way more often.

        Args:
            answer: Called in every pause by the holder of the lock. It must not raise or wait.
            freed: Called when the lock has been released. It must not raise or wait.
        """
        reader = _Reader(answer, freed)
        with self._changed:
            self._readers = (*self._readers, reader)
        try:
            yield
        finally:
            with self._changed:
                self._readers = tuple(each for each in self._readers if each is not reader)

    def _answer_if_free(self) -> None:
        """Call the waiting functions, unless user code runs: its thread calls them at its next pause or at its end."""
        # A thread that releases `_state` looks again: it sees earlier visits, and a later one finds `_state` free.
        while self._visits and self._state.acquire(blocking=False):
            self._answer()
            self._state.release()

    def _answer(self) -> None:
        """Call the functions that wait now, but not those that come meanwhile: readers must not stop the job."""
        for _ in range(len(self._visits)):
            try:
                visit = self._visits.popleft()
            except IndexError:  # a reader has given up
                return
            try:
                visit.call()
            finally:
                visit.done.release()
