"""The future of a query: one of `concurrent.futures` that is a single object until somebody waits for it.

A client may have tens of thousands of futures in a second. Python's collector counts objects: where many are on their
way, it walked the whole heap of the client twice a second, and every query of that time waited for it. A plain future
has ten objects, because of its condition and its lists. Here a future has them when they are needed, and the
futures of a process share one lock, which is held for a moment and never while other code runs.
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
# The words of `concurrent.futures`, which `wait` and `as_completed` of that module look for.
_RUNNING, _FINISHED = "RUNNING", "FINISHED"
_LOCK = threading.RLock()  # `wait` and `as_completed` take it for each of their futures at once


class StateFuture(Future[T], Generic[T]):
    """A future of an answer that is on its way: it cannot be cancelled."""

    # `Future.__init__` would make the objects that this class does without. What it sets are these, and two properties.
    _state = _RUNNING
    _result: T | None = None
    _exception: BaseException | None = None
    _finished: threading.Condition | None = None  # there, if a thread waits
    _installed: list[Any] | None = None  # what `wait` and `as_completed` wait with
    _done_callbacks: list[Callback] | Callback | None = None  # most futures have one

    def __init__(self) -> None:  # it calls nothing above, on purpose
        pass

    # ---------------------------------------------------------------- for `wait` and `as_completed`, under these names

    @property
    def _condition(self) -> threading.RLock:  # type: ignore[override]  # they only lock it
        return _LOCK

    @property
    def _waiters(self) -> list[Any]:  # type: ignore[override]  # they add to it and remove from it
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
            return self._result  # type: ignore[return-value]  # it is there when the future has finished
        try:
            raise error
        finally:
            del error, self  # the error has this frame: do not leave a cycle to the collector

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
                raise InvalidStateError(f"it has finished already: {self!r}")
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
        except Exception:  # as every future: the callbacks after it are called, and the client goes on
            _log.exception("a callback of %r has failed", self)
