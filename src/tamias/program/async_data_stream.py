"""`AsyncDataStream`: asking other systems about the records of a stream, many requests at a time."""

from __future__ import annotations

import inspect
from typing import Any

from tamias.errors import InvalidProgramError
from tamias.functions.async_functions import (
    NO_RETRY_STRATEGY,
    AsyncBatchFunction,
    AsyncFunction,
    AsyncRetryPredicate,
    AsyncRetryStrategy,
)
from tamias.functions.record_functions import Function
from tamias.graph.specs import AsyncSpec
from tamias.program.argument_checks import check_function, check_instance
from tamias.program.data_stream import DataStream
from tamias.types.time import Duration, Time, millis_of
from tamias.types.type_information import TypeInformation

__all__ = ["AsyncDataStream"]

NAME = "async wait operator"


class AsyncDataStream:
    """Applies async functions to streams: at most `capacity` requests at a time, each within a timeout.

    Ordered, results leave in the order of the records they are for. Unordered, they leave as they come, but no
    result passes a watermark.

    Example:
        >>> from tamias.datastream import StreamExecutionEnvironment
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
        """Ask about each record; results leave as they come.

        Args:
            data_stream: the records.
            async_function: asks about one.
            timeout: how long an answer may take; 0 for any time.
            capacity: how many requests there may be whose results have not left; while there are so many, the
                stream waits.
            output_type: type of the results.
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
        """The same, asking again where the strategy says so; the timeout runs from the first attempt on."""
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
        """Ask about each record; results leave in the order of the records. The arguments are `unordered_wait`'s."""
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
        """The same, asking again where the strategy says so; the timeout runs from the first attempt on."""
        check_async("ordered_wait", data_stream, async_function, AsyncFunction, "async_invoke")
        spec = AsyncSpec(async_function, True, _millis("timeout", timeout), capacity, async_retry_strategy)
        return data_stream._transform(NAME, checked(spec), output_type)

    # Flink: 2.3 has no batch form; the names are those proposed for it there.

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
        """Ask about several records at once; results leave as they come.

        Args:
            data_stream: the records.
            async_batch_function: asks about some, and gives a result for each.
            timeout: how long an answer may take; 0 for any time.
            batch_size: how many records make a request.
            batch_timeout: how long a record may wait for others before a smaller batch is sent; None: until the
                batch is full or the input ends.
            capacity: how many requests, each for a batch, there may be whose results have not left.
            output_type: type of the results.
            async_retry_strategy: which requests are made again.
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
        """The same with results in the order of the records. The arguments are `unordered_wait_batch`'s."""
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
    """Check what a call was given to work on and with."""
    if not isinstance(data_stream, DataStream):
        raise TypeError(f"{call}() needs a stream, got {data_stream!r}")
    check_function(call, function, kind, None)
    if not inspect.iscoroutinefunction(getattr(function, method)):
        raise InvalidProgramError(f"{call}(): {type(function).__name__}.{method} must be declared with async def")


def checked(spec: AsyncSpec) -> AsyncSpec:
    """Check the numbers and the strategy."""
    for name, number in (("capacity", spec.capacity), ("batch_size", spec.batch_size)):
        if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < 1):
            raise ValueError(f"{name} is a whole number from 1 on, got {number!r}")
    check_instance("async_retry_strategy", spec.retry, AsyncRetryStrategy)
    if not isinstance(spec.retry.get_retry_predicate(), AsyncRetryPredicate):
        raise InvalidProgramError(f"{type(spec.retry).__name__}.get_retry_predicate() gives no AsyncRetryPredicate")
    if spec.retry is not NO_RETRY_STRATEGY and spec.timeout_ms == 0:
        raise InvalidProgramError("requests that are tried again need a timeout above 0: it ends the attempts")
    return spec


def _millis(name: str, length: Time | Duration) -> int:
    millis = millis_of(length)
    if millis < 0:
        raise ValueError(f"{name} cannot be negative, got {length!r}")
    return millis
