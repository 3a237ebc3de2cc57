"""A call that returns a number where a list is due."""

from pyflink.common import Time
from pyflink.datastream import AsyncDataStream, AsyncFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Ask(AsyncFunction):
    async def async_invoke(self, value):
        return value


def build(env):
    return AsyncDataStream.ordered_wait(env.from_collection([1, 2]), Ask(), Time.seconds(30))
