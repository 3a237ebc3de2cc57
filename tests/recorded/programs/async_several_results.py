"""An async function gives none, one or several results for a record; any iterable will do."""

from pyflink.common import Time
from pyflink.datastream import AsyncDataStream
from pyflink.datastream.functions import AsyncFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Several(AsyncFunction):

    async def async_invoke(self, value):
        if value == 4:
            return (n for n in (40, 41))
        if value == 3:
            return "abc"
        return [value] * value


def build(env):
    return AsyncDataStream.ordered_wait(env.from_collection([0, 1, 2, 3, 4]), Several(), Time.seconds(20))
