"""Sends the answers to one client's queries, in the order of the queries.

The thread that completes the oldest missing answer sends it, without blocking. It is usually the thread that receives
the answers of a slot, so no other thread has to be woken. A thread of the connection sends what the client does not
accept at once, and everything on encrypted connections, which may have to read before they can write.
"""

from __future__ import annotations

import logging
import threading
from collections import deque

from ekorn.driver.queries.answer_room import ROOM, AnswerRoom
from ekorn.driver.queries.query_routing import PendingValues
from ekorn.driver.queries.query_wire import Answer, encode_answer
from ekorn.errors import QueryError
from ekorn.links.link import Link

__all__ = ["AnswersInOrder", "refusal"]

_log = logging.getLogger(__name__)


class AnswersInOrder:
    """Sends each answer as soon as it is complete and all earlier ones have been sent. Thread-safe.

    Args:
        link: The connection of the client.
        name: The name of the sending thread.
        most: The most queries in flight.
        room: Counts the bytes that the client did not accept at once.
    """

    def __init__(self, link: Link, name: str, most: int, room: AnswerRoom = ROOM) -> None:
        self._room = room
        self._link = link
        self._name = name
        self._most = most
        self._begun: deque[PendingValues | Answer] = deque()
        self._sending = threading.Lock()  # held by a thread while it takes answers from the queue and sends them
        self._rest: bytes | None = None  # the bytes that the client did not accept at once
        self._broken = False
        self._ended = False
        self._changed = threading.Condition(threading.Lock())
        self._thread: threading.Thread | None = None

    def add(self, begun: PendingValues | Answer) -> None:
        """Send an answer after those to earlier queries; block while too many queries are in flight.

        Only one thread may call it.
        """
        with self._changed:
            self._changed.wait_for(lambda: len(self._begun) < self._most)
        self._begun.append(begun)
        if isinstance(begun, PendingValues):
            begun.add_done_callback(self._send_ready)
        else:
            self._send_ready()

    def end(self) -> None:
        """Wait until all answers have been sent or the client is gone; then close the connection."""
        with self._changed:
            self._changed.wait_for(lambda: not self._begun and self._rest is None)
            self._ended = True
            self._changed.notify_all()
        self._link.close()

    def _ready(self) -> int:
        """Return how many answers can be sent now."""
        count = 0
        while self._rest is None and count < len(self._begun) and _is_done(self._begun[count]):
            count += 1
        return count

    def _send_ready(self) -> None:
        """Send the answers that are complete, unless another thread is sending."""
        # After sending, the thread looks again: it finds answers that were completed meanwhile, and the thread that
        # completes a later one finds the lock free.
        while self._ready() and self._sending.acquire(blocking=False):
            try:
                ready = self._ready()
                messages = [encode_answer(_answer(self._begun[position])) for position in range(ready)]
                if not self._broken:
                    self._rest = self._link.send_each_now(messages)
                    if self._rest is not None:
                        self._room.keep(len(self._rest))
                for _ in messages:
                    self._begun.popleft()
            finally:
                self._sending.release()
            with self._changed:
                self._changed.notify_all()
                if self._rest is not None and self._thread is None:
                    self._thread = threading.Thread(target=self._send_rests, name=self._name, daemon=True)
                    self._thread.start()

    def _send_rests(self) -> None:
        """Send the bytes that the client did not accept at once, until `end`."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._rest is not None or self._ended)
            rest = self._rest
            if rest is None:
                return
            try:
                self._link.send_rest(rest)
            except OSError:  # the client is gone: its remaining queries are read and not answered
                self._broken = True
                self._link.shut_down()
            self._room.give_back(len(rest))
            self._rest = None
            with self._changed:
                self._changed.notify_all()
            self._send_ready()


def refusal(error: Exception) -> Answer:
    """Return the answer to a query that failed."""
    if isinstance(error, QueryError):
        return Answer(error=(type(error).__name__, error.args))
    # A defect must reach the client as an answer, and the log.
    _log.error("a query of state could not be answered", exc_info=error)
    return Answer(error=(QueryError.__name__, (f"the driver failed: {type(error).__name__}: {error}",)))


def _is_done(begun: PendingValues | Answer) -> bool:
    return isinstance(begun, Answer) or begun.is_done


def _answer(begun: PendingValues | Answer) -> Answer:
    if isinstance(begun, Answer):
        return begun
    try:
        kind, values = begun.result()
    except Exception as error:
        return refusal(error)
    return Answer(kind, values)
