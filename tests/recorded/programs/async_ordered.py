"""Ordered async results come in the order of the records, whatever each takes."""

import asyncio

from pyflink.common import Time
from pyflink.datastream import AsyncDataStream
from pyflink.datastream.functions import AsyncFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Slow(AsyncFunction):

    async def async_invoke(self, value):
        await asyncio.sleep((5 - value) * 0.02)
        return [value * 10]


def build(env):
    return AsyncDataStream.ordered_wait(env.from_collection([1, 2, 3, 4, 5]), Slow(), Time.seconds(20), 10)
