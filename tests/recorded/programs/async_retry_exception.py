"""An exception that the predicate names is followed by another attempt."""

from pyflink.common import Time
from pyflink.datastream import AsyncDataStream
from pyflink.datastream.async_retry_predicates import has_exception_predicate
from pyflink.datastream.functions import AsyncFunction, AsyncRetryStrategy

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = False


class Later(AsyncFunction):

    def __init__(self):
        self.asked = {}

    async def async_invoke(self, value):
        self.asked[value] = self.asked.get(value, 0) + 1
        if self.asked[value] < value:
            raise ValueError("not yet")
        return [(value, self.asked[value])]


def build(env):
    strategy = AsyncRetryStrategy.exponential_backoff(3, 5, 20, 2.0, None, has_exception_predicate)
    numbers = env.from_collection([1, 2, 3, 4])
    return AsyncDataStream.unordered_wait_with_retry(numbers, Later(), Time.seconds(20), strategy)
