"""Async functions in BATCH mode, and a reduce behind them."""

import asyncio

from pyflink.common import Time
from pyflink.datastream import AsyncDataStream
from pyflink.datastream.functions import AsyncFunction

PARALLELISM = 1
MODE = "BATCH"
ORDERED = False


class Slow(AsyncFunction):

    async def async_invoke(self, value):
        await asyncio.sleep((4 - value[1]) * 0.01)
        return [value]


def build(env):
    pairs = env.from_collection([("a", 1), ("b", 2), ("a", 3), ("b", 4)])
    asked = AsyncDataStream.unordered_wait(pairs, Slow(), Time.seconds(5))
    return asked.key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))
