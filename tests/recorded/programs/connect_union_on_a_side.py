"""A side of connected streams may be a union."""

from pyflink.datastream.functions import CoMapFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = False


class Both(CoMapFunction):
    def map1(self, value):
        return "first", value

    def map2(self, value):
        return "second", value


def build(env):
    left = env.from_collection([1, 2]).union(env.from_collection([3]), env.from_collection([4, 5]))
    right = env.from_collection(["a"]).union(env.from_collection(["b"]))
    return left.connect(right).map(Both())
