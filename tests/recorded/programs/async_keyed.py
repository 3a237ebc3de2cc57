"""An async function on a keyed stream."""

from pyflink.common import Time
from pyflink.datastream import AsyncDataStream
from pyflink.datastream.functions import AsyncFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True
QUIRK = "the function is given the rows of key and record that PyFlink makes for its own use"


class Same(AsyncFunction):

    async def async_invoke(self, value):
        return [value]


def build(env):
    keyed = env.from_collection([("a", 1), ("b", 2)]).key_by(lambda pair: pair[0])
    return AsyncDataStream.ordered_wait(keyed, Same(), Time.seconds(5))
