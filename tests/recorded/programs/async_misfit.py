"""An asynchronous result that is not of the declared type."""

from pyflink.common import Time, Types
from pyflink.datastream import AsyncDataStream, AsyncFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Ask(AsyncFunction):
    async def async_invoke(self, value):
        return ["text"]


def build(env):
    return AsyncDataStream.ordered_wait(env.from_collection([3, 1]), Ask(), Time.seconds(30), output_type=Types.INT())
