"""Asynchronous calls in two subtasks."""

import asyncio

from pyflink.common import Time
from pyflink.datastream import AsyncDataStream, AsyncFunction

PARALLELISM = 2
MODE = "STREAMING"
ORDERED = False


class Ask(AsyncFunction):
    async def async_invoke(self, value):
        await asyncio.sleep(0.05 * (value % 3))
        return [value * 10]


def build(env):
    stream = env.from_collection(list(range(10))).rebalance()
    return AsyncDataStream.unordered_wait(stream, Ask(), Time.seconds(30), 3)
