"""An async function whose result is None fails the job."""

from pyflink.common import Time
from pyflink.datastream import AsyncDataStream
from pyflink.datastream.functions import AsyncFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Nothing(AsyncFunction):

    async def async_invoke(self, value):
        return None


def build(env):
    return AsyncDataStream.ordered_wait(env.from_collection([1, 2]), Nothing(), Time.seconds(20))
