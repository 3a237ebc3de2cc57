"""A KeyedProcessFunction on a stream without keys."""

from pyflink.datastream.functions import KeyedProcessFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Tell(KeyedProcessFunction):

    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        yield value


def build(env):
    return env.from_collection([1]).process(Tell())
