"""A co-map's result that is not of the declared type."""

from pyflink.common import Types
from pyflink.datastream.functions import CoMapFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = False


class Both(CoMapFunction):
    def map1(self, value):
        return value

    def map2(self, value):
        return value


def build(env):
    return env.from_collection([1, 2, 3]).connect(env.from_collection(["a"])).map(Both(), Types.INT())
