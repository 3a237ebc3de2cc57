"""Asynchronous functions: order, capacity, retries, timeouts and results."""

import asyncio

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import AsyncDataStream
from pyflink.datastream.async_retry_predicates import empty_result_predicate, has_exception_predicate
from pyflink.datastream.functions import AsyncFunction, AsyncRetryStrategy, ProcessFunction, RuntimeContext
from tests.recorded.family import recorded


class Same(AsyncFunction):

    async def async_invoke(self, value):
        return [value]


@recorded(mode="BATCH", ordered=False)
def async_batch(env):
    """Async functions in BATCH mode, and a reduce behind them."""

    class Slow(AsyncFunction):

        async def async_invoke(self, value):
            await asyncio.sleep((4 - value[1]) * 0.01)
            return [value]

    pairs = env.from_collection([("a", 1), ("b", 2), ("a", 3), ("b", 4)])
    asked = AsyncDataStream.unordered_wait(pairs, Slow(), Time.seconds(5))
    return asked.key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))


@recorded()
def async_capacity_of_one(env):
    """With a capacity of one, unordered results come in the order of the records."""

    class Slow(AsyncFunction):

        async def async_invoke(self, value):
            await asyncio.sleep((4 - value) * 0.02)
            return [value]

    return AsyncDataStream.unordered_wait(env.from_collection([1, 2, 3, 4]), Slow(), Time.seconds(20), 1)


@recorded(quirk="the function is given the rows of key and record that PyFlink makes for its own use")
def async_keyed(env):
    """An async function on a keyed stream."""
    keyed = env.from_collection([("a", 1), ("b", 2)]).key_by(lambda pair: pair[0])
    return AsyncDataStream.ordered_wait(keyed, Same(), Time.seconds(5))


@recorded()
def async_no_timeout(env):
    """A timeout of 0 is none."""

    class Slow(AsyncFunction):

        async def async_invoke(self, value):
            await asyncio.sleep(0.05)
            return [value]

    return AsyncDataStream.ordered_wait(env.from_collection([1, 2]), Slow(), Time.milliseconds(0))


@recorded()
def async_not_a_coroutine(env):
    """async_invoke must be declared with async def."""

    class Same(AsyncFunction):

        def async_invoke(self, value):
            return [value]

    return AsyncDataStream.ordered_wait(env.from_collection([1]), Same(), Time.seconds(5))


@recorded()
def async_opened(env):
    """An async function is opened with the runtime context, and knows its subtask."""

    class Knows(AsyncFunction):

        def open(self, runtime_context: RuntimeContext):
            self.subtask = runtime_context.get_index_of_this_subtask()

        async def async_invoke(self, value):
            return [(self.subtask, value)]

    return AsyncDataStream.ordered_wait(env.from_collection([1, 2, 3]), Knows(), Time.seconds(5))


@recorded()
def async_ordered(env):
    """Ordered async results come in the order of the records, whatever each takes."""

    class Slow(AsyncFunction):

        async def async_invoke(self, value):
            await asyncio.sleep((5 - value) * 0.02)
            return [value * 10]

    return AsyncDataStream.ordered_wait(env.from_collection([1, 2, 3, 4, 5]), Slow(), Time.seconds(20), 10)


@recorded()
def async_output_type(env):
    """Async results are converted to the declared type."""

    class Pair(AsyncFunction):

        async def async_invoke(self, value):
            return [(value, str(value))]

    numbers = env.from_collection([1, 2, 3], Types.INT())
    pairs = AsyncDataStream.ordered_wait(
        numbers, Pair(), Time.seconds(20), 5, Types.TUPLE([Types.INT(), Types.STRING()]))
    return pairs.map(lambda pair: (pair[1], pair[0] + 1))


@recorded()
def async_raises(env):
    """What an async function raises fails the job."""

    class Raises(AsyncFunction):

        async def async_invoke(self, value):
            if value == 2:
                raise ValueError("two")
            return [value]

    return AsyncDataStream.unordered_wait(env.from_collection([1, 2, 3]), Raises(), Time.seconds(20))


@recorded()
def async_result_none(env):
    """An async function whose result is None fails the job."""

    class Nothing(AsyncFunction):

        async def async_invoke(self, value):
            return None

    return AsyncDataStream.ordered_wait(env.from_collection([1, 2]), Nothing(), Time.seconds(20))


@recorded(ordered=False)
def async_retry_exception(env):
    """An exception that the predicate names is followed by another attempt."""

    class Later(AsyncFunction):

        def __init__(self):
            self.asked = {}

        async def async_invoke(self, value):
            self.asked[value] = self.asked.get(value, 0) + 1
            if self.asked[value] < value:
                raise ValueError("not yet")
            return [(value, self.asked[value])]

    strategy = AsyncRetryStrategy.exponential_backoff(3, 5, 20, 2.0, None, has_exception_predicate)
    numbers = env.from_collection([1, 2, 3, 4])
    return AsyncDataStream.unordered_wait_with_retry(numbers, Later(), Time.seconds(20), strategy)


@recorded()
def async_retry_exhausted(env):
    """After the last attempt the exception fails the job."""

    class Never(AsyncFunction):

        async def async_invoke(self, value):
            raise ValueError("never")

    strategy = AsyncRetryStrategy.fixed_delay(2, 5, None, has_exception_predicate)
    return AsyncDataStream.ordered_wait_with_retry(env.from_collection([1]), Never(), Time.seconds(20), strategy)


@recorded()
def async_retry_needs_timeout(env):
    """A retry strategy without a timeout is refused."""
    strategy = AsyncRetryStrategy.fixed_delay(2, 5, None, None)
    return AsyncDataStream.ordered_wait_with_retry(env.from_collection([1]), Same(), Time.seconds(0), strategy)


@recorded()
def async_retry_result(env):
    """A result that the predicate names is asked for again, and after the last attempt counts as it is."""

    class Later(AsyncFunction):

        def __init__(self):
            self.asked = {}

        async def async_invoke(self, value):
            self.asked[value] = self.asked.get(value, 0) + 1
            return [(value, self.asked[value])] if self.asked[value] >= value else []

    strategy = AsyncRetryStrategy.fixed_delay(2, 10, empty_result_predicate, None)
    numbers = env.from_collection([1, 2, 3, 4, 5])
    return AsyncDataStream.ordered_wait_with_retry(numbers, Later(), Time.seconds(20), strategy)


@recorded()
def async_several_results(env):
    """An async function gives none, one or several results for a record; any iterable will do."""

    class Several(AsyncFunction):

        async def async_invoke(self, value):
            if value == 4:
                return (n for n in (40, 41))
            if value == 3:
                return "abc"
            return [value] * value

    return AsyncDataStream.ordered_wait(env.from_collection([0, 1, 2, 3, 4]), Several(), Time.seconds(20))


@recorded()
def async_timeout_fails(env):
    """A request that takes too long fails the job."""

    class Slow(AsyncFunction):

        async def async_invoke(self, value):
            await asyncio.sleep(20 if value == 2 else 0)
            return [value]

    return AsyncDataStream.ordered_wait(env.from_collection([1, 2, 3]), Slow(), Time.milliseconds(500))


@recorded()
def async_timeout_results(env):
    """What timeout() gives stands in for the answer."""

    class Slow(AsyncFunction):

        async def async_invoke(self, value):
            await asyncio.sleep(20 if value == 2 else 0)
            return [value]

        def timeout(self, value):
            return ["late", value]

    return AsyncDataStream.ordered_wait(env.from_collection([1, 2, 3]), Slow(), Time.milliseconds(500))


@recorded()
def async_timestamps(env):
    """Async results have the timestamps of the records they are for."""

    class Second(TimestampAssigner):

        def extract_timestamp(self, value, record_timestamp):
            return value * 1000

    class Twice(AsyncFunction):

        async def async_invoke(self, value):
            return [value, -value]

    class WithTimestamp(ProcessFunction):

        def process_element(self, value, ctx: ProcessFunction.Context):
            yield value, ctx.timestamp()

    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    timed = env.from_collection([1, 2, 3]).assign_timestamps_and_watermarks(strategy)
    return AsyncDataStream.ordered_wait(timed, Twice(), Time.seconds(5)).process(WithTimestamp())


@recorded()
def async_unordered(env):
    """Unordered async results come as they are there."""

    class Slow(AsyncFunction):

        async def async_invoke(self, value):
            await asyncio.sleep((5 - value) * 0.3)
            return [value]

    return AsyncDataStream.unordered_wait(env.from_collection([1, 2, 3, 4, 5]), Slow(), Time.seconds(20), 10)
