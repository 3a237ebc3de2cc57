"""A retry strategy without a timeout is refused."""

from pyflink.common import Time
from pyflink.datastream import AsyncDataStream
from pyflink.datastream.functions import AsyncFunction, AsyncRetryStrategy

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Same(AsyncFunction):

    async def async_invoke(self, value):
        return [value]


def build(env):
    strategy = AsyncRetryStrategy.fixed_delay(2, 5, None, None)
    return AsyncDataStream.ordered_wait_with_retry(env.from_collection([1]), Same(), Time.seconds(0), strategy)
