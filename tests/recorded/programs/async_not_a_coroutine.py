"""async_invoke must be declared with async def."""

from pyflink.common import Time
from pyflink.datastream import AsyncDataStream
from pyflink.datastream.functions import AsyncFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Same(AsyncFunction):

    def async_invoke(self, value):
        return [value]


def build(env):
    return AsyncDataStream.ordered_wait(env.from_collection([1]), Same(), Time.seconds(5))
