"""One side of a co-map raises."""

from pyflink.datastream.functions import CoMapFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Both(CoMapFunction):
    def map1(self, value):
        return value

    def map2(self, value):
        raise ValueError("no words here")


def build(env):
    return env.from_collection([1, 2, 3]).connect(env.from_collection(["a"])).map(Both())
