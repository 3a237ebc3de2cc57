"""`CompletableFuture`: a result that is not there yet, under PyFlink's name."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

__all__ = ["CompletableFuture"]

T = TypeVar("T")


class CompletableFuture(Generic[T]):
    """Wraps a `concurrent.futures.Future`; each method does what its namesake there does.

    >>> CompletableFuture.completed(5).result()
    5
    """

    def __init__(self, future: Future[T]) -> None:
        self._future = future

    @staticmethod
    def completed(value: T) -> CompletableFuture[T]:
        """A future that already has its result."""
        future: Future[T] = Future()
        future.set_result(value)
        return CompletableFuture(future)

    def cancel(self) -> bool:
        """Try to give the result up; False when it is there or being made."""
        return self._future.cancel()

    def cancelled(self) -> bool:
        """Whether it was given up."""
        return self._future.cancelled()

    def done(self) -> bool:
        """Whether there is a result, an exception, or it was given up."""
        return self._future.done()

    def result(self, timeout: float | None = None) -> T:
        """Wait for the result, at most ``timeout`` seconds; raises what the work raised."""
        return self._future.result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait for the end, at most ``timeout`` seconds; what the work raised, or None."""
        return self._future.exception(timeout)

    def set_result(self, result: T) -> None:
        """Complete it."""
        self._future.set_result(result)

    def set_exception(self, exception: BaseException) -> None:
        """End it with an exception."""
        self._future.set_exception(exception)

    def add_done_callback(self, function: Callable[[Future[T]], Any]) -> None:
        """Call a function with the wrapped future once it is done."""
        self._future.add_done_callback(function)

    def __repr__(self) -> str:
        state = "cancelled" if self.cancelled() else "done" if self.done() else "pending"
        return f"CompletableFuture({state})"
