"""`AsyncDataStream`: asynchronous requests for the records of a stream, many at a time."""

from __future__ import annotations

import inspect
from typing import Any

from ekorn.errors import InvalidProgramError
from ekorn.functions.async_functions import (
    NO_RETRY_STRATEGY,
    AsyncBatchFunction,
    AsyncFunction,
    AsyncRetryPredicate,
    AsyncRetryStrategy,
)
from ekorn.functions.record_functions import Function
from ekorn.graph.specs import AsyncSpec
from ekorn.program.checks.argument_checks import check_function, check_instance
from ekorn.program.streams.data_stream import DataStream
from ekorn.types.time import Duration, Time, millis_of
from ekorn.types.type_information import TypeInformation

__all__ = ["AsyncDataStream"]

NAME = "async wait operator"


class AsyncDataStream:
    """Applies async functions to streams: at most `capacity` requests at a time, each within a timeout.

    Ordered results are emitted in the order of their records. Unordered results are emitted as they arrive, but no
    result overtakes a watermark.

    Example:
        >>> from ekorn.datastream import StreamExecutionEnvironment
        >>> class Length(AsyncFunction):
        ...     async def async_invoke(self, value):
        ...         return [len(value)]
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> words = env.from_collection(["a", "bc"])
        >>> AsyncDataStream.ordered_wait(words, Length(), Time.seconds(5)).get_name()
        'async wait operator'
    """

    @staticmethod
    def unordered_wait(
        data_stream: DataStream,
        async_function: AsyncFunction[Any, Any],
        timeout: Time | Duration,
        capacity: int = 100,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Make a request for each record, and emit results as they arrive.

        Args:
            data_stream: The records.
            async_function: Makes the request for one record.
            timeout: How long a request may take; 0 for no limit.
            capacity: The largest number of requests whose results are not emitted yet. At this number the stream
                waits.
            output_type: The type of the results.
        """
        return AsyncDataStream.unordered_wait_with_retry(
            data_stream, async_function, timeout, NO_RETRY_STRATEGY, capacity, output_type
        )

    @staticmethod
    def unordered_wait_with_retry(  # noqa: PLR0917 - PyFlink's signature
        data_stream: DataStream,
        async_function: AsyncFunction[Any, Any],
        timeout: Time | Duration,
        async_retry_strategy: AsyncRetryStrategy[Any],
        capacity: int = 100,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Make a request for each record as `unordered_wait` does, and repeat it as the strategy says.

        The timeout runs from the first attempt on.
        """
        check_async("unordered_wait", data_stream, async_function, AsyncFunction, "async_invoke")
        spec = AsyncSpec(async_function, False, _millis("timeout", timeout), capacity, async_retry_strategy)
        return data_stream._transform(NAME, checked(spec), output_type)

    @staticmethod
    def ordered_wait(
        data_stream: DataStream,
        async_function: AsyncFunction[Any, Any],
        timeout: Time | Duration,
        capacity: int = 100,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Make a request for each record, and emit results in the order of the records.

        The arguments are those of `unordered_wait`.
        """
        return AsyncDataStream.ordered_wait_with_retry(
            data_stream, async_function, timeout, NO_RETRY_STRATEGY, capacity, output_type
        )

    @staticmethod
    def ordered_wait_with_retry(  # noqa: PLR0917 - PyFlink's signature
        data_stream: DataStream,
        async_function: AsyncFunction[Any, Any],
        timeout: Time | Duration,
        async_retry_strategy: AsyncRetryStrategy[Any],
        capacity: int = 100,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Make a request for each record as `ordered_wait` does, and repeat it as the strategy says.

        The timeout runs from the first attempt on.
        """
        check_async("ordered_wait", data_stream, async_function, AsyncFunction, "async_invoke")
        spec = AsyncSpec(async_function, True, _millis("timeout", timeout), capacity, async_retry_strategy)
        return data_stream._transform(NAME, checked(spec), output_type)

    # Flink: 2.3 has no batch form; the names are those of the proposal for it.

    @staticmethod
    def unordered_wait_batch(  # noqa: PLR0917 - the signature proposed for PyFlink
        data_stream: DataStream,
        async_batch_function: AsyncBatchFunction[Any, Any],
        timeout: Time | Duration,
        batch_size: int,
        batch_timeout: Time | Duration | None = None,
        capacity: int = 100,
        output_type: TypeInformation | None = None,
        async_retry_strategy: AsyncRetryStrategy[Any] = NO_RETRY_STRATEGY,
    ) -> DataStream:
        """Make a request for each batch of records, and emit results as they arrive.

        Args:
            data_stream: The records.
            async_batch_function: Makes the request for a batch, and returns a result for each record.
            timeout: How long a request may take; 0 for no limit.
            batch_size: The number of records in a batch.
            batch_timeout: How long a record may wait for others before a smaller batch is sent. None waits until the
                batch is full or the input ends.
            capacity: The largest number of requests, each for a batch, whose results are not emitted yet.
            output_type: The type of the results.
            async_retry_strategy: Decides which requests are repeated.
        """
        check_async("unordered_wait_batch", data_stream, async_batch_function, AsyncBatchFunction, "async_invoke_batch")
        spec = AsyncSpec(
            async_batch_function,
            False,
            _millis("timeout", timeout),
            capacity,
            async_retry_strategy,
            batch_size,
            None if batch_timeout is None else _millis("batch_timeout", batch_timeout),
        )
        return data_stream._transform(NAME, checked(spec), output_type)

    @staticmethod
    def ordered_wait_batch(  # noqa: PLR0917 - the signature proposed for PyFlink
        data_stream: DataStream,
        async_batch_function: AsyncBatchFunction[Any, Any],
        timeout: Time | Duration,
        batch_size: int,
        batch_timeout: Time | Duration | None = None,
        capacity: int = 100,
        output_type: TypeInformation | None = None,
        async_retry_strategy: AsyncRetryStrategy[Any] = NO_RETRY_STRATEGY,
    ) -> DataStream:
        """Make a request for each batch of records, and emit results in the order of the records.

        The arguments are those of `unordered_wait_batch`.
        """
        check_async("ordered_wait_batch", data_stream, async_batch_function, AsyncBatchFunction, "async_invoke_batch")
        spec = AsyncSpec(
            async_batch_function,
            True,
            _millis("timeout", timeout),
            capacity,
            async_retry_strategy,
            batch_size,
            None if batch_timeout is None else _millis("batch_timeout", batch_timeout),
        )
        return data_stream._transform(NAME, checked(spec), output_type)


def check_async(call: str, data_stream: object, function: object, kind: type[Function], method: str) -> None:
    """Check the stream and the function of a call."""
    if not isinstance(data_stream, DataStream):
        raise TypeError(f"{call}() needs a stream, got {data_stream!r}")
    check_function(call, function, kind, None)
    if not inspect.iscoroutinefunction(getattr(function, method)):
        raise InvalidProgramError(f"{call}(): {type(function).__name__}.{method} must be declared with async def")


def checked(spec: AsyncSpec) -> AsyncSpec:
    """Check the numbers and the retry strategy of a spec, and return the spec."""
    for name, number in (("capacity", spec.capacity), ("batch_size", spec.batch_size)):
        if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < 1):
            raise ValueError(f"{name} must be a whole number of at least 1, got {number!r}")
    check_instance("async_retry_strategy", spec.retry, AsyncRetryStrategy)
    if not isinstance(spec.retry.get_retry_predicate(), AsyncRetryPredicate):
        raise InvalidProgramError(
            f"{type(spec.retry).__name__}.get_retry_predicate() does not return an AsyncRetryPredicate"
        )
    if spec.retry is not NO_RETRY_STRATEGY and spec.timeout_ms == 0:
        raise InvalidProgramError("retries need a timeout greater than 0, which limits the attempts")
    return spec


def _millis(name: str, length: Time | Duration) -> int:
    millis = millis_of(length)
    if millis < 0:
        raise ValueError(f"{name} cannot be negative, got {length!r}")
    return millis
