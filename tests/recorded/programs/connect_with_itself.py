"""A stream connected with itself comes in on both sides."""

from pyflink.datastream.functions import CoMapFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = False


class Both(CoMapFunction):
    def map1(self, value):
        return 1, value

    def map2(self, value):
        return 2, value


def build(env):
    stream = env.from_collection([1, 2, 3]).map(lambda value: value * value)
    return stream.connect(stream).map(Both())
