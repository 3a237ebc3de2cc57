"""The event loop of an async operator: a thread that makes all requests of one subtask.

The subtask's thread sends requests and takes the finished ones. Attempts, pauses and timeouts happen on the loop's
thread, where the user's coroutines and `timeout` run one at a time. Timeouts and pauses follow the event loop's own
clock, since they concern other systems.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from ekorn.functions.async_functions import AsyncRetryStrategy
from ekorn.operators.asynchronous.async_queue import PendingRecord
from ekorn.types.by_value import loaded

_log = logging.getLogger(__name__)
_STOP_S = 2.0  # the time that cancelled requests have to end


class AsyncRequest:
    """One request to another system: for one record, or for a batch of records."""

    __slots__ = ("argument", "error", "left", "records", "results", "settled", "timer")

    def __init__(self) -> None:
        self.records: list[PendingRecord] = []
        self.argument: Any = None  # the argument of the user's function
        self.results: list[list[Any]] = []  # the results of each record
        self.error: BaseException | None = None
        self.settled = False  # the outcome is known; what the coroutine does from now on has no effect
        self.left = 0  # records whose results have not left the operator
        self.timer: asyncio.TimerHandle | None = None


@dataclass(frozen=True)
class Calls:
    """Calls the user's function and reads its results: for single records or for batches.

    Args:
        argument: Makes the argument of the function from a request's records.
        invoke: Makes the request.
        timeout: Called when no answer came in time.
        results_of: Returns the results of each record, given argument and answer; raises if the answer is invalid.
    """

    argument: Callable[[list[Any]], Any]
    invoke: Callable[[Any], Awaitable[Any]]
    timeout: Callable[[Any], Any]
    results_of: Callable[[Any, Any], list[list[Any]]]


class Requests:
    """Makes requests. Finished requests, successful or failed, are added to `done`."""

    def __init__(self, calls: Calls, timeout_ms: int, retry: AsyncRetryStrategy[Any], name: str) -> None:
        self.done: deque[AsyncRequest] = deque()
        self._calls = calls
        self._timeout_s = timeout_ms / 1000
        self._retry = retry
        predicate = retry.get_retry_predicate()
        self._retry_result = predicate.result_predicate()
        self._retry_exception = predicate.exception_predicate()
        self._outgoing: deque[AsyncRequest] = deque()
        self._called = False  # whether the loop has been told that a request is outgoing
        self._news = threading.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._pauses: set[asyncio.Future[None]] = set()
        self._stopping = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    # ------------------------------------------------------------------------------- on the subtask's thread

    def send(self, request: AsyncRequest) -> None:
        """Hand a request to the event loop."""
        request.left = len(request.records)
        request.argument = self._calls.argument([loaded(pending.kept) for pending in request.records])
        self._outgoing.append(request)
        if not self._called:
            self._called = True
            self._loop.call_soon_threadsafe(self._begin)

    def wait(self, seconds: float | None = None) -> None:
        """Wait until a request is finished, or the time is up."""
        if not self.done:
            self._news.wait(seconds)
        self._news.clear()  # before the caller looks at `done`: a request that finishes later sets the event again

    def now_s(self) -> float:
        """Return the time of the event loop's clock."""
        return self._loop.time()

    def hurry(self) -> None:
        """Retry every request that is pausing before its next attempt now."""
        self._loop.call_soon_threadsafe(self._end_pauses)

    def stop(self) -> None:
        """Cancel all requests and end the thread."""
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
                except BaseException as error:  # SystemExit in a task that a coroutine left running
                    _log.warning("a task of an async function ended with %r", error)
            for task in self._tasks:
                task.cancel()
            if self._tasks:
                self._loop.run_until_complete(asyncio.wait(set(self._tasks), timeout=_STOP_S))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        finally:
            self._loop.close()

    def _begin(self) -> None:
        self._called = False  # before looking: a request sent from now on calls again
        while self._outgoing:
            request = self._outgoing.popleft()
            task = self._loop.create_task(self._attend(request))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            if self._timeout_s > 0:
                request.timer = self._loop.call_later(self._timeout_s, self._expire, request, task)

    async def _attend(self, request: AsyncRequest) -> None:
        """Make attempts until one succeeds or no retry is left."""
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
            raise  # cancelled by this class: the request timed out, or the job ends
        except BaseException as failure:  # raised by the user's retry strategy
            self._settle(request, None, failure)

    async def _attempt(self, request: AsyncRequest) -> tuple[Any, BaseException | None]:
        try:
            return await self._calls.invoke(request.argument), None
        except BaseException as error:  # any exception is the outcome of the attempt, and is reported nowhere else
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

    @property
    def pause_count(self) -> int:
        """The number of requests that pause before another attempt."""
        return len(self._pauses)

    def _end_pauses(self) -> None:
        for pause in self._pauses:
            _end_pause(pause)

    def _expire(self, request: AsyncRequest, task: asyncio.Task[None]) -> None:
        """Settle a request whose time is up with the result of `timeout`, and cancel its coroutine."""
        if request.settled:
            return
        try:
            self._settle(request, self._calls.timeout(request.argument), None)
        except BaseException as error:  # usually the TimeoutError of the default `timeout`
            self._settle(request, None, error)
        task.cancel()

    def _settle(self, request: AsyncRequest, results: Any, error: BaseException | None) -> None:
        if request.settled:
            return
        if error is None:
            try:
                request.results = self._calls.results_of(request.argument, results)
            except BaseException as misfit:  # also raised by the user's iterator
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
