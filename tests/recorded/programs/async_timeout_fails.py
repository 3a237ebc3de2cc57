"""A request that takes too long fails the job."""

import asyncio

from pyflink.common import Time
from pyflink.datastream import AsyncDataStream
from pyflink.datastream.functions import AsyncFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Slow(AsyncFunction):

    async def async_invoke(self, value):
        await asyncio.sleep(20 if value == 2 else 0)
        return [value]


def build(env):
    return AsyncDataStream.ordered_wait(env.from_collection([1, 2, 3]), Slow(), Time.milliseconds(500))
