"""A result that the predicate names is asked for again, and after the last attempt counts as it is."""

from pyflink.common import Time
from pyflink.datastream import AsyncDataStream
from pyflink.datastream.async_retry_predicates import empty_result_predicate
from pyflink.datastream.functions import AsyncFunction, AsyncRetryStrategy

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Later(AsyncFunction):

    def __init__(self):
        self.asked = {}

    async def async_invoke(self, value):
        self.asked[value] = self.asked.get(value, 0) + 1
        return [(value, self.asked[value])] if self.asked[value] >= value else []


def build(env):
    strategy = AsyncRetryStrategy.fixed_delay(2, 10, empty_result_predicate, None)
    numbers = env.from_collection([1, 2, 3, 4, 5])
    return AsyncDataStream.ordered_wait_with_retry(numbers, Later(), Time.seconds(20), strategy)
