"""What an async function raises fails the job."""

from pyflink.common import Time
from pyflink.datastream import AsyncDataStream
from pyflink.datastream.functions import AsyncFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Raises(AsyncFunction):

    async def async_invoke(self, value):
        if value == 2:
            raise ValueError("two")
        return [value]


def build(env):
    return AsyncDataStream.unordered_wait(env.from_collection([1, 2, 3]), Raises(), Time.seconds(20))
