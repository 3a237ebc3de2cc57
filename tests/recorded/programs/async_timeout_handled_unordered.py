"""What stands for calls that take too long, unordered."""

import asyncio

from pyflink.common import Time
from pyflink.datastream import AsyncDataStream, AsyncFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = False


class Ask(AsyncFunction):
    async def async_invoke(self, value):
        await asyncio.sleep(30 if value % 2 else 0)
        return [value]

    def timeout(self, value):
        return []


def build(env):
    return AsyncDataStream.unordered_wait(env.from_collection([1, 2, 3, 4]), Ask(), Time.milliseconds(300))
