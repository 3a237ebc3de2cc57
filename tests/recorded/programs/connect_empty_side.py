"""A side without records."""

from pyflink.datastream.functions import CoMapFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Both(CoMapFunction):
    def map1(self, value):
        return "first", value

    def map2(self, value):
        return "second", value


def build(env):
    nothing = env.from_collection([1]).filter(lambda value: False)
    return nothing.connect(env.from_collection(["a", "b", "c"])).map(Both())
