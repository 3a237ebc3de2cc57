"""`CompletableFuture`: a future under PyFlink's name."""

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
        """Return a future that already has its result."""
        future: Future[T] = Future()
        future.set_result(value)
        return CompletableFuture(future)

    def cancel(self) -> bool:
        """Try to cancel; return False if the work is running or done."""
        return self._future.cancel()

    def cancelled(self) -> bool:
        """Return whether the future was cancelled."""
        return self._future.cancelled()

    def done(self) -> bool:
        """Return whether the future has a result or an exception, or was cancelled."""
        return self._future.done()

    def result(self, timeout: float | None = None) -> T:
        """Wait for the result, at most ``timeout`` seconds. Raises what the work raised."""
        return self._future.result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait for the end, at most ``timeout`` seconds; return what the work raised, or None."""
        return self._future.exception(timeout)

    def set_result(self, result: T) -> None:
        """Complete the future with a result."""
        self._future.set_result(result)

    def set_exception(self, exception: BaseException) -> None:
        """Complete the future with an exception."""
        self._future.set_exception(exception)

    def add_done_callback(self, function: Callable[[Future[T]], Any]) -> None:
        """Call a function with the wrapped future when it is done."""
        self._future.add_done_callback(function)

    def __repr__(self) -> str:
        if not self.done() or self.cancelled():
            return f"CompletableFuture({'cancelled' if self.cancelled() else 'pending'})"
        error = self.exception()
        if error is None:
            return f"CompletableFuture(result {self.result()!r})"
        first_line = str(error).partition("\n")[0]
        return f"CompletableFuture(failed with {type(error).__name__}: {first_line})"
