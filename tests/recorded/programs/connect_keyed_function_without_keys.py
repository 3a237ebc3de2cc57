"""A keyed co-process function on streams without keys, with no state and no timers."""

from pyflink.datastream.functions import KeyedCoProcessFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = False


class Both(KeyedCoProcessFunction):
    def process_element1(self, value, ctx: KeyedCoProcessFunction.Context):
        yield 1, value

    def process_element2(self, value, ctx: KeyedCoProcessFunction.Context):
        yield 2, value


def build(env):
    return env.from_collection([1, 2]).connect(env.from_collection(["a"])).process(Both())
