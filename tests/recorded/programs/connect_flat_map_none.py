"""A co-flat-map may return None for no records."""

from pyflink.datastream.functions import CoFlatMapFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = False


class Both(CoFlatMapFunction):
    def flat_map1(self, value):
        if value > 1:
            return (value, -value)
        return None

    def flat_map2(self, value):
        return []


def build(env):
    return env.from_collection([0, 1, 2, 3]).connect(env.from_collection(["ab", "c"])).flat_map(Both())
