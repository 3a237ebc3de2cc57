"""One side is keyed and the other is not, and no state is used."""

from pyflink.datastream.functions import CoMapFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = False
QUIRK = "Records of the keyed side come with their keys, as PyFlink sends them over its wire."


class Both(CoMapFunction):
    def map1(self, value):
        return 1, value

    def map2(self, value):
        return 2, value


def build(env):
    left = env.from_collection([("a", 1), ("b", 2)]).key_by(lambda value: value[0])
    return left.connect(env.from_collection(["x", "y"])).map(Both())
