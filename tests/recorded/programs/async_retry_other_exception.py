"""An exception that the strategy does not name fails the job at once."""

from functools import partial

from pyflink.common import Time
from pyflink.datastream import AsyncDataStream, AsyncFunction, AsyncRetryStrategy, async_retry_predicates

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Fails(AsyncFunction):
    async def async_invoke(self, value):
        raise ValueError(f"never {value}")


def build(env):
    expected = partial(async_retry_predicates.exception_type_predicate, expected_error_type=KeyError)
    again = AsyncRetryStrategy.fixed_delay(100, 10_000, None, expected)
    return AsyncDataStream.ordered_wait_with_retry(env.from_collection([1, 2]), Fails(), Time.seconds(30), again)
