"""A co-flat-map is a function of its own kind: a co-map is none."""

from pyflink.datastream.functions import CoMapFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Both(CoMapFunction):
    def map1(self, value):
        return value

    def map2(self, value):
        return value


def build(env):
    return env.from_collection([1]).connect(env.from_collection(["a"])).flat_map(Both())
