"""After the last attempt the last exception counts."""

from pyflink.common import Time
from pyflink.datastream import AsyncDataStream, AsyncFunction, AsyncRetryStrategy, async_retry_predicates

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Never(AsyncFunction):
    async def async_invoke(self, value):
        raise ValueError(f"never {value}")


def build(env):
    again = AsyncRetryStrategy.fixed_delay(2, 10, None, async_retry_predicates.has_exception_predicate)
    return AsyncDataStream.ordered_wait_with_retry(env.from_collection([1, 2]), Never(), Time.seconds(30), again)
