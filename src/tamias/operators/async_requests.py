"""The event loop of an async operator: a thread on which all requests of one subtask are made.

The subtask's thread sends requests and picks up those that are done; everything between (attempts, pauses, timeouts)
happens on the loop's thread, where the user's coroutines and `timeout` run one at a time. Timeouts and pauses go by
the event loop's own clock, since they are about the world outside.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from tamias.functions.async_functions import AsyncRetryStrategy
from tamias.operators.async_queue import PendingRecord
from tamias.types.by_value import loaded

_log = logging.getLogger(__name__)
_STOP_S = 2.0  # for requests to take note of their cancellation


class Request:
    """One question to another system: for one record, or for a batch of them."""

    __slots__ = ("argument", "entries", "error", "left", "results", "settled", "timer")

    def __init__(self) -> None:
        self.entries: list[PendingRecord] = []
        self.argument: Any = None  # what the user's function is given
        self.results: list[list[Any]] = []  # of each entry
        self.error: BaseException | None = None
        self.settled = False  # it has its outcome; whatever its coroutine still does is of no interest
        self.left = 0  # entries whose results have not left the operator
        self.timer: asyncio.TimerHandle | None = None


@dataclass(frozen=True)
class Calls:
    """How the user's function is called, and how its results are read: for single records or for batches.

    Args:
        argument: What the function is given for a request's records.
        invoke: Asks.
        timeout: Called in place of an answer that did not come.
        results_of: What an answer means for each record; raises if it is none.
    """

    argument: Callable[[list[Any]], Any]
    invoke: Callable[[Any], Awaitable[Any]]
    timeout: Callable[[Any], Any]
    results_of: Callable[[Any, Any], list[list[Any]]]


class Requests:
    """Makes requests; those that are done, one way or the other, are found in `done`."""

    def __init__(self, calls: Calls, timeout_ms: int, retry: AsyncRetryStrategy[Any], name: str) -> None:
        self.done: deque[Request] = deque()
        self._calls = calls
        self._timeout_s = timeout_ms / 1000
        self._retry = retry
        predicate = retry.get_retry_predicate()
        self._retry_result = predicate.result_predicate()
        self._retry_exception = predicate.exception_predicate()
        self._outgoing: deque[Request] = deque()
        self._called = False  # the loop has been told that there is something outgoing
        self._news = threading.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._pauses: set[asyncio.Future[None]] = set()
        self._stopping = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    # ------------------------------------------------------------------------------- on the subtask's thread

    def send(self, request: Request) -> None:
        """Make a request, soon."""
        request.left = len(request.entries)
        request.argument = self._calls.argument([loaded(entry.kept) for entry in request.entries])
        self._outgoing.append(request)
        if not self._called:
            self._called = True
            self._loop.call_soon_threadsafe(self._begin)

    def wait(self, seconds: float | None = None) -> None:
        """Wait until a request is done, or the time is up."""
        if not self.done:
            self._news.wait(seconds)
        self._news.clear()  # before the caller looks at `done`: what comes later sets it again

    def now_s(self) -> float:
        """What the event loop's clock says."""
        return self._loop.time()

    def hurry(self) -> None:
        """Make the next attempt of every request that waits for one now."""
        self._loop.call_soon_threadsafe(self._end_pauses)

    def stop(self) -> None:
        """Give up all requests and end the thread."""
        if self._loop.is_closed():
            return
        self._stopping = True
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=2 * _STOP_S)
        if self._thread.is_alive():
            _log.warning("%s did not end: an async function blocks its event loop", self._thread.name)

    # ------------------------------------------------------------------------------- on the loop's thread

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            while not self._stopping:
                try:
                    self._loop.run_forever()
                except BaseException as error:  # SystemExit in a task that a coroutine left running; not in ours
                    _log.warning("a task of an async function ended with %r", error)
            for task in self._tasks:
                task.cancel()
            if self._tasks:
                self._loop.run_until_complete(asyncio.wait(self._tasks, timeout=_STOP_S))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        finally:
            self._loop.close()

    def _begin(self) -> None:
        self._called = False  # before looking: what is sent from now on calls again
        while self._outgoing:
            request = self._outgoing.popleft()
            task = self._loop.create_task(self._attend(request))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            if self._timeout_s > 0:
                request.timer = self._loop.call_later(self._timeout_s, self._expire, request, task)

    async def _attend(self, request: Request) -> None:
        """Ask until there is an outcome that counts."""
        attempts = 0
        try:
            while True:
                attempts += 1
                results, error = await self._attempt(request)
                if request.settled or not self._is_tried_again(results, error, attempts):
                    break
                await self._pause(self._retry.get_backoff_time_millis(attempts) / 1000)
            self._settle(request, results, error)
        except asyncio.CancelledError:
            raise  # ours: the request timed out or the job ends
        except BaseException as failure:  # of a retry strategy of the user's
            self._settle(request, None, failure)

    async def _attempt(self, request: Request) -> tuple[Any, BaseException | None]:
        try:
            return await self._calls.invoke(request.argument), None
        except BaseException as error:  # whatever it is, it is the outcome; nothing else would report it
            if isinstance(error, asyncio.CancelledError) and (request.settled or self._stopping):
                raise
            return None, error

    def _is_tried_again(self, results: Any, error: BaseException | None, attempts: int) -> bool:
        if error is None:
            wanted = self._retry_result is not None and results is not None and self._retry_result(results)
        else:
            wanted = self._retry_exception is not None and isinstance(error, Exception) and self._retry_exception(error)
        return wanted and self._retry.can_retry(attempts)

    async def _pause(self, seconds: float) -> None:
        pause = self._loop.create_future()
        timer = self._loop.call_later(seconds, _end_pause, pause)
        self._pauses.add(pause)
        try:
            await pause
        finally:
            timer.cancel()
            self._pauses.discard(pause)

    def _end_pauses(self) -> None:
        for pause in self._pauses:
            _end_pause(pause)

    def _expire(self, request: Request, task: asyncio.Task[None]) -> None:
        """The time is up: what `timeout` gives counts, and the coroutine is told to end."""
        if request.settled:
            return
        try:
            self._settle(request, self._calls.timeout(request.argument), None)
        except BaseException as error:  # most often the TimeoutError of the default
            self._settle(request, None, error)
        task.cancel()

    def _settle(self, request: Request, results: Any, error: BaseException | None) -> None:
        if request.settled:
            return
        if error is None:
            try:
                request.results = self._calls.results_of(request.argument, results)
            except BaseException as misfit:  # also what an iterator of the user's raises
                error = misfit
        request.settled = True
        request.error = error
        if request.timer is not None:
            request.timer.cancel()
        self.done.append(request)
        self._news.set()


def _end_pause(pause: asyncio.Future[None]) -> None:
    if not pause.done():
        pause.set_result(None)
