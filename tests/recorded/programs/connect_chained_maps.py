"""Plain functions before and behind connected streams."""

from pyflink.datastream.functions import CoMapFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = False


class Both(CoMapFunction):
    def map1(self, value):
        return value + 1

    def map2(self, value):
        return -value


def build(env):
    left = env.from_collection([1, 2, 3]).map(lambda value: value * 10).filter(lambda value: value != 20)
    right = env.from_collection(["a", "bb"]).map(len)
    both = left.connect(right).map(Both())
    return both.map(lambda value: ("result", value)).flat_map(lambda value: [value, value])
