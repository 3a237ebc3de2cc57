"""A timeout of 0 is none."""

import asyncio

from pyflink.common import Time
from pyflink.datastream import AsyncDataStream
from pyflink.datastream.functions import AsyncFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Slow(AsyncFunction):

    async def async_invoke(self, value):
        await asyncio.sleep(0.05)
        return [value]


def build(env):
    return AsyncDataStream.ordered_wait(env.from_collection([1, 2]), Slow(), Time.milliseconds(0))
