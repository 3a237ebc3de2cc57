"""Async results are converted to the declared type."""

from pyflink.common import Time, Types
from pyflink.datastream import AsyncDataStream
from pyflink.datastream.functions import AsyncFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Pair(AsyncFunction):

    async def async_invoke(self, value):
        return [(value, str(value))]


def build(env):
    numbers = env.from_collection([1, 2, 3], Types.INT())
    pairs = AsyncDataStream.ordered_wait(
        numbers, Pair(), Time.seconds(20), 5, Types.TUPLE([Types.INT(), Types.STRING()]))
    return pairs.map(lambda pair: (pair[1], pair[0] + 1))
