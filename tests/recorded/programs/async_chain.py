"""Plain functions before and behind asynchronous calls, and a second one."""

import asyncio

from pyflink.common import Time
from pyflink.datastream import AsyncDataStream, AsyncFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Ask(AsyncFunction):
    async def async_invoke(self, value):
        await asyncio.sleep(0.05 * (value % 3))
        return [value * 10]


def build(env):
    stream = env.from_collection([5, 4, 3]).map(lambda value: value + 1)
    once = AsyncDataStream.ordered_wait(stream, Ask(), Time.seconds(30)).filter(lambda value: value != 50)
    return AsyncDataStream.ordered_wait(once, Ask(), Time.seconds(30)).map(lambda value: ("twice", value))
