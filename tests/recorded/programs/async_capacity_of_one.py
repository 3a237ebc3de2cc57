"""With a capacity of one, unordered results come in the order of the records."""

import asyncio

from pyflink.common import Time
from pyflink.datastream import AsyncDataStream
from pyflink.datastream.functions import AsyncFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Slow(AsyncFunction):

    async def async_invoke(self, value):
        await asyncio.sleep((4 - value) * 0.02)
        return [value]


def build(env):
    return AsyncDataStream.unordered_wait(env.from_collection([1, 2, 3, 4]), Slow(), Time.seconds(20), 1)
