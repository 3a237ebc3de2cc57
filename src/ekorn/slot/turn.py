"""The turn to run code of the user: one thread at a time, and requests of the driver before the mailbox's next step.

Readers of state do not need the turn. What they call is called between two runs of records: by whoever has the turn
(`give_way`), or by the reader if nobody has it. So a reader sees the state between two steps of the user's code, and
never a half of one, and the job does not wait until the system gets round to running the reader's thread. A reader may
also leave a function that looks for its queries in every pause: then its thread need not run at all.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import NamedTuple

__all__ = ["Turn"]


class _Visit:
    """A call of a reader that waits for a pause."""

    __slots__ = ("call", "done")

    def __init__(self, call: Callable[[], None]) -> None:
        self.call = call
        self.done = threading.Lock()  # free once the call has returned
        self.done.acquire()


class _Reader(NamedTuple):
    """A reader that may come at any time: what is called in each pause, and when nobody has the turn any more."""

    answer: Callable[[], None]
    freed: Callable[[], None]


def _nothing() -> None:
    pass


class Turn:
    """A lock that the mailbox gives away between two of its steps to whoever asks for it.

    A plain lock is not fair: a thread that releases it and takes it again at once would keep all others waiting.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()  # held by whoever has the turn
        self._state = threading.Lock()  # held by whoever touches state now: the holder of the turn, or a reader
        self._asking = 0
        self._visits: deque[_Visit] = deque()
        self._readers: tuple[_Reader, ...] = ()
        self._pauses = 0  # in which they were called
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

    def release(self, *, resumes: bool = False) -> None:
        """Give the turn back.

        Args:
            resumes: Whether the caller takes it again at once. Then readers leave their queries to it.
        """
        self._state.release()
        self._lock.release()
        self._receive_if_free()
        if not resumes:
            for reader in self._readers:
                reader.freed()

    @property
    def is_wanted(self) -> bool:
        """Whether a request waits for the turn."""
        return self._asking > 0

    def acquire_after_requests(self) -> None:
        """Take the turn when no request waits for it. The calls of readers that wait now are made."""
        if self._asking:
            with self._changed:
                self._changed.wait_for(lambda: not self._asking)
        self._lock.acquire()
        self._state.acquire()
        self.give_way()

    # ---------------------------------------------------------------------------------------------- readers of state

    def give_way(self) -> bool:
        """Make the calls of the readers that wait now; return whether others may come soon.

        Called by the holder of the turn, between two steps of user code.
        """
        if self._visits:
            self._receive()
        readers = self._readers
        if not readers:
            return False
        self._pauses += 1
        for reader in readers:
            reader.answer()
        return True

    def pauses_since(self, pauses: int) -> int | None:
        """Return how many pauses there have been, if the holder of the turn has made some since that many; else None.

        Without one, what a reader has left is not called soon: nobody has the turn, or a step takes long.
        """
        return self._pauses if self._pauses != pauses and self._lock.locked() else None

    def at_pause(self, call: Callable[[], None], timeout_s: float) -> bool:
        """Have a function called between two steps of user code, on any thread; return False if that took too long.

        The function raises nothing.
        """
        visit = _Visit(call)
        self._visits.append(visit)
        self._receive_if_free()
        if visit.done.acquire(timeout=timeout_s):
            return True
        try:
            self._visits.remove(visit)
        except ValueError:  # it is being called at this moment
            visit.done.acquire()
            return True
        return False

    @contextmanager
    def expecting_readers(
        self, answer: Callable[[], None] = _nothing, freed: Callable[[], None] = _nothing
    ) -> Iterator[None]:
        """Say that readers may come at any time in this block: whoever has the turn then gives way more often.

        Args:
            answer: Called in every pause by whoever has the turn. It raises nothing and never waits.
            freed: Called when the turn has been given back. It raises nothing and never waits.
        """
        reader = _Reader(answer, freed)
        with self._changed:
            self._readers = (*self._readers, reader)
        try:
            yield
        finally:
            with self._changed:
                self._readers = tuple(each for each in self._readers if each is not reader)

    def _receive_if_free(self) -> None:
        """Make the calls that wait, unless user code runs: it makes them at its next pause, or when it ends."""
        # Whoever releases the state looks again: an earlier visit is seen, and a later one finds the state free.
        while self._visits and self._state.acquire(blocking=False):
            self._receive()
            self._state.release()

    def _receive(self) -> None:
        """Make the calls that wait now, and not those that come meanwhile: readers must not stop the job."""
        for _ in range(len(self._visits)):
            try:
                visit = self._visits.popleft()
            except IndexError:  # a reader has given up
                return
            try:
                visit.call()
            finally:
                visit.done.release()
