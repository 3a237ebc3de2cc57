"""The connection of a client with a driver, which sends the keys of concurrent queries in batches.

A query that is made alone is sent at once. Under load, one message leaves every two milliseconds and carries all keys
that have gathered since the last one, so the cost of a message is shared by more keys as the load grows.
"""

from __future__ import annotations

import copy
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple, Protocol

from ekorn.driver.queries.query_routing import Consistency
from ekorn.driver.queries.query_wire import MOST_KEYS, decode_answer, encode_query
from ekorn.errors import DeploymentError, QueryError, QueryRefused, StateNotServed
from ekorn.links.link import Link
from ekorn.links.pipelined_link import PipelinedLink

__all__ = ["MESSAGES_AT_ONCE", "MOST_KEYS", "Asked", "QueryBatches", "Target"]

MESSAGES_AT_ONCE = 4  # the most messages in flight
_GATHER_S = 0.002  # the time between two messages while keys of several calls share a message
_KEYS, _ANSWERS = "keys", "answers"  # the events that the sending thread waits for
_ANSWER_S = 3600.0  # only for a driver that hangs: the driver itself limits how long a query waits for user code


class Target(NamedTuple):
    """A queryable state of a job, and the consistency of a query of it."""

    job: str
    name: str
    consistency: Consistency


class Asked(Protocol):
    """The keys of one call, or a part of them, that travel in one message, and the receiver of their values."""

    @property
    def target(self) -> Target:
        """The state to look the keys up in."""

    @property
    def size(self) -> int:
        """The number of keys."""

    @property
    def keys(self) -> Sequence[Any]:
        """The keys."""

    def give(self, kind: str, values: list[bytes | None]) -> None:
        """Receive the kind of the state, and the pickled value of each key. Never raises."""

    def fail(self, error: Exception) -> None:
        """Receive the error that the query ended with. Never raises."""


class QueryBatches:
    """Sends the keys of queries to a driver, and the answers back to the callers. Thread-safe.

    Args:
        connect: Connects to the driver.
        where: The address of the driver, for error messages.
        now_s: Returns the time of a monotonic clock, in seconds.
    """

    def __init__(self, connect: Callable[[], Link], where: str, now_s: Callable[[], float] = time.monotonic) -> None:
        self._connect = connect
        self._where = where
        self._now_s = now_s
        self._waiting: deque[Asked] = deque()
        self._changed = threading.Condition(threading.Lock())
        self._waits_for: str | None = None  # the event that the sending thread waits for, and must be notified of
        self._unanswered = 0  # messages in flight
        self._gathers = False  # whether the last message was under load, and took all keys that waited
        self._sent_at_s = 0.0  # the time of the last message
        self._closed = False
        self._link: PipelinedLink | None = None
        self._thread: threading.Thread | None = None

    def ask(self, asked: Sequence[Asked]) -> None:
        """Add keys to the queue for the next message.

        Raises:
            QueryError: The client is shut down.
        """
        with self._changed:
            if self._closed:
                raise QueryError("the client is shut down")
            self._waiting.extend(asked)
            if self._waits_for is _KEYS:  # otherwise the thread finds them by itself: a wake-up costs more than a key
                self._waits_for = None
                self._changed.notify()
            if self._thread is None:
                self._thread = threading.Thread(target=self._send_all, name="ekorn-query-client", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """Close the connection. Queries in flight fail."""
        with self._changed:
            self._closed = True
            self._changed.notify()
            link = self._link
        if link is not None:
            link.close()
        if self._thread is not None:
            self._thread.join()

    def _send_all(self) -> None:
        """Send the queued keys, message by message, until the client is shut down."""
        while True:
            with self._changed:
                while not self._closed and (pause_s := self._pause_s()) != 0.0:
                    self._changed.wait(pause_s)
                self._waits_for = None
                if self._closed:
                    left = list(self._waiting)
                    break
                batch = self._next_batch()
                self._gathers = (len(batch) > 1 or self._unanswered > 0) and not self._waiting
                self._unanswered += 1
                self._sent_at_s = self._now_s()
            self._send(batch)
        _fail(left, QueryError("the client is shut down"))
        if self._link is not None:
            self._link.close()

    def _pause_s(self) -> float | None:
        """Return how long to wait before the next message; None to wait for a key or an answer.

        Under load the thread sleeps until the next message is due, and is not woken by every key.
        """
        self._waits_for = None
        if self._unanswered >= MESSAGES_AT_ONCE:
            self._waits_for = _ANSWERS
            return None
        pause_s = max(0.0, self._sent_at_s + _GATHER_S - self._now_s()) if self._gathers else 0.0
        if not self._waiting and pause_s == 0.0:
            self._waits_for = _KEYS
            return None
        return pause_s

    def _next_batch(self) -> list[Asked]:
        """Take the queries of one state from the head of the queue, up to the most keys of a message."""
        waiting = self._waiting
        batch = [waiting.popleft()]
        target, keys = batch[0].target, batch[0].size
        while waiting and waiting[0].target == target:
            keys += waiting[0].size
            if keys > MOST_KEYS:
                break
            batch.append(waiting.popleft())
        return batch

    def _send(self, batch: list[Asked]) -> None:
        def answered(answer: Future[bytes]) -> None:
            self._answered()
            self._give(batch, answer)

        target = batch[0].target
        message, rest = _encoded(batch)
        if rest:
            batch = batch[: len(batch) - len(rest)]
            with self._changed:
                self._waiting.extendleft(reversed(rest))
        try:
            if isinstance(message, QueryRefused):
                raise message
            link = self._connected(target)
        except Exception as error:  # such as a token that cannot be read: the callers get it, and the thread goes on
            self._answered()
            _fail(batch, error)
            return
        link.ask(message, _ANSWER_S).add_done_callback(answered)

    def _answered(self) -> None:
        with self._changed:
            self._unanswered -= 1
            if self._waits_for is _ANSWERS:
                self._waits_for = None
                self._changed.notify()

    def _give(self, batch: list[Asked], message: Future[bytes]) -> None:
        try:
            answer = decode_answer(message.result())
            answer.raise_error()
        except (OSError, EOFError) as error:
            _fail(batch, self._silent(batch[0].target, error))
        except Exception as error:  # the error in the answer, or an answer that cannot be decoded
            _fail(batch, error)
        else:
            start = 0
            for asked in batch:
                end = start + asked.size
                asked.give(answer.kind, answer.values[start:end])
                start = end

    def _connected(self, target: Target) -> PipelinedLink:
        if self._link is None or self._link.is_broken:
            try:
                self._link = PipelinedLink(self._connect(), "ekorn-query-answers")
            except (OSError, EOFError) as error:
                raise self._silent(target, error) from error
            except DeploymentError as error:
                raise QueryError(f"the driver at {self._where} does not accept the token: {error}") from None
        return self._link

    def _silent(self, target: Target, error: Exception) -> StateNotServed:
        return StateNotServed(target.name, f"the driver at {self._where} does not answer: {error}")


def _encoded(batch: list[Asked]) -> tuple[bytes | QueryRefused, list[Asked]]:
    """Return a message with the keys of the first calls, or why they cannot be sent, and the calls left for later.

    A call whose keys cannot be sent, or that fills a message, thus fails or travels without the others.
    """
    target, size = batch[0].target, len(batch)
    while True:
        keys = [key for asked in batch[:size] for key in asked.keys]
        try:
            return encode_query(target.job, target.name, keys, target.consistency), batch[size:]
        except Exception as error:  # a bound of the message, or whatever the fields of a user's key raise
            if size == 1:
                refused = error if isinstance(error, QueryRefused) else QueryRefused(f"a key cannot be sent: {error}")
                return refused, batch[1:]
            size //= 2


def _fail(batch: list[Asked], error: Exception) -> None:
    for asked in batch:
        asked.fail(copy.copy(error))  # a copy for each caller, because raising adds a traceback to the exception
