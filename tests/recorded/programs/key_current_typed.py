"""The current key has the declared type: an int for DOUBLE arrives as a float."""

from pyflink.common import Types
from pyflink.datastream.functions import KeyedProcessFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Tell(KeyedProcessFunction):

    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        yield ctx.get_current_key()


def build(env):
    return env.from_collection([1, 2]).key_by(lambda x: x, Types.DOUBLE()).process(Tell())
