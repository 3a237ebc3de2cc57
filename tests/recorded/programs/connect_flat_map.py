"""A co-flat-map gives any number of records per record."""

from pyflink.datastream.functions import CoFlatMapFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = False


class Both(CoFlatMapFunction):
    def flat_map1(self, value):
        for n in range(value):
            yield value, n

    def flat_map2(self, value):
        return list(value)


def build(env):
    return env.from_collection([0, 1, 3]).connect(env.from_collection(["", "ab", "c"])).flat_map(Both())
