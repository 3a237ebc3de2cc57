"""The time limit is for all attempts together."""

from pyflink.common import Time
from pyflink.datastream import AsyncDataStream, AsyncFunction, AsyncRetryStrategy, async_retry_predicates

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Never(AsyncFunction):
    async def async_invoke(self, value):
        return [value] if value == 1 else []

    def timeout(self, value):
        return [("late", value)]


def build(env):
    again = AsyncRetryStrategy.fixed_delay(1000, 50, async_retry_predicates.empty_result_predicate, None)
    return AsyncDataStream.ordered_wait_with_retry(
        env.from_collection([1, 2]), Never(), Time.milliseconds(500), again
    )
