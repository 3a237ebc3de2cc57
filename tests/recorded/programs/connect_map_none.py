"""A co-map that returns None gives no record."""

from pyflink.datastream.functions import CoMapFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = False


class Both(CoMapFunction):
    def map1(self, value):
        return value if value % 2 else None

    def map2(self, value):
        return None


def build(env):
    return env.from_collection([1, 2, 3, 4]).connect(env.from_collection(["a", "b"])).map(Both())
