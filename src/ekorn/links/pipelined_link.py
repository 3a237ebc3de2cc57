"""A connection whose peer answers every message, in order. Many messages may wait for their answers at once."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from concurrent.futures import Future
from typing import NamedTuple

from ekorn.links.link import Link

__all__ = ["PipelinedLink"]

_LOOK_S = 0.5  # how often the thread looks whether an answer is overdue


class _Unanswered(NamedTuple):
    answer: Future[bytes]
    overdue: float  # on the monotonic clock


class PipelinedLink:
    """Sends messages without waiting for the answers to earlier ones. Thread-safe.

    A thread receives the answers and completes their futures. If the connection breaks or an answer is overdue, all
    messages without an answer fail: a late answer could be taken for the answer to another message.
    """

    def __init__(self, link: Link, name: str) -> None:
        self._link = link
        self._unanswered: deque[_Unanswered] = deque()
        self._lock = threading.Lock()  # guards the order of messages
        self._broken: Exception | None = None
        threading.Thread(target=self._receive_all, name=name, daemon=True).start()

    @property
    def is_broken(self) -> bool:
        """Whether no message can be sent any more."""
        return self._broken is not None

    def ask(self, message: bytes, timeout_s: float) -> Future[bytes]:
        """Send a message and return the future of its answer, which raises OSError or EOFError without one."""
        asked: Future[bytes] = Future()
        asked.set_running_or_notify_cancel()  # the message is being sent and cannot be cancelled
        with self._lock:
            broken = self._broken
            if broken is None:
                self._unanswered.append(_Unanswered(asked, time.monotonic() + timeout_s))
                try:
                    self._link.send(message)
                except OSError as error:
                    broken = error
                    self._unanswered.pop()
        if broken is not None:
            self._break(broken)
            asked.set_exception(broken)
        return asked

    def close(self) -> None:
        """End the connection. Messages without an answer fail."""
        self._link.shut_down()  # the thread sees it

    def _receive_all(self) -> None:
        try:
            while True:
                while not self._link.wait(_LOOK_S):
                    if self._unanswered and self._unanswered[0].overdue < time.monotonic():
                        raise TimeoutError("it did not answer in time")
                for answer in self._link.receive_arrived():
                    self._answered(answer)
        except (OSError, EOFError) as error:
            self._break(error)
        finally:
            self._link.close()

    def _answered(self, answer: bytes) -> None:
        # Without the lock: a thread that waits to send may hold it, and the peer may read only after it has sent.
        try:
            first = self._unanswered.popleft()
        except IndexError:  # another thread has found the connection broken, and all messages have failed
            raise EOFError("an answer arrived that no message waits for") from None
        first.answer.set_result(answer)

    def _break(self, error: Exception) -> None:
        reason = self._broken = self._broken or error  # before the shut-down, which others see as another error
        self._link.shut_down()  # before the lock is acquired: a thread that waits to send holds it
        left: list[_Unanswered] = []
        with self._lock, contextlib.suppress(IndexError):
            while True:  # one by one: another thread may take the first, whose answer has come
                left.append(self._unanswered.popleft())
        for each in left:
            each.answer.set_exception(reason)
