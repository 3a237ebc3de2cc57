"""The connection of a client with a driver: keys that wait at the same time travel in one message.

Keys that are asked for one after another leave at once. Where many are asked for at a time, a message leaves every two
milliseconds, with the keys that have gathered meanwhile: the more there are, the less each of them costs.
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
from ekorn.driver.queries.query_wire import decode_answer, encode_query
from ekorn.errors import DeploymentError, QueryError, QueryRefused, StateNotServed
from ekorn.links.link import Link
from ekorn.links.pipelined_link import PipelinedLink

__all__ = ["MESSAGES_AT_ONCE", "MOST_KEYS", "Asked", "QueryBatches", "Target"]

MOST_KEYS = 2_000  # in one message; more keys go into the next
MESSAGES_AT_ONCE = 4  # without an answer
_GATHER_S = 0.002  # between two messages, where keys of several calls travel together
_KEYS, _ANSWERS = "keys", "answers"  # what the thread waits for
_ANSWER_S = 3600.0  # the driver limits how long a query waits for user code; this ends a wait for a driver that hangs


class Target(NamedTuple):
    """The state that some keys are looked up in."""

    job: str
    name: str
    consistency: Consistency


class Asked(Protocol):
    """Some keys of one call, which travel in one message, and what waits for their values."""

    @property
    def target(self) -> Target:
        """The state."""

    @property
    def size(self) -> int:
        """How many keys there are."""

    @property
    def keys(self) -> Sequence[Any]:
        """The keys."""

    def give(self, kind: str, values: list[bytes | None]) -> None:
        """Take the kind of the state, and the pickled value of each key. Raises nothing."""

    def fail(self, error: Exception) -> None:
        """Take the error that there is instead of values. Raises nothing."""


class QueryBatches:
    """Sends keys to a driver and gives the answers to those that asked. Thread-safe.

    Args:
        connect: Connects with the driver.
        where: The driver, for errors.
        now_s: The time of a clock that never goes back, in seconds.
    """

    def __init__(self, connect: Callable[[], Link], where: str, now_s: Callable[[], float] = time.monotonic) -> None:
        self._connect = connect
        self._where = where
        self._now_s = now_s
        self._waiting: deque[Asked] = deque()
        self._changed = threading.Condition(threading.Lock())
        self._waits_for: str | None = None  # what the thread waits for, which whoever brings it must tell it
        self._unanswered = 0  # messages
        self._gathers = False  # whether the last one had keys of several calls, and left none behind
        self._sent_at_s = 0.0  # when the last one left
        self._closed = False
        self._link: PipelinedLink | None = None
        self._thread: threading.Thread | None = None

    def ask(self, asked: Sequence[Asked]) -> None:
        """Let keys wait for the next message.

        Raises:
            QueryError: The client is shut down.
        """
        with self._changed:
            if self._closed:
                raise QueryError("the client is shut down")
            self._waiting.extend(asked)
            if self._waits_for is _KEYS:  # else it looks for keys by itself, and to wake it would cost more than a key
                self._waits_for = None
                self._changed.notify()
            if self._thread is None:
                self._thread = threading.Thread(target=self._send_all, name="ekorn-query-client", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """Close the connection. Keys without an answer fail."""
        with self._changed:
            self._closed = True
            self._changed.notify()
            link = self._link
        if link is not None:
            link.close()
        if self._thread is not None:
            self._thread.join()

    def _send_all(self) -> None:
        """Send what waits, message by message, until the client is shut down."""
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
        """Return how long keys gather for the next message; None: until one is asked for, or an answer arrives.

        Where keys gather, the thread sleeps for the whole time: it need not run when the first of them is asked for.
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
        """Take the keys of one state that wait next to each other, and no part of a call's keys."""
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
        try:
            message = _encoded(batch)
            link = self._connected(target)
        except Exception as error:  # also one of the token, say: the thread goes on, and these callers learn it
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
        except Exception as error:  # the error of the answer, or one of an answer that cannot be read
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


def _encoded(batch: list[Asked]) -> bytes:
    target = batch[0].target
    try:
        return encode_query(target.job, target.name, [key for asked in batch for key in asked.keys], target.consistency)
    except Exception as error:  # whatever pickling a key of the user raises
        raise QueryRefused(f"a key cannot be sent: {error}") from error


def _fail(batch: list[Asked], error: Exception) -> None:
    for asked in batch:
        asked.fail(copy.copy(error))  # each caller raises one of its own: raising adds to an exception
