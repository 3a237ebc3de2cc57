"""Asynchronous functions, which send requests to other systems without blocking, and their retry strategies."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from ekorn.functions.record_functions import Function

IN = TypeVar("IN")
OUT = TypeVar("OUT")

ResultPredicate = Callable[[list[Any]], bool]
ExceptionPredicate = Callable[[Exception], bool]


class AsyncFunction(Function, Generic[IN, OUT]):
    """Turns one record into any number of records through one request. Keyed state is not available.

    Example:
        >>> class Lookup(AsyncFunction):
        ...     async def async_invoke(self, value):
        ...         return [(value, len(value))]
    """

    @abstractmethod
    async def async_invoke(self, value: IN) -> list[OUT]:
        """Send a request, await the answer and return the resulting records; `[]` for none."""

    def timeout(self, value: IN) -> list[OUT]:
        """Return the records for a request that timed out. By default the job fails."""
        raise TimeoutError(f"no result within the timeout for the record {value!r}")


class AsyncBatchFunction(Function, Generic[IN, OUT]):
    """Turns several records into one record each through one request, for services that answer in batches.

    Example:
        >>> class Predict(AsyncBatchFunction):
        ...     async def async_invoke_batch(self, inputs):
        ...         return [value * 2 for value in inputs]
    """

    @abstractmethod
    async def async_invoke_batch(self, inputs: list[IN]) -> list[OUT]:
        """Send a request, await the answer and return one result per input, in the order of the inputs."""

    def timeout(self, inputs: list[IN]) -> list[OUT]:
        """Return one result per input of a request that timed out. By default the job fails."""
        raise TimeoutError(f"no result within the timeout for a batch of {len(inputs)} records")


class AsyncRetryPredicate(ABC, Generic[OUT]):
    """Decides after which outcomes a request is retried."""

    @abstractmethod
    def result_predicate(self) -> Callable[[list[OUT]], bool] | None:
        """Return a function that says of a result whether to retry, or None to accept every result."""

    @abstractmethod
    def exception_predicate(self) -> Callable[[Exception], bool] | None:
        """Return a function that says of an exception whether to retry, or None to retry after no exception."""


class AsyncRetryStrategy(ABC, Generic[OUT]):
    """Decides whether, when and how often a request is retried. The timeout begins with the first attempt."""

    @abstractmethod
    def can_retry(self, current_attempts: int) -> bool:
        """Return whether another attempt may follow after this many attempts."""

    @abstractmethod
    def get_backoff_time_millis(self, current_attempts: int) -> int:
        """Return the delay in milliseconds before the attempt that follows this many attempts."""

    @abstractmethod
    def get_retry_predicate(self) -> AsyncRetryPredicate[OUT]:
        """Return the predicate that decides which outcomes are retried."""

    @staticmethod
    def no_restart() -> AsyncRetryStrategy[Any]:
        """Never retry."""
        return NO_RETRY_STRATEGY

    @staticmethod
    def fixed_delay(
        max_attempts: int,
        backoff_time_millis: int,
        result_predicate: ResultPredicate | None,
        exception_predicate: ExceptionPredicate | None,
    ) -> AsyncRetryStrategy[Any]:
        """Retry up to `max_attempts` times, always after the same delay."""
        return FixedDelayRetryStrategy(max_attempts, backoff_time_millis, result_predicate, exception_predicate)

    @staticmethod
    def exponential_backoff(  # noqa: PLR0917 - PyFlink's signature
        max_attempts: int,
        initial_delay: int,
        max_retry_delay: int,
        multiplier: float,
        result_predicate: ResultPredicate | None,
        exception_predicate: ExceptionPredicate | None,
    ) -> AsyncRetryStrategy[Any]:
        """Retry up to `max_attempts` times, each time after a longer delay."""
        return ExponentialBackoffDelayRetryStrategy(
            max_attempts, initial_delay, max_retry_delay, multiplier, result_predicate, exception_predicate
        )


class RetryPredicate(AsyncRetryPredicate[Any]):
    """A predicate made of two functions."""

    def __init__(
        self, result_predicate: ResultPredicate | None, exception_predicate: ExceptionPredicate | None
    ) -> None:
        self._result_predicate = result_predicate
        self._exception_predicate = exception_predicate

    def result_predicate(self) -> ResultPredicate | None:
        return self._result_predicate

    def exception_predicate(self) -> ExceptionPredicate | None:
        return self._exception_predicate


class NoRetryStrategy(AsyncRetryStrategy[Any]):
    """Never retries."""

    def can_retry(self, current_attempts: int) -> bool:
        return False

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        return -1

    def get_retry_predicate(self) -> AsyncRetryPredicate[Any]:
        return RetryPredicate(None, None)


class FixedDelayRetryStrategy(AsyncRetryStrategy[Any]):
    """Retries up to `max_attempts` times, always after the same delay."""

    def __init__(
        self,
        max_attempts: int,
        backoff_time_millis: int,
        result_predicate: ResultPredicate | None,
        exception_predicate: ExceptionPredicate | None,
    ) -> None:
        _check_positive(max_attempts=max_attempts, backoff_time_millis=backoff_time_millis)
        self._max_attempts = max_attempts
        self._backoff_time_millis = backoff_time_millis
        self._predicate = RetryPredicate(result_predicate, exception_predicate)

    def can_retry(self, current_attempts: int) -> bool:
        return current_attempts <= self._max_attempts

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        return self._backoff_time_millis

    def get_retry_predicate(self) -> AsyncRetryPredicate[Any]:
        return self._predicate


class ExponentialBackoffDelayRetryStrategy(AsyncRetryStrategy[Any]):
    """Retries up to `max_attempts` times, each time after `multiplier` times the previous delay.

    Example:
        >>> strategy = ExponentialBackoffDelayRetryStrategy(5, 10, 50, 2.0, None, None)
        >>> [strategy.get_backoff_time_millis(attempts) for attempts in (1, 2, 3, 4, 5)]
        [10, 20, 40, 50, 50]
    """

    def __init__(  # noqa: PLR0917 - PyFlink's signature
        self,
        max_attempts: int,
        initial_delay: int,
        max_retry_delay: int,
        multiplier: float,
        result_predicate: ResultPredicate | None,
        exception_predicate: ExceptionPredicate | None,
    ) -> None:
        _check_positive(
            max_attempts=max_attempts,
            initial_delay=initial_delay,
            max_retry_delay=max_retry_delay,
            multiplier=multiplier,
        )
        self._max_attempts = max_attempts
        self._initial_delay = initial_delay
        self._max_retry_delay = max_retry_delay
        self._multiplier = multiplier
        self._predicate = RetryPredicate(result_predicate, exception_predicate)

    def can_retry(self, current_attempts: int) -> bool:
        return current_attempts <= self._max_attempts

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        # Flink: PyFlink remembers the last delay, so concurrent requests share it. Here the delay follows from the
        # number of attempts alone, with PyFlink's rounding.
        delay = self._initial_delay
        for _ in range(current_attempts - 1):
            delay = int(min(delay * self._multiplier, self._max_retry_delay))
        return delay

    def get_retry_predicate(self) -> AsyncRetryPredicate[Any]:
        return self._predicate


NO_RETRY_STRATEGY: AsyncRetryStrategy[Any] = NoRetryStrategy()


def empty_result_predicate(result: list[Any]) -> bool:
    """Retry if there was no result."""
    return result is None or len(result) == 0


def has_exception_predicate(error: Exception) -> bool:
    """Retry after any exception."""
    return error is not None


def exception_type_predicate(
    error: Exception, expected_error_type: type[Exception] | tuple[type[Exception], ...]
) -> bool:
    """Retry after an exception of the expected class; pass that class with `functools.partial`."""
    return isinstance(error, expected_error_type)


def _check_positive(**given: float) -> None:
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value <= 0:
            raise ValueError(f"{name} must be greater than zero, got {value!r}")
