"""After the last attempt the exception fails the job."""

from pyflink.common import Time
from pyflink.datastream import AsyncDataStream
from pyflink.datastream.async_retry_predicates import has_exception_predicate
from pyflink.datastream.functions import AsyncFunction, AsyncRetryStrategy

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Never(AsyncFunction):

    async def async_invoke(self, value):
        raise ValueError("never")


def build(env):
    strategy = AsyncRetryStrategy.fixed_delay(2, 5, None, has_exception_predicate)
    return AsyncDataStream.ordered_wait_with_retry(env.from_collection([1]), Never(), Time.seconds(20), strategy)
