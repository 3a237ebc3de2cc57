"""The name of asynchronous calls by default."""

from pyflink.common import Time
from pyflink.datastream import AsyncDataStream, AsyncFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True
RESULT = "facts"


class Ask(AsyncFunction):
    async def async_invoke(self, value):
        return [value]


def build(env):
    stream = env.from_collection([1])
    return [AsyncDataStream.ordered_wait(stream, Ask(), Time.seconds(1)).get_name(),
            AsyncDataStream.unordered_wait(stream, Ask(), Time.seconds(1)).get_name()]
