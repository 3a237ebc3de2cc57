"""A co-process function without keys on keyed streams."""

from pyflink.datastream.functions import CoProcessFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = False


class Both(CoProcessFunction):
    def process_element1(self, value, ctx: CoProcessFunction.Context):
        yield 1, value

    def process_element2(self, value, ctx: CoProcessFunction.Context):
        yield 2, value


def build(env):
    keyed = env.from_collection([1, 2]).connect(env.from_collection(["a"])).key_by(lambda v: v, lambda v: v)
    return keyed.process(Both())
