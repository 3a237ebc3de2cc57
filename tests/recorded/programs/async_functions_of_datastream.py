"""Asynchronous functions, imported from pyflink.datastream: names, retries, failures and what follows them."""

import asyncio
from functools import partial

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import AsyncDataStream, AsyncFunction, AsyncRetryStrategy, async_retry_predicates
from pyflink.datastream.functions import ProcessWindowFunction
from pyflink.datastream.window import TumblingEventTimeWindows
from tests.recorded.family import recorded


class Ask(AsyncFunction):
    async def async_invoke(self, value):
        await asyncio.sleep(0.05 * (value % 3))
        return [value * 10]


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


def timed(env, values):
    return env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )


@recorded()
def async_chain(env):
    """Plain functions before and behind asynchronous calls, and a second one."""
    stream = env.from_collection([5, 4, 3]).map(lambda value: value + 1)
    once = AsyncDataStream.ordered_wait(stream, Ask(), Time.seconds(30)).filter(lambda value: value != 50)
    return AsyncDataStream.ordered_wait(once, Ask(), Time.seconds(30)).map(lambda value: ("twice", value))


@recorded()
def async_misfit(env):
    """An asynchronous result that is not of the declared type."""

    class Ask(AsyncFunction):
        async def async_invoke(self, value):
            return ["text"]

    return AsyncDataStream.ordered_wait(env.from_collection([3, 1]), Ask(), Time.seconds(30), output_type=Types.INT())


@recorded(result="facts")
def async_names(env):
    """The name of asynchronous calls by default."""

    class Ask(AsyncFunction):
        async def async_invoke(self, value):
            return [value]

    stream = env.from_collection([1])
    return [AsyncDataStream.ordered_wait(stream, Ask(), Time.seconds(1)).get_name(),
            AsyncDataStream.unordered_wait(stream, Ask(), Time.seconds(1)).get_name()]


@recorded()
def async_retry_exceptions_give_up(env):
    """After the last attempt the last exception counts."""

    class Never(AsyncFunction):
        async def async_invoke(self, value):
            raise ValueError(f"never {value}")

    again = AsyncRetryStrategy.fixed_delay(2, 10, None, async_retry_predicates.has_exception_predicate)
    return AsyncDataStream.ordered_wait_with_retry(env.from_collection([1, 2]), Never(), Time.seconds(30), again)


@recorded()
def async_retry_just_enough(env):
    """Two more attempts are three in all."""

    class Third(AsyncFunction):
        """Has an answer the third time it is asked."""

        def open(self, runtime_context):
            self.attempts = {}

        async def async_invoke(self, value):
            attempt = self.attempts[value] = self.attempts.get(value, 0) + 1
            return [(value, attempt)] if attempt == 3 else []

    again = AsyncRetryStrategy.fixed_delay(2, 10, async_retry_predicates.empty_result_predicate, None)
    return AsyncDataStream.ordered_wait_with_retry(env.from_collection([1, 2, 3]), Third(), Time.seconds(30), again)


@recorded()
def async_retry_other_exception(env):
    """An exception that the strategy does not name fails the job at once."""

    class Fails(AsyncFunction):
        async def async_invoke(self, value):
            raise ValueError(f"never {value}")

    expected = partial(async_retry_predicates.exception_type_predicate, expected_error_type=KeyError)
    again = AsyncRetryStrategy.fixed_delay(100, 10_000, None, expected)
    return AsyncDataStream.ordered_wait_with_retry(env.from_collection([1, 2]), Fails(), Time.seconds(30), again)


@recorded()
def async_retry_timeout(env):
    """The time limit is for all attempts together."""

    class Never(AsyncFunction):
        async def async_invoke(self, value):
            return [value] if value == 1 else []

        def timeout(self, value):
            return [("late", value)]

    again = AsyncRetryStrategy.fixed_delay(1000, 50, async_retry_predicates.empty_result_predicate, None)
    return AsyncDataStream.ordered_wait_with_retry(
        env.from_collection([1, 2]), Never(), Time.milliseconds(500), again
    )


@recorded()
def async_returns_no_list(env):
    """A call that returns a number where a list is due."""

    class Ask(AsyncFunction):
        async def async_invoke(self, value):
            return value

    return AsyncDataStream.ordered_wait(env.from_collection([1, 2]), Ask(), Time.seconds(30))


@recorded(ordered=False)
def async_then_windows(env):
    """Windows behind unordered asynchronous calls hold every result."""

    class Ask(AsyncFunction):
        async def async_invoke(self, value):
            await asyncio.sleep(0.02 * (value[2] % 3))
            return [value]

    class Show(ProcessWindowFunction):
        def process(self, key, context, elements):
            yield key, context.window().start, sorted(element[2] for element in elements)

    stream = timed(env, [("a", 5, 1), ("b", 3, 2), ("a", 13, 4), ("a", 8, 8), ("b", 25, 16)])
    asked = AsyncDataStream.unordered_wait(stream, Ask(), Time.seconds(30))
    keyed = asked.key_by(lambda value: value[0])
    return keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(10))).process(Show())


@recorded(ordered=False)
def async_timeout_handled_unordered(env):
    """What stands for calls that take too long, unordered."""

    class Ask(AsyncFunction):
        async def async_invoke(self, value):
            await asyncio.sleep(30 if value % 2 else 0)
            return [value]

        def timeout(self, value):
            return []

    return AsyncDataStream.unordered_wait(env.from_collection([1, 2, 3, 4]), Ask(), Time.milliseconds(300))


@recorded(parallelism=2, ordered=False)
def async_two_subtasks(env):
    """Asynchronous calls in two subtasks."""
    stream = env.from_collection(list(range(10))).rebalance()
    return AsyncDataStream.unordered_wait(stream, Ask(), Time.seconds(30), 3)
