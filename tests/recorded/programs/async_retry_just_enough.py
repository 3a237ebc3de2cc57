"""Two more attempts are three in all."""

from pyflink.common import Time
from pyflink.datastream import AsyncDataStream, AsyncFunction, AsyncRetryStrategy, async_retry_predicates

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Third(AsyncFunction):
    """Has an answer the third time it is asked."""

    def open(self, runtime_context):
        self.attempts = {}

    async def async_invoke(self, value):
        attempt = self.attempts[value] = self.attempts.get(value, 0) + 1
        return [(value, attempt)] if attempt == 3 else []


def build(env):
    again = AsyncRetryStrategy.fixed_delay(2, 10, async_retry_predicates.empty_result_predicate, None)
    return AsyncDataStream.ordered_wait_with_retry(env.from_collection([1, 2, 3]), Third(), Time.seconds(30), again)
