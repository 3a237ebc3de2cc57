"""A slot's side of the connection for queries of state: takes all queries that have arrived, and answers them together.

While user code runs, its own thread does that in its pauses, without waiting: it takes what has arrived, looks the keys
up, and sends the answers. No other thread needs to run for a query, and none interrupts user code. While user code is
not running, the thread of the connection does the same. That thread also does what may take long: it reads the files of
checkpoints, sends what the connection does not take at once, and refuses queries for which user code does not pause.
"""

from __future__ import annotations

import pickle
import threading
from collections import deque
from collections.abc import Sequence
from typing import Protocol

from ekorn.errors import QueryError
from ekorn.links.link import Link
from ekorn.slot.user_code_lock import UserCodeLock
from ekorn.slot_protocol.state_query import Found, StateQuery
from ekorn.slot_protocol.task_messages import ACK, FAILED
from ekorn.types.by_value import dumps

__all__ = ["QueryConnection"]

_KEYS_IN_A_PAUSE = 1000
_LEAVES_S = 0.02  # how long the connection's thread leaves queries to user code that pauses
_LOOK_S = 0.05  # until the thread looks whether something needs it that user code has taken off the connection


class Queried(Protocol):
    """What has the state: the host of a slot."""

    @property
    def user_code(self) -> UserCodeLock:
        """The lock under which user code runs."""

    def look_up_all(self, queries: Sequence[StateQuery]) -> Sequence[Found]:
        """Wait for a pause of user code and return the answers. Thread-safe."""

    def look_up_now(self, queries: Sequence[StateQuery]) -> Sequence[Found]:
        """Return the answers to queries of live state. Called in a pause, by the holder of the lock on user code."""


class QueryConnection:
    """The queries of one connection, and their answers in the same order."""

    def __init__(self, link: Link, host: Queried) -> None:
        self._link = link
        self._host = host
        self._answering = threading.Lock()  # held from taking queries until their answers have been sent
        self._queries: deque[StateQuery] = deque()  # arrived, but not answered
        self._rest: bytes | None = None  # the end of answers that the connection did not take at once
        self._error: Exception | None = None  # raised in a pause
        self._needs_thread = False  # something waits that is not done in a pause
        self._wake = threading.Event()  # the connection's thread: the lock is free, or something needs the thread

    def serve(self) -> None:
        """Answer queries until the connection ends: ACK and a pickled list of values, or FAILED and the error.

        Raises:
            EOFError: The driver has closed the connection.
        """
        user_code = self._host.user_code
        if not self._link.never_waits:
            with user_code.expecting_readers():
                while True:
                    self._arrived(self._link.receive_arrived())
                    while self._queries:
                        self._answer_next()
        try:
            with user_code.expecting_readers(self._answer_in_pause, self._wake.set):
                while True:
                    self._leave_to(user_code)
                    if self._needs_thread or self._queries or self._link.wait(_LOOK_S):
                        with self._answering:
                            self._answer_here()
        finally:
            # The caller closes the connection: wait for a pause that uses it, and keep later ones from it.
            with self._answering:
                self._error = self._error or EOFError("the connection has ended")

    def _leave_to(self, user_code: UserCodeLock) -> None:
        """Wait while user code answers in its pauses, and nothing needs this thread."""
        pauses = 0
        while not self._needs_thread and (now := user_code.pauses_since(pauses)) is not None:
            pauses = now
            self._wake.wait(_LEAVES_S)
            self._wake.clear()

    def _answer_here(self) -> None:
        """Answer what has arrived, on the connection's thread."""
        if self._error is not None:
            raise self._error
        if self._rest is not None:
            self._link.send_rest(self._rest)
            self._rest = None
        if not self._queries:
            self._arrived(self._link.take_arrived())
        if self._queries:
            self._answer_next()
        self._needs_thread = self._waits_for_thread()

    def _waits_for_thread(self) -> bool:
        """Return whether the rest of an answer, an error or a query of a checkpoint waits. Called in the lock."""
        of_checkpoint = bool(self._queries) and self._queries[0].checkpoint is not None
        return of_checkpoint or self._rest is not None or self._error is not None

    def _answer_next(self) -> None:
        queries = self._next_queries()
        self._link.send_each([_encoded(found) for found in self._host.look_up_all(queries)])

    def _answer_in_pause(self) -> None:
        """Answer what has arrived, on the thread of user code. Never waits, never raises."""
        if not self._answering.acquire(blocking=False):
            return
        try:
            if self._rest is None and self._error is None:
                if not self._queries:
                    self._arrived(self._link.take_arrived())
                if self._queries and self._queries[0].checkpoint is None:
                    found = self._host.look_up_now(self._next_queries())
                    self._rest = self._link.send_each_now([_encoded(each) for each in found])
        except Exception as error:  # not an error of user code: the connection's thread raises it
            self._error = error
        finally:
            self._needs_thread = needed = self._waits_for_thread()
            self._answering.release()
        if needed:
            self._wake.set()

    def _arrived(self, messages: list[bytes]) -> None:
        self._queries.extend(pickle.loads(message) for message in messages)

    def _next_queries(self) -> list[StateQuery]:
        """Take queries that one pause answers, so that no pause is long: all of live state, or one of a checkpoint."""
        queries = self._queries
        chosen = [queries.popleft()]
        keys = len(chosen[0].keys)
        while queries and chosen[0].checkpoint is None and queries[0].checkpoint is None:
            keys += len(queries[0].keys)
            if keys > _KEYS_IN_A_PAUSE:
                break
            chosen.append(queries.popleft())
        return chosen


def _encoded(found: Found) -> bytes:
    return FAILED + dumps(found) if isinstance(found, QueryError) else ACK + dumps(found)
