"""The future of a query: a `concurrent.futures.Future` that is a single object until a thread waits for it.

A client may create tens of thousands of futures in a second. A plain future consists of ten objects: its condition, the
condition's lock and lists, and so on. So many objects make Python's garbage collector walk the client's whole heap
twice a second, and every query in flight waits for it. This future creates those objects when they are needed. All
futures of a process share one lock, which is held briefly and never while foreign code runs.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from typing import Any, Generic, TypeVar

__all__ = ["StateFuture"]

_log = logging.getLogger(__name__)
T = TypeVar("T")
Callback = Callable[[Future[Any]], object]
# The states' names in `concurrent.futures`, which its functions `wait` and `as_completed` compare with.
_RUNNING, _FINISHED = "RUNNING", "FINISHED"
_LOCK = threading.RLock()  # reentrant, because `wait` and `as_completed` lock all of their futures at once


class StateFuture(Future[T], Generic[T]):
    """The future of a query in flight. It cannot be cancelled."""

    # `Future.__init__` would create the objects that this class avoids. These attributes, and the properties
    # `_condition` and `_waiters`, stand for what it sets.
    _state = _RUNNING
    _result: T | None = None
    _exception: BaseException | None = None
    _finished: threading.Condition | None = None  # created by the first thread that waits
    _installed: list[Any] | None = None  # the waiters of `wait` and `as_completed`
    _done_callbacks: list[Callback] | Callback | None = None  # one without a list, since most futures have one

    def __init__(self) -> None:  # does not call `Future.__init__`: see above
        pass

    # ---------------------------------------------------------------- for `wait` and `as_completed`, under these names

    @property
    def _condition(self) -> threading.RLock:  # type: ignore[override]  # both functions only lock it
        return _LOCK

    @property
    def _waiters(self) -> list[Any]:  # type: ignore[override]  # both functions add to it and remove from it
        if self._installed is None:
            self._installed = []
        return self._installed

    # -------------------------------------------------------------------------------------------- for those that ask

    def cancel(self) -> bool:
        return False

    def cancelled(self) -> bool:
        return False

    def running(self) -> bool:
        return self._state is _RUNNING

    def done(self) -> bool:
        return self._state is _FINISHED

    def result(self, timeout: float | None = None) -> T:
        error = self.exception(timeout)
        if error is None:
            return self._result  # type: ignore[return-value]  # set before the state is FINISHED
        try:
            raise error
        finally:
            del error, self  # the error's traceback refers to this frame: break the cycle

    def exception(self, timeout: float | None = None) -> BaseException | None:
        if self._state is not _FINISHED:
            with _LOCK:
                if self._state is not _FINISHED:
                    if self._finished is None:
                        self._finished = threading.Condition(_LOCK)
                    if not self._finished.wait_for(self.done, timeout):
                        raise TimeoutError
        return self._exception

    def add_done_callback(self, fn: Callback) -> None:
        with _LOCK:
            if self._state is not _FINISHED:
                callbacks = self._done_callbacks
                if callbacks is None:
                    self._done_callbacks = fn
                elif isinstance(callbacks, list):
                    callbacks.append(fn)
                else:
                    self._done_callbacks = [callbacks, fn]
                return
        self._call(fn)

    def __repr__(self) -> str:
        with _LOCK:
            state, error, result = self._state, self._exception, self._result
        found = (
            ""
            if state is _RUNNING
            else f" raised {type(error).__name__}"
            if error
            else f" returned {type(result).__name__}"
        )
        return f"<{type(self).__name__} at {id(self):#x} state={state.lower()}{found}>"

    # ----------------------------------------------------------------------------------------- for those that answer

    def set_running_or_notify_cancel(self) -> bool:
        raise InvalidStateError(f"it runs from the beginning: {self!r}")

    def set_result(self, result: T) -> None:
        self._finish(result, None)

    def set_exception(self, exception: BaseException | None) -> None:
        self._finish(None, exception)

    def _finish(self, result: T | None, exception: BaseException | None) -> None:
        with _LOCK:
            if self._state is _FINISHED:
                raise InvalidStateError(f"it has already finished: {self!r}")
            self._result, self._exception = result, exception
            self._state = _FINISHED
            for waiter in self._installed or ():
                waiter.add_result(self) if exception is None else waiter.add_exception(self)
            if self._finished is not None:
                self._finished.notify_all()
            callbacks, self._done_callbacks = self._done_callbacks, None
        if callbacks is not None:
            for callback in callbacks if isinstance(callbacks, list) else (callbacks,):
                self._call(callback)

    def _call(self, callback: Callback) -> None:
        try:
            callback(self)
        except Exception:  # as in `concurrent.futures`: the other callbacks are called, and the client goes on
            _log.exception("a callback of %r has failed", self)
