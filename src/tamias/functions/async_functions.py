"""What users implement to ask other systems without waiting: async functions, and when a request is tried again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from tamias.functions.record_functions import Function

IN = TypeVar("IN")
OUT = TypeVar("OUT")

ResultPredicate = Callable[[list[Any]], bool]
ExceptionPredicate = Callable[[Exception], bool]


class AsyncFunction(Function, Generic[IN, OUT]):
    """One record in, one request, any number of records out. There is no keyed state here.

    Example:
        >>> class Lookup(AsyncFunction):
        ...     async def async_invoke(self, value):
        ...         return [(value, len(value))]
    """

    @abstractmethod
    async def async_invoke(self, value: IN) -> list[OUT]:
        """Ask, await the answer and return the records it gives; `[]` for none."""

    def timeout(self, value: IN) -> list[OUT]:
        """Return the records for a request that took too long; unless overridden the job fails."""
        raise TimeoutError(f"no answer within the timeout for the record {value!r}")


class AsyncBatchFunction(Function, Generic[IN, OUT]):
    """Several records in, one request, one record out for each: for services that answer many questions at once.

    Example:
        >>> class Predict(AsyncBatchFunction):
        ...     async def async_invoke_batch(self, inputs):
        ...         return [value * 2 for value in inputs]
    """

    @abstractmethod
    async def async_invoke_batch(self, inputs: list[IN]) -> list[OUT]:
        """Ask, await the answer and return as many results as there are inputs, in their order."""

    def timeout(self, inputs: list[IN]) -> list[OUT]:
        """Return the results for a request that took too long, one for each input; unless overridden the job fails."""
        raise TimeoutError(f"no answer within the timeout for a batch of {len(inputs)} records")


class AsyncRetryPredicate(ABC, Generic[OUT]):
    """Which outcomes of a request are tried again."""

    @abstractmethod
    def result_predicate(self) -> Callable[[list[OUT]], bool] | None:
        """Says of a result whether it is tried again; None: no result is."""

    @abstractmethod
    def exception_predicate(self) -> Callable[[Exception], bool] | None:
        """Says of an exception whether the request is tried again; None: none is."""


class AsyncRetryStrategy(ABC, Generic[OUT]):
    """Whether, when and how often a request is tried again. The timeout runs from the first attempt on."""

    @abstractmethod
    def can_retry(self, current_attempts: int) -> bool:
        """Return whether another attempt may follow so many."""

    @abstractmethod
    def get_backoff_time_millis(self, current_attempts: int) -> int:
        """How long to wait after so many attempts."""

    @abstractmethod
    def get_retry_predicate(self) -> AsyncRetryPredicate[OUT]:
        """Which outcomes are tried again."""

    @staticmethod
    def no_restart() -> AsyncRetryStrategy[Any]:
        """Return every outcome counts."""
        return NO_RETRY_STRATEGY

    @staticmethod
    def fixed_delay(
        max_attempts: int,
        backoff_time_millis: int,
        result_predicate: ResultPredicate | None,
        exception_predicate: ExceptionPredicate | None,
    ) -> AsyncRetryStrategy[Any]:
        """Try again up to so many times, always after the same time."""
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
        """Try again up to so many times, each time after a longer wait."""
        return ExponentialBackoffDelayRetryStrategy(
            max_attempts, initial_delay, max_retry_delay, multiplier, result_predicate, exception_predicate
        )


class RetryPredicate(AsyncRetryPredicate[Any]):
    """Two functions as a predicate."""

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
    """Every outcome counts."""

    def can_retry(self, current_attempts: int) -> bool:
        return False

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        return -1

    def get_retry_predicate(self) -> AsyncRetryPredicate[Any]:
        return RetryPredicate(None, None)


class FixedDelayRetryStrategy(AsyncRetryStrategy[Any]):
    """Tries again up to `max_attempts` times, always after the same time."""

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
    """Tries again up to `max_attempts` times, each time after `multiplier` times the wait before.

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
        # Flink: PyFlink remembers the last wait, which requests that run side by side then share. Here it follows
        # from the number of attempts alone, rounded as there.
        delay = self._initial_delay
        for _ in range(current_attempts - 1):
            delay = int(min(delay * self._multiplier, self._max_retry_delay))
        return delay

    def get_retry_predicate(self) -> AsyncRetryPredicate[Any]:
        return self._predicate


NO_RETRY_STRATEGY: AsyncRetryStrategy[Any] = NoRetryStrategy()


def empty_result_predicate(result: list[Any]) -> bool:
    """Try again when there was no result."""
    return result is None or len(result) == 0


def has_exception_predicate(error: Exception) -> bool:
    """Try again whatever was raised."""
    return error is not None


def exception_type_predicate(
    error: Exception, expected_error_type: type[Exception] | tuple[type[Exception], ...]
) -> bool:
    """Try again when an exception of a class was raised; `functools.partial` gives the predicate that class."""
    return isinstance(error, expected_error_type)


def _check_positive(**given: float) -> None:
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value <= 0:
            raise ValueError(f"{name} must be greater than zero, got {value!r}")
